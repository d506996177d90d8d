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

inline int Rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

inline int Size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

// A session that shares memory within the node.
inline std::unique_ptr<Session> MakeSession() {
  auto fabric = PatientMpiFabric(MPI_COMM_WORLD);
  EXPECT_TRUE(fabric.ok()) << fabric.status();
  if (!fabric.ok()) return nullptr;
  SessionOptions options;
  options.direct = true;
  auto session = Session::Create(*std::move(fabric), options);
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *std::move(session) : nullptr;
}

// Columns of all ranks' to whole copies on `targets`, of `elements` elements each.
inline TransferSpec ToCopies(std::vector<int> targets, int64_t elements) {
  std::vector<int> ranks(static_cast<size_t>(Size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto copies = static_cast<int64_t>(targets.size());
  TensorTransfer tensor;
  tensor.name = "tensor";
  tensor.shape = {64, elements / 64};
  tensor.src = {*Mesh::Create({Size()}, ranks), {Placement::Shard(1)}};
  tensor.dst = {*Mesh::Create({copies}, std::move(targets)), {Placement::Replicate()}};
  return {{tensor}};
}

}  // namespace sluice::bench

#endif  // SLUICE_MPI_TESTS_BASELINES_RIG_H_
