// The words of range errors.
#include "session/base/describe.h"

#include "absl/strings/str_cat.h"

namespace sluice {

void CheckRanges::CheckTime(absl::string_view path, absl::Duration value, const FieldRule& rule) {
  const bool positive = rule.min > 0;
  const bool good =
      positive ? value > absl::ZeroDuration() : rule.min < 0 || value >= absl::ZeroDuration();
  if (good || !status_.ok()) return;
  const bool but = words_ == RangeWords::kBut;
  status_ = absl::InvalidArgumentError(absl::StrCat(path, !positive ? " must not be negative"
                                                          : but     ? " must be above 0"
                                                                    : " must be positive"));
}

void CheckRanges::CheckNumber(absl::string_view path, int64_t value, const FieldRule& rule,
                              bool may_be_unset) {
  if ((value >= rule.min && value <= rule.max) || !status_.ok()) return;
  std::string range;
  if (words_ == RangeWords::kBut) {
    range = value < rule.min ? absl::StrCat(" but must be at least ", rule.min)
                             : absl::StrCat(" but must be at most ", rule.max);
  } else {
    const bool open = rule.max == std::numeric_limits<int64_t>::max();
    range = absl::StrCat("; it must be ", rule.min, " ",
                         open ? "or more" : absl::StrCat("to ", rule.max),
                         rule.no_limit ? ", or kNoLimit" : "", may_be_unset ? ", or not set" : "");
  }
  status_ = absl::InvalidArgumentError(absl::StrCat(path, " is ", value, range));
}

}  // namespace sluice
