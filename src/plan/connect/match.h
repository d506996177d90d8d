// Halves of all ranks become one transfer: matched by name, and checked.
#ifndef SLUICE_SRC_PLAN_CONNECT_MATCH_H_
#define SLUICE_SRC_PLAN_CONNECT_MATCH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "plan/connect/half.h"
#include "sluice/transfer.h"

namespace sluice {

struct RankedHalf {
  Half half;               // has passed CheckHalf
  std::vector<int> ranks;  // that have it; ascending
};

struct Match {
  // The tensors have the targets' names. They come in the order in which the lowest rank names its
  // targets, then the next rank those that are new, and so on.
  TransferSpec spec;
  std::vector<std::string> source_names;  // one per tensor of the spec
};

// `halves` are ordered by their lowest ranks; each rank is in one of them. Errors name tensors and
// ranks, a few of each kind:
// FailedPrecondition: ranks disagree on a tensor, a rename or the priority class.
// InvalidArgument: the ranks that give a tensor are not those that have a part of it; or shapes
//   differ. No cast exists, or nobody asks for a source. No source box has an element that a
//   target needs.
// ResourceExhausted: there are too many boxes.
// NotFound: nobody has a source for a target.
absl::StatusOr<Match> MatchHalves(absl::Span<const RankedHalf> halves);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CONNECT_MATCH_H_
