// Chooses the wire between nodes. All members choose equally, because all see the same cards.
#ifndef SLUICE_SRC_WORLD_WIRES_H_
#define SLUICE_SRC_WORLD_WIRES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "world/card.h"
#include "world/member.h"

namespace sluice {

// The word of a card whose member has not looked for UCX: UCX helps little without such a device.
inline constexpr absl::string_view kNoRdmaDevice = "it has no RDMA device, and its wires are auto";

struct Wires {
  bool ucx = false;
  // A member insists on it, so it is used even where all share a node.
  bool insists = false;
  // Why it is not UCX, for people; empty: nobody has to be told.
  std::string reason;
  // Why it is what it is, for reports.
  std::string why;
};

// FailedPrecondition: a member insists on UCX, and another has none or insists on TCP. If a member
// cannot take part at all, its own error with its name.
absl::StatusOr<Wires> ChooseWires(absl::Span<const Card> cards,
                                  absl::Span<const StoredMember> members);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_WIRES_H_
