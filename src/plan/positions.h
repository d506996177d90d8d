// Positions of ranks among those of several meshes, in ascending rank order.
#ifndef SLUICE_SRC_PLAN_POSITIONS_H_
#define SLUICE_SRC_PLAN_POSITIONS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "sluice/layout.h"

namespace sluice {

// A bit for each rank of the job, and how many are set before each word.
class Positions {
 public:
  // The mesh must live until Number.
  void Add(const Mesh& mesh);
  // Once all meshes are there.
  void Number();

  int64_t Of(int rank) const;  // of a rank of some mesh
  int64_t count() const { return count_; }

 private:
  absl::flat_hash_set<const void*> seen_;
  std::vector<uint64_t> words_;
  std::vector<int32_t> before_;  // parallel to words_
  int64_t count_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_POSITIONS_H_
