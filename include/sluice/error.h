// The subject of an error of this library, for programs. The error's text says the same to people.
#ifndef SLUICE_ERROR_H_
#define SLUICE_ERROR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace sluice {

struct ErrorFields {
  // Ranks of the session that the text names, ascending. An error that another rank tells brings as
  // many ranks as cross with it.
  std::vector<int> ranks = {};
  // The first tensor that the text names: its name, of which 240 bytes may be all.
  std::optional<std::string> tensor = std::nullopt;
  // The epoch of a world that could not begin.
  std::optional<int64_t> epoch = std::nullopt;
  // Ranks call different things, or call them with different values.
  bool is_disagreement = false;

  friend bool operator==(const ErrorFields&, const ErrorFields&) = default;
};

// The fields of an error of this library's. They are a payload of the status, so a copy has them.
// A status that is made anew out of the text has none.
ErrorFields FieldsOf(const absl::Status& status);

// The error with these fields, such as a refusal that other ranks hear of.
absl::Status WithFields(absl::Status status, const ErrorFields& fields);

}  // namespace sluice

#endif  // SLUICE_ERROR_H_
