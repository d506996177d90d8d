// The texts in which ranks tell each other which groups their plans need.
#ifndef SLUICE_SRC_SESSION_TRANSFER_GROUP_NEED_TEXT_H_
#define SLUICE_SRC_SESSION_TRANSFER_GROUP_NEED_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "plan/groups.h"

namespace sluice {

std::string TextOf(GroupNeed need);
// FailedPrecondition if `text`, which is of `rank`, has another form: it runs another build.
absl::StatusOr<GroupNeed> NeedFrom(const std::string& text, int rank);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_TRANSFER_GROUP_NEED_TEXT_H_
