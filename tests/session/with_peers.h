// Ranks as threads that have their dealings with the others, and no session.
#ifndef SLUICE_TESTS_SESSION_WITH_PEERS_H_
#define SLUICE_TESTS_SESSION_WITH_PEERS_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "session/peers/peers.h"
#include "session/world.h"

namespace sluice::session_test {

// A session without streams; counts what it is told.
class CountingHost final : public Peers::Host {
 public:
  bool AdvanceStreams() override { return false; }
  bool has_streams() const override { return false; }
  int64_t next_due_ns() const override { return INT64_MAX; }
  void Fail(const absl::Status& status) override { failures.push_back(status); }
  bool Settle() override { return true; }

  std::vector<absl::Status> failures;
};

struct RankPeers {
  RankPeers(Rank* self, absl::Duration timeout, absl::Duration patience)
      : meet(self->meet), peers(std::move(self->fabric), timeout, &host, patience) {}

  int rank() const { return peers.rank(); }

  std::function<void()> meet;
  CountingHost host;
  Peers peers;
};

// All ranks end together.
inline void WithPeers(int ranks, const std::function<void(RankPeers*)>& body,
                      absl::Duration timeout = absl::Seconds(60),
                      absl::Duration patience = absl::InfiniteDuration()) {
  RunRanks(ranks, [&](Rank& self) {
    RankPeers own(&self, timeout, patience);
    body(&own);
    own.meet();
  });
}

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_SESSION_WITH_PEERS_H_
