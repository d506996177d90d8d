// Parses fault specifications.
#include "storage/fault_spec.h"

#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

absl::Status Bad(absl::string_view part, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("fault '", part, "' ", why));
}

double* FieldOf(FaultSpec* spec, absl::string_view kind) {
  if (kind == "transient") return &spec->transient;
  if (kind == "permanent") return &spec->permanent;
  if (kind == "short") return &spec->short_object;
  if (kind == "hang") return &spec->hang;
  return nullptr;
}

absl::Status ParsePart(absl::string_view part, FaultSpec* spec) {
  const std::pair<absl::string_view, absl::string_view> sides =
      absl::StrSplit(part, absl::MaxSplits(':', 1));
  double* const field = FieldOf(spec, sides.first);
  if (field == nullptr) return Bad(part, "is none of transient, permanent, short, hang");
  absl::string_view number = sides.second;
  const size_t times = number.find('x');
  if (times != number.npos && sides.first == "transient") {
    if (!absl::SimpleAtoi(number.substr(times + 1), &spec->transient_attempts) ||
        spec->transient_attempts < 1) {
      return Bad(part, "has no number of attempts after its x");
    }
    number = number.substr(0, times);
  }
  // Written so that NaN fails, too.
  if (!absl::SimpleAtod(number, field) || !(*field >= 0 && *field <= 1)) {
    return Bad(part, "has no probability between 0 and 1");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FaultSpec> ParseFaultSpec(absl::string_view text) {
  FaultSpec spec;
  if (text.empty()) return spec;
  std::set<absl::string_view> seen;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    SLUICE_RETURN_IF_ERROR(ParsePart(part, &spec));
    if (!seen.insert(part.substr(0, part.find(':'))).second) return Bad(part, "is there twice");
  }
  if (spec.permanent + spec.short_object > 1 || spec.transient + spec.hang > 1) {
    return Bad(text, "has probabilities above 1 together");
  }
  return spec;
}

}  // namespace sluice
