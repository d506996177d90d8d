// The dimensions of a search for deadlocks: the rule of admission, and the engine's premises.
#ifndef SLUICE_TESTS_DEADLOCK_RULES_H_
#define SLUICE_TESTS_DEADLOCK_RULES_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice::deadlock {

enum class GateRule : uint8_t {
  kPlain,    // a bare counting semaphore: each rank goes round its own channels
  kOrdered,  // strict head-of-line: the smallest waiting bucket or nothing
  kEscape,   // the engine: the smallest unfinished bucket always has a slot
};

// What the engine's rule asks of everyone else (docs/gate.md), and how a job goes without it.
enum class Premise : uint8_t {
  // Inside a reduction each member gives to and takes from the others one at a time, since it has
  // one receive slot. On: all in mesh order. Off: each in the order in which it happens to hear of
  // the others.
  kReductionOrder,
  // On: staging is equal slots. Off: a rank's staging is one arena of as many bytes in all. There
  // an admitted bucket takes just the bytes it needs, first fit, before its first stage begins.
  kSlots,
  // On: all ranks start the runs in one order. Off: each in an order of its own, and so an id's run
  // differs between the members of a bucket.
  kStartOrder,
  // Where moves go through a stream per rank that runs one group at a time. On: what is launched is
  // what was admitted, a bucket at a time and in id order on all ranks. Off: a rank launches as one
  // group whatever its own budget has admitted by then.
  kGroupUnit,
  // Where a rank drains into device slots that its consumer takes in id order. On: they are granted
  // in that order. Off: to whoever asks first.
  kDeviceSlotOrder,
};

inline constexpr std::array<GateRule, 3> kGateRules = {GateRule::kPlain, GateRule::kOrdered,
                                                       GateRule::kEscape};
inline constexpr std::array<Premise, 5> kPremises = {Premise::kReductionOrder, Premise::kSlots,
                                                     Premise::kStartOrder, Premise::kGroupUnit,
                                                     Premise::kDeviceSlotOrder};

// "plain", "reduction-order". Parsing names what there is.
const char* NameOf(GateRule rule);
const char* NameOf(Premise premise);
absl::StatusOr<GateRule> ParseGateRule(absl::string_view name);
absl::StatusOr<Premise> ParsePremise(absl::string_view name);

struct Rules {
  GateRule rule = GateRule::kEscape;
  std::optional<Premise> off = {};  // of kEscape only

  bool IsOff(Premise premise) const { return off == premise; }
};

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_DEADLOCK_RULES_H_
