// A failure as a payload of a status, as text fields.
#include "session/shard/read_failure.h"

#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sluice {
namespace {

constexpr absl::string_view kPayload = "sluice/read-failure";
constexpr char kSeparator = '\n';

}  // namespace

absl::Status MakeReadFailure(absl::StatusCode code, const ReadFailure& failure) {
  absl::Status status(
      code, absl::StrCat("bytes ", failure.offset, " to ", failure.offset + failure.bytes - 1,
                         " of ", failure.object, ": gave up after ", failure.attempts,
                         failure.attempts == 1 ? " attempt: " : " attempts: ", failure.cause));
  const std::string separator(1, kSeparator);
  status.SetPayload(kPayload,
                    absl::Cord(absl::StrCat(failure.offset, separator, failure.bytes, separator,
                                            failure.attempts, separator, failure.object.size(),
                                            separator, failure.object, failure.cause)));
  return status;
}

absl::optional<ReadFailure> ReadFailureOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  if (!payload) return absl::nullopt;
  const std::string text(*payload);
  const std::vector<absl::string_view> fields =
      absl::StrSplit(text, absl::MaxSplits(kSeparator, 4));
  ReadFailure failure;
  size_t object_bytes = 0;
  if (fields.size() != 5 || !absl::SimpleAtoi(fields[0], &failure.offset) ||
      !absl::SimpleAtoi(fields[1], &failure.bytes) ||
      !absl::SimpleAtoi(fields[2], &failure.attempts) ||
      !absl::SimpleAtoi(fields[3], &object_bytes) || object_bytes > fields[4].size()) {
    return absl::nullopt;
  }
  failure.object = std::string(fields[4].substr(0, object_bytes));
  failure.cause = std::string(fields[4].substr(object_bytes));
  return failure;
}

}  // namespace sluice
