// One rank's half of a connection: its tensors, without their memory.
#ifndef SLUICE_SRC_PLAN_CONNECT_HALF_H_
#define SLUICE_SRC_PLAN_CONNECT_HALF_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {

// Limits of all ranks' halves together, when gathered. Without limits a rank could make another one
// run out of memory.
inline constexpr int64_t kHalfBytesMax = int64_t{64} << 20;       // as they are sent
inline constexpr int64_t kHalfNamesBytesMax = int64_t{64} << 20;  // of names, once read
inline constexpr int64_t kHalfTensorsMax = int64_t{1} << 20;
inline constexpr int64_t kHalfKindsMax = kHalfTensorsMax;       // each is some tensor's
inline constexpr int64_t kHalfMeshRanksMax = int64_t{1} << 22;  // of the distinct meshes, summed up
inline constexpr int64_t kHalfBoxesMax = int64_t{1} << 20;  // of the distinct layouts, summed up
// Limits of one name, and of one mesh.
inline constexpr size_t kTensorNameBytesMax = 1024;
inline constexpr size_t kMeshDimsMax = 64;

// The last values of enumerations, from callers and from other ranks.
inline constexpr DType kLastDType = DType::kC128;
inline constexpr Placement::Kind kLastPlacement = Placement::Kind::kPartial;
inline constexpr ReduceOp kLastOp = ReduceOp::kProduct;

// Boxes of a half are those of each rank that has the half. Their list says that they are of this
// rank. So ranks with equal boxes have equal halves.
inline constexpr int kHalfBoxesRank = 0;

// The traits that tensors share: a thousand tensors are of a dozen kinds.
struct TensorKind {
  std::vector<int64_t> shape = {};  // of the whole tensor
  DType dtype = DType::kF32;
  int layout = 0;  // index into Half::layouts
};

struct HalfTensor {
  std::string name = {};
  int kind = 0;  // index into Half::kinds
  absl::optional<int> window = absl::nullopt;
};

// Equal on all ranks that have the same parts of the same tensors.
struct Half {
  std::vector<Layout> layouts = {};  // distinct
  std::vector<TensorKind> kinds = {};
  std::vector<HalfTensor> sources = {};
  std::vector<HalfTensor> targets = {};
  std::vector<std::pair<std::string, std::string>> renames = {};  // target, source; by target
  bool ignore_unused_sources = false;
  absl::optional<int> priority_class = absl::nullopt;

  const TensorKind& KindOf(const HalfTensor& tensor) const {
    return kinds[static_cast<size_t>(tensor.kind)];
  }
  const Layout& LayoutOf(const TensorKind& kind) const {
    return layouts[static_cast<size_t>(kind.layout)];
  }
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CONNECT_HALF_H_
