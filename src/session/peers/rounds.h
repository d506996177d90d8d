// Rounds in which ranks that each go on for themselves tell each other how they stand. They tell
// who works, who moves, who is done, who has failed. So all end together, a rank that goes silent
// is noticed, and none that waits for the others takes their work for a standstill.
#ifndef SLUICE_SRC_SESSION_PEERS_ROUNDS_H_
#define SLUICE_SRC_SESSION_PEERS_ROUNDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "sluice/fabric.h"

namespace sluice {

// A round is one all-gather. A rank that works takes part every kIntervalNs; one that is done, or
// has failed, at once.
class Rounds {
 public:
  static constexpr int64_t kIntervalNs = 50'000'000;

  // `call` names the call in messages. `fabric` has no gather under way, and must outlive this
  // object. A rank is silent if it takes longer than `timeout` to join a round.
  Rounds(Fabric* fabric, const char* call, absl::Duration timeout);

  // How a rank stands.
  struct Standing {
    bool done = false;   // never taken back
    bool moved = false;  // since the last Poll, or it waits for a system, which counts as much
  };
  // To be called again and again until it returns true or an error. `own` that is not OK: this rank
  // has failed, for good. True: all ranks are done. An error: some rank has failed, which all ranks
  // hear in the same round; or out_of_step().
  absl::StatusOr<bool> Poll(const Standing& standing, const absl::Status& own, int64_t now_ns);

  // When a rank has last been heard to have moved, this one included; at first, when this object
  // was made. On MonotonicNs's clock.
  int64_t moved_ns() const { return moved_ns_; }

  // After an error: a rank is silent, or the fabric has failed. Ranks may see different things, and
  // a gather may be under way.
  bool out_of_step() const { return out_of_step_; }

 private:
  absl::Status Begin(bool done, const absl::Status& own, int64_t now_ns);
  absl::StatusOr<bool> End(const absl::Status& own, int64_t now_ns);

  Fabric* const fabric_;
  const char* const call_;
  const int64_t timeout_ns_;
  bool moved_ = false;  // this rank, since the last round began
  int64_t moved_ns_;
  bool gathers_ = false;
  bool out_of_step_ = false;
  int64_t since_ns_;  // when this round began, or the last one ended
  std::vector<std::byte> all_;
  std::vector<int> missing_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_PEERS_ROUNDS_H_
