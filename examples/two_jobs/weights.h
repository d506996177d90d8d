// The weights of both programs: what they are, and what each element is worth after a step.
#ifndef SLUICE_EXAMPLES_TWO_JOBS_WEIGHTS_H_
#define SLUICE_EXAMPLES_TWO_JOBS_WEIGHTS_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "sluice/layout.h"
#include "sluice/world.h"

namespace two_jobs {

inline constexpr int kSteps = 3;
inline constexpr int64_t kRows = 1200;
inline constexpr int64_t kColumns = 840;

// `index`: row-major.
inline float ValueAt(int step, int64_t index) {
  return static_cast<float>((index * 7 + int64_t{step} * 13) % 8191);
}

// A line of all members of a role, as ranks of the fabric.
inline sluice::Mesh MeshOf(const sluice::World& world, const std::string& role, int size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(world.FabricRank(role, rank));
  return sluice::Mesh::Create({size}, ranks).value();
}

inline void CheckOk(const char* program, const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", program, status.ToString().c_str());
  std::exit(1);
}

}  // namespace two_jobs

#endif  // SLUICE_EXAMPLES_TWO_JOBS_WEIGHTS_H_
