// Tensors and layouts of each family.
#include "sim/families.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "sluice/layout.h"
#include "tensor/error_text.h"

namespace sluice::sim {
namespace {

constexpr int kRanksMax = 1 << 17;  // a BucketId names no more

// Ranks `first`, `first` + 1, .. in a grid. The sizes are known to be good.
Mesh Grid(std::vector<int64_t> sizes, int first) {
  const int64_t count =
      std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  std::vector<int> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return *Mesh::Create(std::move(sizes), std::move(ranks));
}

absl::Status CheckPowerOfTwo(const FamilyOptions& options) {
  if (options.ranks >= 4 && (options.ranks & (options.ranks - 1)) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(options.ranks, " ranks; the family has powers of two from 4 on"));
}

// Rows of 4 KiB, as many as the bytes of a pair give, to be packed.
int64_t RowBytes(const FamilyOptions& options) {
  constexpr int64_t kRowBytesMax = 4096;
  return std::min(kRowBytesMax, options.pair_bytes);
}

absl::Status CheckAllToAll(const FamilyOptions& options) {
  const int64_t row = RowBytes(options);
  if (row % 2 == 0 && options.pair_bytes % row == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("family all-to-all: ", options.pair_bytes,
                   " bytes per pair; it has even numbers below 4096 and multiples of 4096"));
}

void AllToAll(const FamilyOptions& options, Job* job) {
  const int64_t row = RowBytes(options);
  TensorTransfer tensor;
  tensor.name = "matrix";
  tensor.src_dtype = tensor.dst_dtype = DType::kBF16;
  tensor.shape = {options.ranks * (options.pair_bytes / row), options.ranks * (row / 2)};
  const Mesh mesh = Grid({options.ranks}, 0);
  tensor.src = {mesh, {Placement::Shard(0)}};
  tensor.dst = {mesh, {Placement::Shard(1)}};
  job->spec.tensors.push_back(std::move(tensor));
  // Whole nodes turn into each other.
  if (options.ranks % options.ranks_per_node == 0) job->period = options.ranks_per_node;
}

absl::Status CheckPeers(const FamilyOptions& options) {
  if (options.pair_bytes % 2 == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("family peers: ", options.pair_bytes, " bytes per pair; it must be even"));
}

void Peers(const FamilyOptions& options, Job* job) {
  const int64_t elements = options.pair_bytes / 2;
  const Mesh src = Grid({options.ranks}, 0);
  std::vector<int> ranks(src.ranks().begin(), src.ranks().end());
  const int peers = std::min(options.peers, options.ranks - 1);
  for (int p = 1; p <= peers; ++p) {
    std::rotate(ranks.begin(), ranks.begin() + 1, ranks.end());
    TensorTransfer tensor;
    tensor.name = absl::StrCat("to ", p, " on");
    tensor.src_dtype = DType::kF32;
    tensor.dst_dtype = DType::kBF16;
    tensor.shape = {options.ranks * elements};
    tensor.src = {src, {Placement::Shard(0)}};
    tensor.dst = {*Mesh::Create({options.ranks}, ranks), {Placement::Shard(0)}};
    job->spec.tensors.push_back(std::move(tensor));
  }
  if (options.ranks % options.ranks_per_node == 0) job->period = options.ranks_per_node;
}

void AddWeight(std::string name, std::vector<int64_t> shape, Layout src, Layout dst, Job* job) {
  TensorTransfer tensor;
  tensor.name = std::move(name);
  tensor.src_dtype = tensor.dst_dtype = DType::kBF16;
  tensor.shape = std::move(shape);
  tensor.src = std::move(src);
  tensor.dst = std::move(dst);
  job->spec.tensors.push_back(std::move(tensor));
}

// A weight as tensor parallelism cuts it: along `dim`, or not at all.
struct Weight {
  const char* name;
  std::vector<int64_t> shape;
  int dim;
};
constexpr int kWhole = -1;

void FsdpTp(const FamilyOptions& options, Job* job) {
  const int half = options.ranks / 2;
  const int tp = std::min(8, half);
  const int fsdp = std::min(64, half / tp);
  const Mesh src = Grid({half / fsdp / tp, fsdp, tp}, 0);
  const Mesh dst = Grid({half / tp, tp}, half);
  const Weight weights[] = {
      {"q_proj", {8192, 8192}, 0},     {"k_proj", {1024, 8192}, 0},
      {"v_proj", {1024, 8192}, 0},     {"o_proj", {8192, 8192}, 1},
      {"gate_proj", {28672, 8192}, 0}, {"up_proj", {28672, 8192}, 0},
      {"down_proj", {8192, 28672}, 1}, {"input_norm", {8192}, kWhole},
      {"mlp_norm", {8192}, kWhole},
  };
  const Placement all = Placement::Replicate();
  for (const Weight& weight : weights) {
    // FSDP cuts rows of what tensor parallelism has cut.
    const Placement rows =
        weight.dim == 0 && tp > 1 ? Placement::StridedShard(0, tp) : Placement::Shard(0);
    const Placement part = weight.dim == kWhole ? all : Placement::Shard(weight.dim);
    AddWeight(weight.name, weight.shape, {src, {all, rows, part}}, {dst, {all, part}}, job);
  }
}

void PpEpTpDp(const FamilyOptions& options, Job* job) {
  const int half = options.ranks / 2;
  const int stages = std::min(8, half / 2);
  const int stage_ranks = half / stages;
  const int src_tp = std::min(4, stage_ranks);
  const int src_ep = std::min(16, stage_ranks);
  const int dst_tp = std::min(8, half);
  const int dst_ep = std::min(32, half);
  const Mesh dst_dense = Grid({half / dst_tp, dst_tp}, half);
  const Mesh dst_experts = Grid({half / dst_ep, dst_ep}, half);
  const Weight weights[] = {{"q_proj", {8192, 4096}, 0},
                            {"k_proj", {512, 4096}, 0},
                            {"v_proj", {512, 4096}, 0},
                            {"o_proj", {4096, 8192}, 1},
                            {"router", {128, 4096}, kWhole}};
  const Placement all = Placement::Replicate();
  for (int stage = 0; stage < stages; ++stage) {
    const int first = stage * stage_ranks;
    const Mesh src_dense = Grid({stage_ranks / src_tp, src_tp}, first);
    const Mesh src_experts = Grid({stage_ranks / src_ep, src_ep}, first);
    const auto name = [stage](absl::string_view of) {
      return absl::StrCat("layer ", stage, " ", of);
    };
    for (const Weight& weight : weights) {
      const Placement part = weight.dim == kWhole ? all : Placement::Shard(weight.dim);
      AddWeight(name(weight.name), weight.shape, {src_dense, {all, part}}, {dst_dense, {all, part}},
                job);
    }
    for (const char* expert : {"gate_proj", "up_proj", "down_proj"}) {
      const Placement part = Placement::Shard(0);
      AddWeight(name(expert), {128, 1536, 4096}, {src_experts, {all, part}},
                {dst_experts, {all, part}}, job);
    }
  }
}

struct Family {
  const char* name;
  absl::Status (*check)(const FamilyOptions& options);
  void (*make)(const FamilyOptions& options, Job* job);
};
constexpr Family kFamilies[] = {{"fsdp-tp", CheckPowerOfTwo, FsdpTp},
                                {"pp-ep-tp-dp", CheckPowerOfTwo, PpEpTpDp},
                                {"all-to-all", CheckAllToAll, AllToAll},
                                {"peers", CheckPeers, Peers}};

absl::Status CheckOptions(const FamilyOptions& options) {
  if (options.ranks < 2 || options.ranks > kRanksMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.ranks, " ranks; a family has 2 to ", kRanksMax));
  }
  if (options.peers < 1) {
    return absl::InvalidArgumentError(absl::StrCat(options.peers, " peers; at least 1"));
  }
  if (options.pair_bytes < 2 || options.pair_bytes > int64_t{1} << 36) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.pair_bytes, " bytes per pair; 2 to 2^36"));
  }
  if (options.ranks_per_node < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.ranks_per_node, " ranks per node; at least 1"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> FamilyNames() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.name);
  return names;
}

absl::Status CheckFamily(absl::string_view name, const FamilyOptions& options) {
  for (const Family& family : kFamilies) {
    if (name != family.name) continue;
    SLUICE_RETURN_IF_ERROR(CheckOptions(options));
    return family.check(options);
  }
  return absl::NotFoundError(absl::StrCat("there is no family '", name, "'; there are ",
                                          absl::StrJoin(FamilyNames(), ", ")));
}

absl::StatusOr<Job> MakeFamily(absl::string_view name, const FamilyOptions& options) {
  SLUICE_RETURN_IF_ERROR(CheckFamily(name, options));
  Job job;
  job.name = absl::StrCat(name, "-", options.ranks);
  job.ranks = options.ranks;
  job.bucket_bytes = options.bucket_bytes;
  job.max_in_flight = options.max_in_flight;
  for (int rank = 0; rank < options.ranks; ++rank) {
    job.node_of_rank.push_back(rank / options.ranks_per_node);
  }
  for (const Family& family : kFamilies) {
    if (name == family.name) family.make(options, &job);
  }
  return job;
}

}  // namespace sluice::sim
