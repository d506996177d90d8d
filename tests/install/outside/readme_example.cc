// The README's SyncModel on 8 ranks: what 4 ranks hold by rows, 4 others must get by columns.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "sluice/tensor.h"

struct Weight {
  std::string name;
  std::vector<int64_t> shape;
  sluice::TensorView part;
};

#include "sync_model.inc"

namespace {

float Expected(int tensor, int64_t row, int64_t column) {
  return static_cast<float>(tensor * 100'000 + row * 100 + column);
}

// Four equal parts in either direction.
constexpr int64_t kRows = 40;
constexpr int64_t kColumns = 12;
constexpr int kTensors = 3;
constexpr int64_t kElements = kRows * kColumns / 4;

int64_t Row(int rank, int64_t i) { return rank < 4 ? rank * (kRows / 4) + i / kColumns : i / 3; }
int64_t Column(int rank, int64_t i) { return rank < 4 ? i % kColumns : (rank - 4) * 3 + i % 3; }

int Check(int rank) {
  std::vector<std::vector<float>> memory(kTensors, std::vector<float>(kElements, -1.0F));
  std::vector<Weight> weights;
  for (int tensor = 0; tensor < kTensors; ++tensor) {
    std::vector<float>& part = memory[static_cast<size_t>(tensor)];
    for (int64_t i = 0; rank < 4 && i < kElements; ++i) {
      part[static_cast<size_t>(i)] = Expected(tensor, Row(rank, i), Column(rank, i));
    }
    const std::vector<int64_t> shape = {rank < 4 ? kRows / 4 : kRows,
                                        rank < 4 ? kColumns : kColumns / 4};
    weights.push_back({"w" + std::to_string(tensor),
                       {kRows, kColumns},
                       sluice::DenseView(part.data(), shape, sluice::DType::kF32)});
  }
  const absl::Status status = SyncModel(weights, 2);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  for (int tensor = 0; tensor < kTensors; ++tensor) {
    for (int64_t i = 0; i < kElements; ++i) {
      const float found = memory[static_cast<size_t>(tensor)][static_cast<size_t>(i)];
      if (found != Expected(tensor, Row(rank, i), Column(rank, i))) {
        std::fprintf(stderr, "rank %d: element %d of tensor %d is %g\n", rank, static_cast<int>(i),
                     tensor, static_cast<double>(found));
        return 1;
      }
    }
  }
  return 0;
}

}  // namespace

int main() { return Check(OrDie(OpenSession())->rank()); }
