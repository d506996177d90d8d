// The names of rules and premises.
#include "deadlock/rules.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace sluice::deadlock {
namespace {

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

const char* NameOf(GateRule rule) {
  switch (rule) {
    case GateRule::kPlain:
      return "plain";
    case GateRule::kOrdered:
      return "ordered";
    case GateRule::kEscape:
      return "escape";
  }
  return "?";
}

const char* NameOf(Premise premise) {
  switch (premise) {
    case Premise::kReductionOrder:
      return "reduction-order";
    case Premise::kSlots:
      return "slots";
    case Premise::kStartOrder:
      return "start-order";
    case Premise::kGroupUnit:
      return "group-unit";
    case Premise::kDeviceSlotOrder:
      return "device-slot-order";
  }
  return "?";
}

absl::StatusOr<GateRule> ParseGateRule(absl::string_view name) { return Parse(kGateRules, name); }

absl::StatusOr<Premise> ParsePremise(absl::string_view name) { return Parse(kPremises, name); }

}  // namespace sluice::deadlock
