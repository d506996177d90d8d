// Transfers by construction and by dice.
#include "session/specs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "oracle/random_layout.h"
#include "tensor/cast.h"

namespace sluice::session_test {
namespace {

Layout RandomLayout(oracle::Dice* dice, int size, int dims) {
  std::vector<int> ranks = Ranks(0, size);
  if (dice->Chance(40)) {
    dice->Shuffle(&ranks);
    ranks.resize(static_cast<size_t>(dice->Between(1, size)));
  }
  return oracle::RandomLayout(dice, std::move(ranks), dims);
}

// Equal ones, or any pair of floating ones.
void PickDTypes(oracle::Dice* dice, TensorTransfer* tensor) {
  const std::vector<DType>& all = oracle::AllDTypes();
  const std::vector<DType> floats(all.begin(), all.begin() + 6);
  if (dice->Chance(50)) {
    tensor->src_dtype = dice->Pick(floats);
    tensor->dst_dtype = dice->Pick(floats);
  } else {
    tensor->src_dtype = tensor->dst_dtype = dice->Pick(all);
  }
}

// Makes some placements Partial; At most `levels_max` of them have anything to reduce.
void AddPartial(oracle::Dice* dice, int levels_max, Layout* layout) {
  int levels = 0;
  for (size_t m = 0; m < layout->placements.size(); ++m) {
    const bool reduces = layout->mesh.sizes()[m] > 1;
    if (!dice->Chance(60) || (reduces && levels == levels_max)) continue;
    levels += reduces ? 1 : 0;
    layout->placements[m] = Placement::Partial(
        dice->Pick<ReduceOp>({ReduceOp::kSum, ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax,
                              ReduceOp::kMin, ReduceOp::kProduct}));
  }
}

TensorTransfer RandomTensor(oracle::Dice* dice, int size, int64_t bucket_bytes) {
  const bool partial = dice->Chance(40);
  int64_t elements_max = bucket_bytes < 100 ? 1500 : 12000;
  if (partial) elements_max /= 4;
  TensorTransfer tensor = {.shape = oracle::RandomShape(dice, 4, elements_max)};
  const int dims = static_cast<int>(tensor.shape.size());
  tensor.src = RandomLayout(dice, size, dims);
  tensor.dst = RandomLayout(dice, size, dims);
  PickDTypes(dice, &tensor);
  // A reduction over n mesh dimensions needs buckets of 8 * (n + 1) bytes. Some types have none.
  if (partial && ReductionExists(tensor.src_dtype)) {
    AddPartial(dice, static_cast<int>(std::min<int64_t>(4, bucket_bytes / 8 - 1)), &tensor.src);
  }
  return tensor;
}

}  // namespace

TensorTransfer Moved(std::string name, std::vector<int64_t> shape, DType dtype, Layout src,
                     Layout dst) {
  return {std::move(name), std::move(shape), dtype, dtype, std::move(src), std::move(dst)};
}

ConnectTensor Part(std::string name, std::vector<int64_t> shape, DType dtype, Layout layout,
                   TensorView view) {
  return {{std::move(name), std::move(shape), dtype, std::move(layout), std::move(view)}};
}

TransferSpec Ring(int size, int64_t rows) {
  std::vector<int> next = Ranks(1, size);
  next.push_back(0);
  return {{Moved("t", {rows * size, 1024}, DType::kF64, MakeLayout({size}, Ranks(0, size), "S(0)"),
                 MakeLayout({size}, next, "S(0)"))}};
}

TransferSpec AllToAll(int size, int64_t block_bytes) {
  // Blocks of 8 rows, so that one takes staging on the side that is cut by columns, or on both.
  const int64_t columns = block_bytes / 64;
  return {{Moved("t", {int64_t{8} * size, columns * size}, DType::kF64,
                 MakeLayout({size}, Ranks(0, size), "S(0)"),
                 MakeLayout({size}, Ranks(0, size), "S(1)"))}};
}

TransferSpec FromTo(int src, int dst, std::vector<int64_t> shape) {
  return {{Moved("t", std::move(shape), DType::kF64, MakeLayout({1}, {src}, "R"),
                 MakeLayout({1}, {dst}, "R"))}};
}

TransferSpec OverlappingMeshes(int size) {
  const int sources = (2 * size + 2) / 3, first = size / 3;
  TransferSpec spec;
  for (int64_t i = 0; i < 3; ++i) {
    spec.tensors.push_back(Moved("t", {int64_t{16} * size, 1024 * (i + 1)}, DType::kF32,
                                 MakeLayout({sources}, Ranks(0, sources), "S(0)"),
                                 MakeLayout({size - first}, Ranks(first, size), "S(1)")));
    spec.tensors.back().name = absl::StrCat("t", i);
  }
  return spec;
}

RandomJob MakeRandomJob(uint64_t seed, int size) {
  oracle::Dice dice(seed);
  RandomJob job;
  const int64_t bucket_bytes = dice.Pick<int64_t>({16, 17, 40, 256, 1000, 4096, 65536});
  job.options.bucket_bytes = bucket_bytes;
  job.options.max_in_flight = dice.Pick<int>({1, 1, 2, 3, 8});
  job.options.budget_buckets = dice.Pick<int64_t>({kNoLimit, 1, 1, 2, 3, 16});
  job.options.budget_bytes = dice.Pick<absl::optional<int64_t>>(
      {absl::nullopt, kNoLimit, bucket_bytes, 5 * bucket_bytes + 3});
  const int64_t spec_count = dice.Between(1, 2);
  for (int64_t s = 0; s < spec_count; ++s) {
    TransferSpec spec = {.priority_class = static_cast<int>(dice.Between(0, kPriorityClasses - 1))};
    const int64_t tensors = dice.Between(1, 5);
    const int windows = dice.Pick<int>({1, 1, 2, 4});
    for (int64_t t = 0; t < tensors; ++t) {
      spec.tensors.push_back(RandomTensor(&dice, size, bucket_bytes));
      spec.tensors.back().name = absl::StrCat("t", t);
      spec.tensors.back().window = static_cast<int>(dice.Between(0, windows - 1));
    }
    job.specs.push_back(std::move(spec));
  }
  if (dice.Chance(20)) job.options.bucket_bytes.reset();
  if (dice.Chance(20)) job.options.max_in_flight.reset();
  return job;
}

RandomJob MakeRandomBoxJob(uint64_t seed, int size) {
  RandomJob job = MakeRandomJob(seed, size);
  oracle::Dice dice(seed + 77);
  for (TransferSpec& spec : job.specs) {
    for (TensorTransfer& tensor : spec.tensors) {
      if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) continue;
      Layout boxes;
      if (dice.Chance(60)) {
        boxes.boxes = oracle::RandomBoxes(&dice, tensor.shape, Ranks(0, size), true);
        tensor.src = boxes;
      }
      if (dice.Chance(60)) {
        boxes.boxes = oracle::RandomBoxes(&dice, tensor.shape, Ranks(0, size), false);
        tensor.dst = boxes;
      }
    }
  }
  return job;
}

}  // namespace sluice::session_test
