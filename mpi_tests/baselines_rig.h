// What the tests of baselines have in common.
#ifndef SLUICE_MPI_TESTS_BASELINES_RIG_H_
#define SLUICE_MPI_TESTS_BASELINES_RIG_H_

#include <mpi.h>

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "patient_fabric.h"
#include "sluice/mpi.h"
#include "sluice/session.h"
#include "sluice/transfer.h"

namespace sluice::bench {

inline constexpr absl::Duration kPatience = absl::Seconds(300);

// A session that shares memory within the node. Throws on error.
inline std::unique_ptr<Session> MakeSession() {
  return Session::Create(PatientMpiFabric(MPI_COMM_WORLD).value(), {.direct = true}).value();
}

// Columns of all ranks' to whole copies on `targets`, of `elements` elements each.
inline TransferSpec ToCopies(std::vector<int> targets, int64_t elements) {
  std::vector<int> ranks(static_cast<size_t>(WorldSize()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto copies = static_cast<int64_t>(targets.size());
  TensorTransfer tensor;
  tensor.name = "tensor";
  tensor.shape = {64, elements / 64};
  tensor.src = {*Mesh::Create({WorldSize()}, ranks), {Placement::Shard(1)}};
  tensor.dst = {*Mesh::Create({copies}, std::move(targets)), {Placement::Replicate()}};
  return {{tensor}};
}

}  // namespace sluice::bench

#endif  // SLUICE_MPI_TESTS_BASELINES_RIG_H_
