// Brings every rank's half to every rank.
#ifndef SLUICE_SRC_SESSION_CONNECT_GATHER_HALVES_H_
#define SLUICE_SRC_SESSION_CONNECT_GATHER_HALVES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "plan/connect/half.h"
#include "session/peers/peers.h"

namespace sluice {

struct GatheredHalf {
  std::string bytes;       // as EncodeHalf gives them
  std::vector<int> ranks;  // that have it; ascending
};
struct GatheredHalves {
  std::vector<GatheredHalf> halves;  // distinct, by their lowest ranks
  // DataLoss: what came here is not what was announced. This rank alone may see it.
  absl::Status loss;
};

// Collective; waits for the other ranks. First ranks say which half they have. Then those that have
// the same half tell different parts of it. `own` that is not OK: this rank has no half, so nobody
// gets any. Errors are the same on all ranks: those of Peers::Exchange; ResourceExhausted: the
// distinct halves have more than `bytes_max` bytes.
absl::StatusOr<GatheredHalves> GatherHalves(Peers* peers, const absl::Status& own,
                                            const std::string& half,
                                            int64_t bytes_max = kHalfBytesMax);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CONNECT_GATHER_HALVES_H_
