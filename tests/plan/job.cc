// Random and hand-made transfers for tests.
#include "plan/job.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"
#include "tensor/cast.h"

namespace sluice::oracle {
namespace {

std::vector<int> RandomNodes(Dice* dice, int ranks) {
  std::vector<int> nodes(static_cast<size_t>(ranks));
  const int64_t kind = dice->Between(0, 3);
  const int64_t per_node = dice->Between(1, 4);
  for (int r = 0; r < ranks; ++r) {
    int64_t node = 0;
    if (kind == 1) node = r;
    if (kind == 2) node = r / per_node;
    if (kind == 3) node = dice->Between(0, 2) * 5;
    nodes[static_cast<size_t>(r)] = static_cast<int>(node);
  }
  return nodes;
}

// The ranks that the two sides may use: equal, overlapping or disjoint sets.
std::pair<std::vector<int>, std::vector<int>> RandomSides(Dice* dice, int ranks) {
  std::vector<int> all = RankRange(0, ranks);
  const int64_t kind = dice->Between(0, 2);
  if (ranks == 1 || kind == 0) return {all, all};
  dice->Shuffle(&all);
  const int64_t cut = dice->Between(1, ranks - 1);
  std::vector<int> src(all.begin(), all.begin() + cut);
  if (kind == 1) return {src, std::vector<int>(all.begin() + cut, all.end())};
  return {src, std::vector<int>(all.begin() + dice->Between(0, cut), all.end())};
}

int64_t RandomBucketBytes(Dice* dice) {
  switch (dice->Between(0, 4)) {
    case 0:
      return dice->Between(16, 40);
    case 1:
      return dice->Between(41, 300);
    case 2:
      return dice->Between(300, 3000);
    case 3:
      return int64_t{1} << dice->Between(4, 14);
    default:
      return int64_t{8} << 20;
  }
}

// Equal ones mostly; else two floating ones.
void RandomDTypes(Dice* dice, const std::vector<DType>& dtypes, TensorTransfer* tensor) {
  tensor->src_dtype = tensor->dst_dtype = dice->Pick(dtypes);
  if (!dice->Chance(35)) return;
  const std::vector<DType> floating = {DType::kF64,  DType::kF32,    DType::kF16,
                                       DType::kBF16, DType::kF8E4M3, DType::kF8E5M2};
  tensor->src_dtype = dice->Pick(floating);
  tensor->dst_dtype = dice->Pick(floating);
}

Layout RandomLayout(Dice* dice, const Mesh& mesh, absl::Span<const int64_t> shape,
                    bool may_be_slice = true) {
  Layout layout;
  layout.mesh = mesh;
  layout.placements = RandomPlacements(dice, mesh, static_cast<int>(shape.size()));
  if (may_be_slice) RandomSlice(dice, shape, &layout);
  layout.order = RandomOrder(dice, mesh);
  return layout;
}

// Turns each placement into replication, `percent` times in a hundred.
void Replicate(Dice* dice, int percent, Layout* layout) {
  for (Placement& placement : layout->placements) {
    if (dice->Chance(percent)) placement = Placement::Replicate();
  }
}

// The same with contributions.
void MakePartial(Dice* dice, int percent, Layout* layout) {
  for (Placement& placement : layout->placements) {
    if (!dice->Chance(percent)) continue;
    placement = Placement::Partial(dice->Pick<ReduceOp>(
        {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kProduct}));
  }
}

// Each level of a reduction needs room for an element in a bucket.
void MakeRoomForLevels(Job* job) {
  for (const TensorTransfer& tensor : job->spec.tensors) {
    const auto levels = static_cast<int64_t>(tensor.src.placements.size());
    if (IsReduced(tensor)) job->bucket_bytes = std::max(job->bucket_bytes, 8 * (levels + 1));
  }
}

}  // namespace

Job RandomJob(uint64_t seed) {
  Dice dice(seed);
  Job job;
  const auto ranks = static_cast<int>(dice.Between(1, 12));
  job.node_of_rank = RandomNodes(&dice, ranks);
  job.bucket_bytes = RandomBucketBytes(&dice);
  job.max_in_flight = static_cast<int>(dice.Between(1, 3));
  job.spec.priority_class = static_cast<int>(dice.Between(0, kPriorityClasses - 1));
  // Tensors of a model usually share their meshes.
  const bool share = dice.Chance(60);
  const bool windows = dice.Chance(30);
  const int64_t elements_max = std::min<int64_t>(2500, job.bucket_bytes * 12);
  auto [src_ranks, dst_ranks] = RandomSides(&dice, ranks);
  Mesh src_mesh = RandomMesh(&dice, src_ranks);
  Mesh dst_mesh = RandomMesh(&dice, dst_ranks);
  const int64_t tensors = dice.Between(1, 4);
  for (int64_t t = 0; t < tensors; ++t) {
    if (t > 0 && !share) {
      std::tie(src_ranks, dst_ranks) = RandomSides(&dice, ranks);
      src_mesh = RandomMesh(&dice, src_ranks);
      dst_mesh = RandomMesh(&dice, dst_ranks);
    }
    TensorTransfer tensor;
    tensor.name = absl::StrCat("t", t);
    tensor.shape = RandomShape(&dice, dice.Chance(80) ? 3 : 8, elements_max);
    RandomDTypes(&dice, AllDTypes(), &tensor);
    tensor.src = RandomLayout(&dice, src_mesh, tensor.shape);
    tensor.dst = RandomLayout(&dice, dst_mesh, tensor.shape);
    const bool reducible = ReductionExists(tensor.src_dtype);
    if (dice.Chance(40) && reducible) MakePartial(&dice, 50, &tensor.src);
    if (dice.Chance(30)) Replicate(&dice, 60, &tensor.dst);
    if (windows) tensor.window = dice.Pick<int>({0, 1, 2, kMaxWindow});
    job.spec.tensors.push_back(std::move(tensor));
  }
  MakeRoomForLevels(&job);
  job.slots = dice.Pick<int64_t>({0, 1, 4, 16});
  return job;
}

Job RandomLargeJob(uint64_t seed) {
  Dice dice(seed);
  Job job;
  // Few sources and many targets make trees.
  const bool fans_out = dice.Chance(50);
  const auto ranks = static_cast<int>(fans_out ? dice.Between(6, 12) : dice.Between(3, 8));
  job.node_of_rank = RandomNodes(&dice, ranks);
  job.bucket_bytes = dice.Pick<int64_t>({30000, 100001, int64_t{1} << 20});
  auto [src_ranks, dst_ranks] = RandomSides(&dice, ranks);
  if (fans_out) {
    src_ranks.resize(std::min<size_t>(src_ranks.size(), 3));
    dst_ranks = RankRange(0, ranks);
  }
  const Mesh src_mesh = RandomMesh(&dice, src_ranks);
  const Mesh dst_mesh = RandomMesh(&dice, dst_ranks);
  const int64_t tensors = dice.Between(1, 2);
  for (int64_t t = 0; t < tensors; ++t) {
    TensorTransfer tensor;
    tensor.name = absl::StrCat("large", t);
    tensor.shape = dice.Pick<std::vector<int64_t>>(
        {{60000}, {300, 200}, {7, 9000}, {1300, 47}, {20, 30, 100}, {3, 4, 5, 1000}, {21000}});
    RandomDTypes(&dice, {DType::kF64, DType::kI64, DType::kF32, DType::kBF16}, &tensor);
    const bool slices = dice.Chance(10);  // of which few parts are large enough to be passed on
    tensor.src = RandomLayout(&dice, src_mesh, tensor.shape, slices);
    tensor.dst = RandomLayout(&dice, dst_mesh, tensor.shape, slices);
    Replicate(&dice, 50, &tensor.src);
    Replicate(&dice, fans_out ? 90 : 50, &tensor.dst);
    if (dice.Chance(35)) MakePartial(&dice, 60, &tensor.src);
    job.spec.tensors.push_back(std::move(tensor));
  }
  job.slots = dice.Pick<int64_t>({0, 1, 4, 16});
  return job;
}

Job RandomReductionJob(uint64_t seed) {
  Dice dice(seed);
  Job job;
  const auto ranks = static_cast<int>(dice.Between(4, 12));
  const int64_t per_node = dice.Between(2, 4);
  for (int rank = 0; rank < ranks; ++rank) {
    job.node_of_rank.push_back(static_cast<int>(rank / per_node));
  }
  job.bucket_bytes = dice.Pick<int64_t>({3000, 100001, int64_t{1} << 20});
  const auto sources = static_cast<int>(dice.Between(ranks / 2, ranks));
  const Mesh src_mesh = dice.Chance(50) && sources % 2 == 0
                            ? *Mesh::Create({2, sources / 2}, RankRange(0, sources))
                            : *Mesh::Create({sources}, RankRange(0, sources));
  const Mesh dst_mesh = RandomMesh(&dice, RankRange(0, ranks));
  const int64_t tensors = dice.Between(1, 2);
  for (int64_t t = 0; t < tensors; ++t) {
    TensorTransfer tensor;
    tensor.name = absl::StrCat("reduced", t);
    tensor.shape = dice.Pick<std::vector<int64_t>>({{130, 140}, {3, 6000}, {20, 30}, {12000}});
    RandomDTypes(&dice, {DType::kF64, DType::kI64, DType::kF32}, &tensor);
    tensor.src = RandomLayout(&dice, src_mesh, tensor.shape);
    tensor.dst = RandomLayout(&dice, dst_mesh, tensor.shape);
    MakePartial(&dice, 80, &tensor.src);
    Replicate(&dice, 40, &tensor.dst);
    // Little and much in equal layouts join. A slice is of one shape.
    if (t > 0 && job.spec.tensors[0].shape.size() == tensor.shape.size() && dice.Chance(70)) {
      TensorTransfer other = job.spec.tensors[0];
      other.shape = tensor.shape;
      for (Layout* layout : {&other.src, &other.dst}) {
        layout->whole.clear();
        layout->offset.clear();
      }
      tensor = std::move(other);
    }
    job.spec.tensors.push_back(std::move(tensor));
  }
  job.slots = dice.Pick<int64_t>({0, 1, 4, 16});
  return job;
}

absl::StatusOr<std::vector<Plan>> PlanAllRanks(const Job& job) {
  if (const absl::Status status = ValidateSpec(job.spec, job.ranks()); !status.ok()) return status;
  std::vector<Plan> plans;
  for (int rank = 0; rank < job.ranks(); ++rank) {
    absl::StatusOr<Plan> plan = MakePlan(job.spec, job.options(), rank);
    if (!plan.ok()) return plan.status();
    plans.push_back(*std::move(plan));
  }
  return plans;
}

std::vector<Plan> Plans(const Job& job) {
  auto plans = PlanAllRanks(job);
  EXPECT_TRUE(plans.ok()) << plans.status();
  return *std::move(plans);
}

std::string Describe(const Job& job) {
  std::string text = absl::StrCat(
      job.ranks(), " ranks on nodes [", absl::StrJoin(job.node_of_rank, ","), "], bucket_bytes ",
      job.bucket_bytes, ", max_in_flight ", job.max_in_flight, ", slots ", job.slots,
      job.relay ? "" : ", no relays", job.coalesce ? "" : ", each chunk a bucket");
  for (const TensorTransfer& tensor : job.spec.tensors) {
    absl::StrAppend(&text, "\n  ", tensor.name, " window ", tensor.window, " ",
                    DTypeName(tensor.src_dtype), " from ", Describe(tensor.src, tensor.shape),
                    "\n    to ", DTypeName(tensor.dst_dtype), " ",
                    Describe(tensor.dst, tensor.shape));
  }
  return text;
}

TensorTransfer MakeTensor(std::string name, std::vector<int64_t> shape, DType dtype, Layout src,
                          Layout dst) {
  return {std::move(name), std::move(shape), dtype, dtype, std::move(src), std::move(dst), 0};
}

}  // namespace sluice::oracle
