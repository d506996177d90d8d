// Numbering by text that says all that matters.
#include "plan/tensor_classes.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plan/plan.h"

namespace sluice {
namespace {

bool HasReplicas(const Layout& layout) {
  for (size_t m = 0; m < layout.placements.size(); ++m) {
    if (layout.placements[m].kind == Placement::Kind::kReplicate && layout.mesh.sizes()[m] > 1) {
      return true;
    }
  }
  return false;
}

int NumberOf(const std::string& key, absl::flat_hash_map<std::string, int>* index) {
  return index->try_emplace(key, static_cast<int>(index->size())).first->second;
}

}  // namespace

TensorClasses::Numbers TensorClasses::Of(const TensorTransfer& tensor) {
  std::string layouts;
  AppendLayout(tensor.src, &layouts);
  AppendLayout(tensor.dst, &layouts);
  const std::string whole = layouts;
  AppendSlice(tensor.src, &layouts);
  AppendSlice(tensor.dst, &layouts);
  std::string key = absl::StrCat(NumberOf(layouts, &by_layouts_), ":", DTypeBytes(tensor.src_dtype),
                                 ":", DTypeBytes(tensor.dst_dtype), ":");
  for (int64_t size : tensor.shape) absl::StrAppend(&key, size, ",");
  const bool parties = IsReduced(tensor) || HasReplicas(tensor.dst);
  // Which ranks share an element does not depend on where it lies.
  return {NumberOf(key, &by_key_), parties ? NumberOf(whole, &by_party_layouts_) : 0};
}

void TensorClasses::AppendLayout(const Layout& layout, std::string* key) {
  absl::StrAppend(key, "|", MeshNumber(layout.mesh));
  for (const Placement& placement : layout.placements) {
    absl::StrAppend(key, ",", PlacementName(placement));
  }
  if (!IsLeftToRight(layout)) absl::StrAppend(key, ":", absl::StrJoin(layout.order, ","));
}

void TensorClasses::AppendSlice(const Layout& layout, std::string* key) {
  absl::StrAppend(key, "/");
  if (layout.whole.empty()) return;
  absl::StrAppend(key, absl::StrJoin(layout.whole, ","), "+", absl::StrJoin(layout.offset, ","));
}

int TensorClasses::MeshNumber(const Mesh& mesh) {
  const auto [known, added] = by_identity_.try_emplace(mesh.identity(), 0);
  if (!added) return known->second;
  meshes_.push_back(mesh);
  const absl::Span<const int64_t> sizes = mesh.sizes();
  const absl::Span<const int> ranks = mesh.ranks();
  const int next = static_cast<int>(by_content_.size());
  const auto it = by_content_
                      .try_emplace({std::vector<int64_t>(sizes.begin(), sizes.end()),
                                    std::vector<int>(ranks.begin(), ranks.end())},
                                   next)
                      .first;
  return known->second = it->second;
}

}  // namespace sluice
