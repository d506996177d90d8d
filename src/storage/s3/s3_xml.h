// The few fields that are read out of a store's XML. Anything else in it is passed over.
#ifndef SLUICE_SRC_STORAGE_S3_S3_XML_H_
#define SLUICE_SRC_STORAGE_S3_S3_XML_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace sluice {

// Text between the first <name> and the next </name>, as it stands there; nothing if there are
// no such two. `after`, unless null, becomes what follows.
absl::optional<absl::string_view> XmlField(absl::string_view xml, absl::string_view name,
                                           absl::string_view* after = nullptr);

// The text with "&amp;" and the like replaced. Nothing if one of them is none.
absl::optional<std::string> XmlText(absl::string_view text);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_S3_S3_XML_H_
