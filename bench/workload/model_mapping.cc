// From a tensor's name and a side's parallelism to a layout.
#include "workload/model_mapping.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "sluice/status.h"
#include "workload/json_input.h"

namespace sluice::bench {
namespace {

// The projections of attention and MLP blocks by the module that holds them. The first halves of
// factored projections (q_a_proj, kv_a_proj_with_mqa) feed a norm and are not cut.
constexpr absl::string_view kColumnModules[] = {
    "q_proj",    "k_proj",  "v_proj",       "qkv_proj",     "q_b_proj", "kv_b_proj",
    "gate_proj", "up_proj", "gate_up_proj", "embed_tokens", "lm_head"};
constexpr absl::string_view kRowModules[] = {"o_proj", "down_proj"};

template <size_t N>
bool Contains(const absl::string_view (&names)[N], absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Pipeline stages hold equal blocks of layers, the last ones perhaps fewer.
int64_t StageOf(const ModelTensor& tensor, const Model& model, int64_t stages) {
  if (tensor.layer) {
    const int64_t block = (model.layers + stages - 1) / stages;
    return *tensor.layer / block;
  }
  return absl::StrContains(tensor.name, "embed_tokens") ? 0 : stages - 1;
}

Placement FsdpPlacement(TensorParallel parallel, size_t weight_dim, const Parallelism& side) {
  if (side.fsdp_size == 1) return Placement::Replicate();
  // Where tp cuts dimension 0 too, tp cuts first: that is a strided shard.
  const bool tp_cuts_dim_0 = parallel == TensorParallel::kColumn && weight_dim == 0;
  return tp_cuts_dim_0 && side.tp_size > 1 ? Placement::StridedShard(0, side.tp_size)
                                           : Placement::Shard(0);
}

Placement TpPlacement(TensorParallel parallel, size_t weight_dim, const Parallelism& side) {
  if (side.tp_size == 1 || parallel == TensorParallel::kReplicate) return Placement::Replicate();
  const size_t cut = weight_dim + (parallel == TensorParallel::kRow ? 1 : 0);
  return Placement::Shard(static_cast<int>(cut));
}

// Makes meshes over consecutive ranks, one object for each: thousands of tensors share a few.
class MeshPool {
 public:
  absl::StatusOr<Mesh> Get(std::vector<int64_t> sizes, int first_rank) {
    const auto key = std::make_pair(sizes, first_rank);
    const auto found = meshes_.find(key);
    if (found != meshes_.end()) return found->second;
    const int64_t count =
        std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
    std::vector<int> ranks(static_cast<size_t>(count));
    std::iota(ranks.begin(), ranks.end(), first_rank);
    auto mesh = Mesh::Create(std::move(sizes), std::move(ranks));
    if (mesh.ok()) meshes_.emplace(key, *mesh);
    return mesh;
  }

 private:
  std::map<std::pair<std::vector<int64_t>, int>, Mesh> meshes_;
};

absl::StatusOr<Layout> PooledLayoutOf(const ModelTensor& tensor, const Model& model,
                                      const Parallelism& side, int first_rank, MeshPool* pool) {
  const int64_t n = side.stage_ranks();
  const int first = first_rank + static_cast<int>(StageOf(tensor, model, side.pp_size) * n);
  if (tensor.stacked_experts && side.ep_size > 1) {
    SLUICE_ASSIGN_OR_RETURN(auto mesh, pool->Get({n / side.ep_size, side.ep_size}, first));
    return Layout{std::move(mesh), {Placement::Replicate(), Placement::Shard(0)}};
  }
  const int64_t cut = side.fsdp_size * side.tp_size;
  SLUICE_ASSIGN_OR_RETURN(auto mesh, pool->Get({n / cut, side.fsdp_size, side.tp_size}, first));
  const TensorParallel parallel = TensorParallelOf(tensor);
  const size_t weight_dim = tensor.stacked_experts ? 1 : 0;
  return Layout{std::move(mesh),
                {Placement::Replicate(), FsdpPlacement(parallel, weight_dim, side),
                 TpPlacement(parallel, weight_dim, side)}};
}

}  // namespace

TensorParallel TensorParallelOf(const ModelTensor& tensor) {
  std::vector<absl::string_view> parts = absl::StrSplit(tensor.name, '.');
  if (parts.back() == "weight") {
    parts.pop_back();
  } else if (!tensor.stacked_experts) {
    return TensorParallel::kReplicate;
  }
  const size_t weight_dims = tensor.shape.size() - (tensor.stacked_experts ? 1 : 0);
  if (parts.empty() || weight_dims != 2) return TensorParallel::kReplicate;
  if (Contains(kColumnModules, parts.back())) return TensorParallel::kColumn;
  if (Contains(kRowModules, parts.back())) return TensorParallel::kRow;
  return TensorParallel::kReplicate;
}

absl::StatusOr<Layout> LayoutOf(const ModelTensor& tensor, const Model& model,
                                const Parallelism& side, int first_rank) {
  MeshPool pool;
  return PooledLayoutOf(tensor, model, side, first_rank, &pool);
}

absl::StatusOr<TransferSpec> MapModel(const Model& model, const System& system) {
  TransferSpec spec;
  MeshPool pool;
  const auto first_generation_rank = static_cast<int>(system.train.num_gpus);
  for (const ModelTensor& tensor : model.tensors) {
    TensorTransfer transfer;
    transfer.name = tensor.name;
    transfer.shape = tensor.shape;
    transfer.src_dtype = transfer.dst_dtype = tensor.dtype;
    SLUICE_ASSIGN_OR_RETURN(
        transfer.src, Prefixed(tensor.name, PooledLayoutOf(tensor, model, system.train, 0, &pool)));
    SLUICE_ASSIGN_OR_RETURN(transfer.dst,
                            Prefixed(tensor.name, PooledLayoutOf(tensor, model, system.generation,
                                                                 first_generation_rank, &pool)));
    for (const Layout* layout : {&transfer.src, &transfer.dst}) {
      SLUICE_RETURN_IF_ERROR(Prefixed(tensor.name, ValidateLayout(*layout, transfer.shape)));
    }
    spec.tensors.push_back(std::move(transfer));
  }
  return spec;
}

}  // namespace sluice::bench
