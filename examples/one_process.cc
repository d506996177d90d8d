// All ranks in one process, without MPI: a tensor that lies by rows over four ranks comes to lie by
// columns. Every element is checked.
//
//   one_process
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/fabric.h"
#include "sluice/session.h"

namespace {

constexpr int kRanks = 4;
constexpr int64_t kRows = 512;
constexpr int64_t kColumns = 1024;

// One rank's part: its rows go, and its columns come.
absl::Status MoveAndCheck(std::unique_ptr<sluice::Fabric> fabric) {
  absl::StatusOr<std::unique_ptr<sluice::Session>> session =
      sluice::Session::Create(std::move(fabric), {});
  if (!session.ok()) return session.status();
  const int rank = (*session)->rank();

  const absl::StatusOr<sluice::Mesh> mesh = sluice::Mesh::Create({kRanks}, {0, 1, 2, 3});
  if (!mesh.ok()) return mesh.status();
  sluice::TensorTransfer tensor;
  tensor.name = "weight";
  tensor.shape = {kRows, kColumns};
  tensor.src = {*mesh, {sluice::Placement::Shard(0)}};
  tensor.dst = {*mesh, {sluice::Placement::Shard(1)}};
  const absl::StatusOr<sluice::Transfer*> transfer = (*session)->Compile({{tensor}});
  if (!transfer.ok()) return transfer.status();

  auto src = sluice::LocalTensor::Create(tensor.src, tensor.shape, tensor.src_dtype, rank);
  if (!src.ok()) return src.status();
  auto dst = sluice::LocalTensor::Create(tensor.dst, tensor.shape, tensor.dst_dtype, rank);
  if (!dst.ok()) return dst.status();
  // Each element is its index in the whole tensor.
  const std::vector<int64_t> from = src->GlobalIndices();
  std::copy(from.begin(), from.end(), src->elements<float>().begin());
  const auto run = (*session)->Start(*transfer, {src->view()}, {dst->view()});
  if (!run.ok()) return run.status();
  if (absl::Status status = run->Wait(); !status.ok()) return status;
  const std::vector<int64_t> to = dst->GlobalIndices();
  if (!std::equal(to.begin(), to.end(), dst->elements<float>().begin())) {
    return absl::DataLossError("a wrong element");
  }
  return (*session)->Close();
}

}  // namespace

int main() {
  auto fabrics = sluice::MakeLocalFabric(kRanks);
  if (!fabrics.ok()) return 1;
  std::atomic<int> failures = 0;
  std::vector<std::thread> ranks;
  for (std::unique_ptr<sluice::Fabric>& fabric : *fabrics) {
    ranks.emplace_back([&fabric, &failures] {
      const absl::Status status = MoveAndCheck(std::move(fabric));
      if (status.ok()) return;
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      ++failures;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  if (failures == 0) std::printf("%d ranks have their columns, all of them right\n", kRanks);
  return failures == 0 ? 0 : 1;
}
