// Adding up tensors, and the rule itself.
#include "plan/auto_knobs.h"

#include <algorithm>
#include <cstddef>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "mesh/partition.h"

namespace sluice {
namespace {

// A bucket that lies ready is at most this part of the cache. As many bytes again are written, and
// the next one is on its way.
constexpr int64_t kReadyCacheParts = 4;
constexpr int64_t kReadyBytesMin = int64_t{1} << 20;
// A staged bucket is at most this part of the cache, as its bytes lie in a slot and in a tensor.
constexpr int64_t kStagedCacheParts = 8;
// And is at most this part of what a rank gets, so that packing, crossing and unpacking overlap.
constexpr int64_t kRankParts = 8;
// Automatic sizes are multiples of this, where the slot allows.
constexpr int64_t kUnitBytes = int64_t{64} << 10;
// The bytes of a channel in flight that hide a round trip, and the least and most buckets for them.
constexpr int64_t kChannelBytes = int64_t{256} << 10;
constexpr int64_t kInFlightMin = 2;
constexpr int64_t kInFlightMax = 8;

// Knows the nodes of meshes. Each mesh is looked at once, as tensors share meshes.
class MeshPlaces {
 public:
  explicit MeshPlaces(absl::Span<const int> node_of_rank) : node_of_rank_(node_of_rank) {}

  // The node that all ranks of the mesh are on; -1 if they are on several.
  int NodeOf(const Mesh& mesh) {
    const auto [known, added] = nodes_.try_emplace(mesh.identity(), -1);
    if (!added) return known->second;
    int node = node_of_rank_[static_cast<size_t>(mesh.ranks()[0])];
    for (const int rank : mesh.ranks()) {
      if (node_of_rank_[static_cast<size_t>(rank)] != node) node = -1;
    }
    return known->second = node;
  }

 private:
  const absl::Span<const int> node_of_rank_;
  absl::flat_hash_map<const void*, int> nodes_;
};

// The indices of `dim` that follow each other in what a side's first part owns of it: the length of
// its stretches on average. `stretches`: how many they are.
int64_t StretchAlong(const Partition& side, const TensorTransfer& tensor, int dim,
                     int64_t* stretches) {
  const IntervalList owned = side.Owned(dim, 0, tensor.shape[static_cast<size_t>(dim)]);
  *stretches = std::max(*stretches, static_cast<int64_t>(owned.intervals().size()));
  return owned.empty() ? 0 : owned.size() / static_cast<int64_t>(owned.intervals().size());
}

// True if a tensor's bytes have to be packed, or reduced, on their way. An estimate, from the first
// parts.
bool IsStaged(const TensorTransfer& tensor, const Partition& src, const Partition& dst,
              bool one_node) {
  if (IsReduced(tensor) || tensor.src_dtype != tensor.dst_dtype) return true;
  const int dims = static_cast<int>(tensor.shape.size());
  int first = 0;  // the first dimension of more than one index
  while (first + 1 < dims && tensor.shape[static_cast<size_t>(first)] <= 1) ++first;
  int last = dims - 1;  // the last one that a side cuts
  int64_t row_bytes = DTypeBytes(tensor.src_dtype);
  for (; last > first && src.cuts(last).empty() && dst.cuts(last).empty(); --last) {
    row_bytes *= tensor.shape[static_cast<size_t>(last)];
  }
  int64_t stretches = 1;
  row_bytes *= std::min(StretchAlong(src, tensor, last, &stretches),
                        StretchAlong(dst, tensor, last, &stretches));
  if (last == first && stretches == 1) return false;
  return !one_node || row_bytes < kRowBytesMin;
}

}  // namespace

TransferLoad LoadOf(const TransferSpec& spec, absl::Span<const int> node_of_rank) {
  MeshPlaces places(node_of_rank);
  absl::flat_hash_set<const void*> meshes;
  absl::flat_hash_set<int> targets;
  absl::flat_hash_set<int> windows;
  double all = 0;  // doubles, as sums over many ranks pass 63 bits
  double staged = 0;
  for (const TensorTransfer& tensor : spec.tensors) {
    const int dims = static_cast<int>(tensor.shape.size());
    const Mesh& mesh = tensor.dst.mesh;
    if (meshes.insert(mesh.identity()).second) {
      targets.insert(mesh.ranks().begin(), mesh.ranks().end());
    }
    windows.insert(tensor.window);
    const Partition src(tensor.src, dims);
    const Partition dst(tensor.dst, dims);
    double bytes = static_cast<double>(DTypeBytes(WireDType(tensor)) * dst.replicas());
    for (const int64_t size : tensor.shape) bytes *= static_cast<double>(size);
    const int node = places.NodeOf(mesh);
    const bool one_node = node >= 0 && node == places.NodeOf(tensor.src.mesh);
    all += bytes;
    if (IsStaged(tensor, src, dst, one_node)) staged += bytes;
  }
  if (targets.empty()) return {};
  const double shares = static_cast<double>(targets.size()) * static_cast<double>(windows.size());
  const auto whole = [](double bytes) { return static_cast<int64_t>(std::min(bytes, 1e18)); };
  return {whole(all / shares), whole(staged / shares)};
}

int AutoMaxInFlight(int64_t bucket_bytes, int64_t slot_bytes) {
  const int64_t least =
      bucket_bytes != 0 ? bucket_bytes : std::min(slot_bytes, kAutoBucketBytesMin);
  return static_cast<int>(
      std::clamp(kChannelBytes / std::max<int64_t>(least, 1), kInFlightMin, kInFlightMax));
}

Knobs ChooseKnobs(const TransferLoad& load, int64_t slot_bytes, int64_t cache_bytes) {
  const int max_in_flight = AutoMaxInFlight(0, slot_bytes);
  if (cache_bytes == 0) return {slot_bytes, max_in_flight};
  if (load.staged_bytes <= load.rank_bytes / 2) {
    const int64_t bytes = std::max(kReadyBytesMin, cache_bytes / kReadyCacheParts);
    return {std::min(bytes, slot_bytes), max_in_flight};
  }
  const int64_t most = std::min(cache_bytes / kStagedCacheParts, load.rank_bytes / kRankParts);
  const int64_t bytes = std::max(kAutoBucketBytesMin, most / kUnitBytes * kUnitBytes);
  return {std::min(bytes, slot_bytes), max_in_flight};
}

PlanOptions WithKnobs(const TransferSpec& spec, const PlanOptions& options) {
  PlanOptions known = options;
  if (options.bucket_bytes != 0 && options.max_in_flight != 0) return known;
  const Knobs knobs =
      ChooseKnobs(LoadOf(spec, options.node_of_rank), options.slot_bytes, options.cache_bytes);
  if (known.bucket_bytes == 0) known.bucket_bytes = knobs.bucket_bytes;
  if (known.max_in_flight == 0) {
    known.max_in_flight = AutoMaxInFlight(options.bucket_bytes, options.slot_bytes);
  }
  return known;
}

}  // namespace sluice
