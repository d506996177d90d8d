// All ranks in one process, without MPI: a tensor that lies by rows over four ranks comes to lie by
// columns. Every element is checked.
//
//   one_process
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

float ElementAt(int64_t row, int64_t column) { return static_cast<float>(row * kColumns + column); }

// One rank's part: its rows go, and its columns come.
absl::Status MoveAndCheck(std::unique_ptr<sluice::Fabric> fabric) {
  absl::StatusOr<std::unique_ptr<sluice::Session>> session =
      sluice::Session::Create(std::move(fabric), {});
  if (!session.ok()) return session.status();
  const int64_t rank = (*session)->rank();

  const absl::StatusOr<sluice::Mesh> mesh = sluice::Mesh::Create({kRanks}, {0, 1, 2, 3});
  if (!mesh.ok()) return mesh.status();
  sluice::TensorTransfer tensor;
  tensor.name = "weight";
  tensor.shape = {kRows, kColumns};
  tensor.src = {*mesh, {sluice::Placement::Shard(0)}};
  tensor.dst = {*mesh, {sluice::Placement::Shard(1)}};
  const absl::StatusOr<sluice::Transfer*> transfer = (*session)->Compile({{tensor}});
  if (!transfer.ok()) return transfer.status();

  constexpr int64_t kOwnRows = kRows / kRanks;
  constexpr int64_t kOwnColumns = kColumns / kRanks;
  std::vector<float> src;
  for (int64_t row = rank * kOwnRows; row < (rank + 1) * kOwnRows; ++row) {
    for (int64_t column = 0; column < kColumns; ++column) src.push_back(ElementAt(row, column));
  }
  std::vector<float> dst(kRows * kOwnColumns);
  const std::vector<sluice::TensorView> src_views = {
      sluice::DenseView(src.data(), {kOwnRows, kColumns}, sluice::DType::kF32)};
  const std::vector<sluice::TensorView> dst_views = {
      sluice::DenseView(dst.data(), {kRows, kOwnColumns}, sluice::DType::kF32)};
  const auto run = (*session)->Start(*transfer, src_views, dst_views);
  if (!run.ok()) return run.status();
  if (absl::Status status = run->Wait(); !status.ok()) return status;

  size_t at = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = rank * kOwnColumns; column < (rank + 1) * kOwnColumns; ++column) {
      if (dst[at++] != ElementAt(row, column)) return absl::DataLossError("a wrong element");
    }
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
