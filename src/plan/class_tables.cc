// Tables that are filled as they are asked for.
#include "plan/class_tables.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace sluice {
namespace {

Side Other(Side side) { return side == Side::kSrc ? Side::kDst : Side::kSrc; }

// Elements of a region below its first dimension that is longer than one: the rows to cut at.
int64_t RowElements(absl::Span<const int64_t> extents) {
  size_t d = 0;
  while (d + 1 < extents.size() && extents[d] == 1) ++d;
  int64_t row = 1;
  for (size_t i = d + 1; i < extents.size(); ++i) row *= extents[i];
  return row;
}

template <typename T>
int64_t BytesOf(const std::vector<T>& list) {
  return static_cast<int64_t>(list.capacity() * sizeof(T));
}

int64_t BytesOf(const IntervalList& list) {
  return static_cast<int64_t>(list.intervals().size() * sizeof(Interval));
}

int64_t BytesOf(const ServeTable& table) {
  int64_t bytes = BytesOf(table.needs) + BytesOf(table.group_of_need) + BytesOf(table.groups);
  for (const RankList& list : table.lists) bytes += BytesOf(list);
  for (const ServeGroup& group : table.groups) {
    bytes += BytesOf(group.candidates) + BytesOf(group.shares) + BytesOf(group.first_share);
  }
  return bytes;
}

// The bytes that a cache's entry takes beside its content.
constexpr int64_t kEntryBytes = 128;

std::vector<Crossing> Cross(absl::Span<const std::vector<PartOverlap>* const> by_dim) {
  size_t count = 1;
  for (const std::vector<PartOverlap>* overlaps : by_dim) count *= overlaps->size();
  std::vector<Crossing> crossings(count);
  for (size_t c = 0; c < count; ++c) {
    Crossing& crossing = crossings[c];
    std::array<int64_t, kMaxTensorDims> extents{};
    size_t rest = c;
    for (size_t i = by_dim.size(); i-- > 0;) {
      const size_t pick = rest % by_dim[i]->size();
      rest /= by_dim[i]->size();
      const PartOverlap& overlap = (*by_dim[i])[pick];
      crossing.overlap[i] = static_cast<int32_t>(pick);
      crossing.parts[i] = overlap.part;
      extents[i] = overlap.indices.size();
      crossing.elements *= extents[i];
    }
    crossing.row_elements = RowElements(absl::MakeConstSpan(extents.data(), by_dim.size()));
  }
  return crossings;
}

}  // namespace

ClassTables::ClassTables(const TensorTransfer& tensor, const PlanOptions& options, int layout_pair)
    : tensor_(tensor),
      options_(options),
      dims_(static_cast<int>(tensor.shape.size())),
      src_(tensor.src, dims_),
      dst_(tensor.dst, dims_),
      parties_(tensor, src_, options, layout_pair) {}

void ClassTables::Clear() {
  parties_.Clear();
  services_.clear();
  pair_services_.clear();
  suppliers_.clear();
  sides_ = {};
  bytes_ = 0;
}

const IntervalList& ClassTables::Owned(Side side, int dim, int64_t part) {
  const size_t i = static_cast<size_t>(dim);
  std::unique_ptr<IntervalList>& owned = TablesOf(side).owned[i][part];
  if (owned == nullptr) {
    owned = std::make_unique<IntervalList>(partition(side).Owned(dim, part, tensor_.shape[i]));
    bytes_ += BytesOf(*owned) + kEntryBytes;
  }
  return *owned;
}

const std::vector<PartOverlap>& ClassTables::OverlapsOf(Side side, int dim, int64_t part) {
  const size_t i = static_cast<size_t>(dim);
  std::unique_ptr<std::vector<PartOverlap>>& overlaps = TablesOf(side).overlaps[i][part];
  if (overlaps == nullptr) {
    overlaps = std::make_unique<std::vector<PartOverlap>>(
        partition(Other(side)).Split(dim, tensor_.shape[i], Owned(side, dim, part)));
    bytes_ += BytesOf(*overlaps) + kEntryBytes;
    for (const PartOverlap& overlap : *overlaps) bytes_ += BytesOf(overlap.indices);
  }
  return *overlaps;
}

absl::Span<const int> ClassTables::RanksOf(Side side, const PartTuple& parts) {
  std::unique_ptr<RankList>& ranks = TablesOf(side).ranks[parts];
  if (ranks == nullptr) {
    const Partition& of = partition(side);
    ranks = std::make_unique<RankList>();
    ranks->reserve(static_cast<size_t>(of.replicas() * of.contributions()));
    for (int64_t replica = 0; replica < of.replicas(); ++replica) {
      for (int64_t c = 0; c < of.contributions(); ++c) {
        const int64_t position = of.PositionOf(parts, replica, c);
        ranks->push_back(mesh(side).ranks()[static_cast<size_t>(position)]);
      }
    }
    bytes_ += BytesOf(*ranks) + kEntryBytes;
  }
  return *ranks;
}

const PartCrossings& ClassTables::CrossingsOf(Side side, const PartTuple& parts) {
  std::unique_ptr<PartCrossings>& crossings = TablesOf(side).crossings[parts];
  if (crossings == nullptr) {
    crossings = std::make_unique<PartCrossings>();
    for (int d = 0; d < dims_; ++d) {
      const size_t i = static_cast<size_t>(d);
      crossings->by_dim[i] = &OverlapsOf(side, d, parts[i]);
    }
    crossings->list =
        Cross(absl::MakeConstSpan(crossings->by_dim.data(), static_cast<size_t>(dims_)));
    bytes_ += BytesOf(crossings->list) + kEntryBytes;
  }
  return *crossings;
}

bool ClassTables::NodesMeet() {
  if (nodes_meet_) return *nodes_meet_;
  const auto node_of = [this](int rank) {
    return options_.node_of_rank[static_cast<size_t>(rank)];
  };
  absl::flat_hash_set<int> nodes;
  int last = -1;  // as a rule, neighbours in a mesh share a node
  for (int rank : mesh(Side::kDst).ranks()) {
    if (nodes.empty() || node_of(rank) != last) nodes.insert(last = node_of(rank));
  }
  const absl::Span<const int> ranks = mesh(Side::kSrc).ranks();
  nodes_meet_ = std::any_of(ranks.begin(), ranks.end(),
                            [&](int rank) { return nodes.contains(node_of(rank)); });
  return *nodes_meet_;
}

// Nodes with at least as many ranks that need as that contribute. Fewer ranks would add up more
// each than the holders do, and one pass instead of three does not make up for that
// (docs/notes.md).
const absl::flat_hash_set<int>& ClassTables::ReducingNodes() {
  if (reducing_nodes_) return *reducing_nodes_;
  absl::flat_hash_map<int, int64_t> more;  // by node: ranks that need, less those that contribute
  const auto count = [&](const Mesh& mesh, int64_t by) {
    for (int rank : mesh.ranks()) more[options_.node_of_rank[static_cast<size_t>(rank)]] += by;
  };
  count(mesh(Side::kDst), 1);
  count(mesh(Side::kSrc), -1);
  reducing_nodes_.emplace();
  for (const auto& [node, ranks] : more) {
    if (ranks >= 0) reducing_nodes_->insert(node);
  }
  return *reducing_nodes_;
}

std::unique_ptr<PartService> ClassTables::Serve(const PartTuple& src_parts,
                                                absl::Span<const Want> wants) {
  auto service = std::make_unique<PartService>();
  service->holders = RanksOf(Side::kSrc, src_parts);
  if (reduces()) {
    const Reducers reducers = {
        service->holders,         static_cast<size_t>(src_.contributions()),
        &ReducingNodes(),         options_.relay && src_.levels().size() == 1,
        parties_.element_bytes(), DTypeBytes(WireDType(tensor_))};
    service->table = ServeReduced(reducers, wants, options_.node_of_rank);
  } else {
    service->table = sluice::Serve(service->holders, wants, options_.node_of_rank, NodesMeet(),
                                   options_.relay, parties_.element_bytes());
  }
  bytes_ += BytesOf(service->table) + kEntryBytes;
  return service;
}

const PartService& ClassTables::ServiceOf(const PartTuple& src_parts) {
  const auto found = services_.find(src_parts);
  if (found != services_.end()) return *found->second;
  const std::vector<Crossing>& crossings = CrossingsOf(Side::kSrc, src_parts).list;
  std::vector<Want> wants;
  wants.reserve(crossings.size());
  for (const Crossing& crossing : crossings) {
    wants.push_back(
        {RanksOf(Side::kDst, crossing.parts), crossing.elements, crossing.row_elements});
  }
  return *services_.emplace(src_parts, Serve(src_parts, wants)).first->second;
}

const PartService& ClassTables::ServiceOf(const PartTuple& src_parts, const PartTuple& dst_parts,
                                          const Crossing& crossing) {
  const PairOfParts key = {src_parts, dst_parts};
  const auto found = pair_services_.find(key);
  if (found != pair_services_.end()) return *found->second;
  const Want want = {RanksOf(Side::kDst, dst_parts), crossing.elements, crossing.row_elements};
  return *pair_services_.emplace(key, Serve(src_parts, absl::MakeConstSpan(&want, 1)))
              .first->second;
}

// Which of a source part's wants is that of a destination part.
int32_t ClassTables::WantOf(const PartTuple& src_parts, const PartTuple& dst_parts) {
  const PartCrossings& crossings = CrossingsOf(Side::kSrc, src_parts);
  int32_t want = 0;
  for (size_t i = 0; i < static_cast<size_t>(dims_); ++i) {
    const std::vector<PartOverlap>& overlaps = *crossings.by_dim[i];
    const auto own = std::lower_bound(
        overlaps.begin(), overlaps.end(), dst_parts[i],
        [](const PartOverlap& overlap, int64_t part) { return overlap.part < part; });
    want =
        want * static_cast<int32_t>(overlaps.size()) + static_cast<int32_t>(own - overlaps.begin());
  }
  return want;
}

Supplier ClassTables::SupplierOf(const PartTuple& dst_parts, const Crossing& crossing) {
  Supplier supplier;
  if (src_.replicas() * src_.contributions() > 1) {
    supplier.service = &ServiceOf(crossing.parts);
    supplier.want = WantOf(crossing.parts, dst_parts);
  } else if (dst_.replicas() > 1) {
    supplier.service = &ServiceOf(crossing.parts, dst_parts, crossing);
  } else {
    const int64_t position = src_.PositionOf(crossing.parts, 0);
    supplier.holder = mesh(Side::kSrc).ranks()[static_cast<size_t>(position)];
  }
  return supplier;
}

const std::vector<Supplier>& ClassTables::SuppliersOf(const PartTuple& dst_parts) {
  std::unique_ptr<std::vector<Supplier>>& suppliers = suppliers_[dst_parts];
  if (suppliers == nullptr) {
    suppliers = std::make_unique<std::vector<Supplier>>();
    const std::vector<Crossing>& crossings = CrossingsOf(Side::kDst, dst_parts).list;
    suppliers->reserve(crossings.size());
    for (const Crossing& crossing : crossings) {
      suppliers->push_back(SupplierOf(dst_parts, crossing));
    }
    bytes_ += BytesOf(*suppliers) + kEntryBytes;
  }
  return *suppliers;
}

}  // namespace sluice
