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

int NumberIn(const std::string& key, absl::flat_hash_map<std::string, int>* index) {
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
  std::string key = absl::StrCat(NumberIn(layouts, &by_layouts_), ":", DTypeBytes(tensor.src_dtype),
                                 ":", DTypeBytes(tensor.dst_dtype), ":");
  for (int64_t size : tensor.shape) absl::StrAppend(&key, size, ",");
  const bool parties = IsReduced(tensor) || HasReplicas(tensor.dst);
  // Which ranks share an element does not depend on where it lies.
  return {NumberIn(key, &by_key_), parties ? NumberIn(whole, &by_party_layouts_) : 0};
}

void TensorClasses::AppendLayout(const Layout& layout, std::string* key) {
  absl::StrAppend(key, "|", NumberOf(layout.mesh));
  if (!layout.boxes.empty()) absl::StrAppend(key, ";", NumberOf(layout.boxes));
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

int TensorClasses::NumberOf(const Mesh& mesh) {
  const auto [known, added] = by_identity_.try_emplace(mesh.identity(), 0);
  if (!added) return known->second;
  meshes_.push_back(mesh);
  return known->second = NumberIn(
             absl::StrCat(absl::StrJoin(mesh.sizes(), ","), ":", absl::StrJoin(mesh.ranks(), ",")),
             &by_content_);
}

int TensorClasses::NumberOf(const BoxList& boxes) {
  const auto [known, added] = by_identity_.try_emplace(boxes.identity(), 0);
  if (!added) return known->second;
  lists_.push_back(boxes);
  std::string key;
  for (const RankBoxes& of : boxes.ranks()) {
    absl::StrAppend(&key, "|", of.rank);
    for (const Box& box : of.boxes) {
      absl::StrAppend(&key, "/", absl::StrJoin(box.offset, ","), "+",
                      absl::StrJoin(box.shape, ","));
    }
  }
  return known->second = NumberIn(key, &by_content_);
}

}  // namespace sluice
