// Hashes of what ranks must agree on.
#include "absl/container/flat_hash_map.h"
#include "plan/plan.h"
#include "tensor/stable_hash.h"

namespace sluice {
namespace {

// Meshes and lists of boxes are large and shared between tensors: each is hashed once.
class MeshHashes {
 public:
  uint64_t Of(const BoxList& boxes) {
    const auto [it, added] = by_identity_.try_emplace(boxes.identity(), 0);
    if (added) {
      StableHash hash;
      hash.Add(boxes.ranks().size());
      for (const RankBoxes& of : boxes.ranks()) {
        hash.AddSigned(of.rank);
        hash.Add(of.boxes.size());
        for (const Box& box : of.boxes) {
          for (const int64_t number : box.offset) hash.AddSigned(number);
          for (const int64_t number : box.shape) hash.AddSigned(number);
        }
      }
      it->second = hash.value();
    }
    return it->second;
  }
  uint64_t Of(const Mesh& mesh) {
    const auto [it, added] = by_identity_.try_emplace(mesh.identity(), 0);
    if (added) {
      StableHash hash;
      hash.Add(mesh.sizes().size());
      for (int64_t size : mesh.sizes()) hash.AddSigned(size);
      for (int rank : mesh.ranks()) hash.AddSigned(rank);
      it->second = hash.value();
    }
    return it->second;
  }

 private:
  absl::flat_hash_map<const void*, uint64_t> by_identity_;
};

void AddLayout(const Layout& layout, MeshHashes* meshes, StableHash* hash) {
  hash->Add(meshes->Of(layout.mesh));
  hash->Add(layout.placements.size());
  for (const Placement& placement : layout.placements) {
    hash->Add(static_cast<uint64_t>(placement.kind));
    hash->AddSigned(placement.dim);
    hash->AddSigned(placement.split_factor);
    hash->Add(static_cast<uint64_t>(placement.op));
  }
  hash->Add(IsLeftToRight(layout) ? 0 : layout.order.size());
  if (!IsLeftToRight(layout)) {
    for (const int dim : layout.order) hash->AddSigned(dim);
  }
  for (const auto* of_dims : {&layout.whole, &layout.offset}) {
    hash->Add(of_dims->size());
    for (const int64_t number : *of_dims) hash->AddSigned(number);
  }
  hash->Add(layout.boxes.empty() ? 0 : meshes->Of(layout.boxes));
}

}  // namespace

PlanHash HashPlan(const TransferSpec& spec, const PlanOptions& options) {
  StableHash names, tensors, layouts, knobs, all;
  MeshHashes meshes;
  names.Add(spec.tensors.size());
  for (const TensorTransfer& tensor : spec.tensors) {
    names.AddText(tensor.name);
    tensors.Add(tensor.shape.size());
    for (int64_t size : tensor.shape) tensors.AddSigned(size);
    tensors.Add(static_cast<uint64_t>(tensor.src_dtype));
    tensors.Add(static_cast<uint64_t>(tensor.dst_dtype));
    knobs.AddSigned(tensor.window);
    AddLayout(tensor.src, &meshes, &layouts);
    AddLayout(tensor.dst, &meshes, &layouts);
  }
  knobs.AddSigned(spec.priority_class);
  knobs.AddSigned(options.bucket_bytes);
  knobs.AddSigned(options.max_in_flight);
  knobs.Add(options.node_of_rank.size());
  for (int node : options.node_of_rank) knobs.AddSigned(node);
  knobs.AddSigned(options.slots);
  knobs.Add(options.relay ? 1 : 0);
  knobs.Add(options.coalesce ? 1 : 0);
  knobs.AddSigned(options.slot_bytes);
  knobs.AddSigned(options.cache_bytes);
  PlanHash hash{names.value(), tensors.value(), layouts.value(), knobs.value(), 0};
  for (uint64_t part : {hash.names, hash.tensors, hash.layouts, hash.options}) all.Add(part);
  hash.all = all.value();
  return hash;
}

}  // namespace sluice
