// The names of rules and premises.
#include "deadlock/rules.h"

#include <cstddef>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sluice::deadlock {
namespace {

constexpr const char* kRuleNames[] = {"plain", "ordered", "escape"};
constexpr const char* kPremiseNames[] = {"reduction-order", "slots", "start-order", "group-unit",
                                         "device-slot-order"};
static_assert(std::size(kRuleNames) == kGateRules.size());
static_assert(std::size(kPremiseNames) == kPremises.size());

template <class Choices>
absl::StatusOr<typename Choices::value_type> Parse(const Choices& choices, absl::string_view name) {
  for (const auto choice : choices) {
    if (name == NameOf(choice)) return choice;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name, "\" is none of ",
      absl::StrJoin(choices, ", ", [](std::string* text, typename Choices::value_type choice) {
        absl::StrAppend(text, NameOf(choice));
      })));
}

}  // namespace

const char* NameOf(GateRule rule) { return kRuleNames[static_cast<size_t>(rule)]; }

const char* NameOf(Premise premise) { return kPremiseNames[static_cast<size_t>(premise)]; }

absl::StatusOr<GateRule> ParseGateRule(absl::string_view name) { return Parse(kGateRules, name); }

absl::StatusOr<Premise> ParsePremise(absl::string_view name) { return Parse(kPremises, name); }

}  // namespace sluice::deadlock
