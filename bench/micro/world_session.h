// A session over the ranks of a world, and what of their times counts: the slowest rank's.
#ifndef SLUICE_BENCH_MICRO_WORLD_SESSION_H_
#define SLUICE_BENCH_MICRO_WORLD_SESSION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "job/ranks.h"
#include "sluice/session.h"
#include "sluice/world.h"

namespace sluice::bench {

// All calls are collective. A world is what scripts/spawn.sh starts.
class WorldSession {
 public:
  static absl::StatusOr<std::unique_ptr<WorldSession>> Join();

  int rank() const { return ranks_->rank(); }
  int size() const { return ranks_->size(); }
  Session* session() const { return session_.get(); }
  absl::Status Barrier();
  // Of each value the largest that any rank has.
  absl::StatusOr<std::vector<double>> Largest(const std::vector<double>& own);
  // Rank 0 prints the text, and writes the other one to `json_file` unless that is empty. Ends the
  // session.
  absl::Status Finish(const std::string& text, const std::string& json,
                      const std::string& json_file);

 private:
  std::unique_ptr<World> world_;
  std::unique_ptr<Ranks> ranks_;
  std::unique_ptr<Session> session_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_MICRO_WORLD_SESSION_H_
