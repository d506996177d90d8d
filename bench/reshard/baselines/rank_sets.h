// Communicators of a root and the ranks that it broadcasts to, each made once.
#ifndef SLUICE_BENCH_RESHARD_BASELINES_RANK_SETS_H_
#define SLUICE_BENCH_RESHARD_BASELINES_RANK_SETS_H_

#include <mpi.h>

#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace sluice::bench {

class RankSets {
 public:
  explicit RankSets(MPI_Comm comm) : comm_(comm) {}  // `comm` must outlive it
  ~RankSets();
  RankSets(const RankSets&) = delete;
  RankSets& operator=(const RankSets&) = delete;

  // Collective over `comm`, in the same order on all ranks. `root` is rank 0 of the result, which
  // is null on ranks that are neither root nor listed. Unimplemented past kMost different sets.
  static constexpr size_t kMost = 64;
  absl::StatusOr<MPI_Comm> Get(int root, absl::Span<const int> ranks);

 private:
  MPI_Comm comm_;
  std::map<std::pair<int, std::vector<int>>, MPI_Comm> made_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_BASELINES_RANK_SETS_H_
