// The pause as a payload of a status, in nanoseconds.
#include "storage/asked_pause.h"

#include <cstdint>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

constexpr absl::string_view kPayload = "sluice/asked-pause";

}  // namespace

absl::Status WithAskedPause(absl::Status status, absl::Duration pause) {
  status.SetPayload(kPayload, absl::Cord(absl::StrCat(absl::ToInt64Nanoseconds(pause))));
  return status;
}

absl::Duration AskedPauseOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  int64_t pause_ns = 0;
  if (payload && !absl::SimpleAtoi(std::string(*payload), &pause_ns)) return absl::ZeroDuration();
  return absl::Nanoseconds(pause_ns);
}

}  // namespace sluice
