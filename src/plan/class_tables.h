// Tables that all ranks have in common in planning one class of tensors. They say who owns what,
// where parts of the two sides overlap, and which replica serves whom.
//
// Tensors of equal shape, element size and layouts form a class. Everything is computed when first
// asked for and kept, as it is alike for many ranks; what few ranks ask for costs only them.
#ifndef SLUICE_SRC_PLAN_CLASS_TABLES_H_
#define SLUICE_SRC_PLAN_CLASS_TABLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "mesh/partition.h"
#include "plan/party.h"
#include "plan/plan.h"
#include "plan/serve.h"
#include "sluice/transfer.h"

namespace sluice {

enum class Side : uint8_t { kSrc, kDst };

// A part of one side and one of the other that share a region.
struct Crossing {
  PartTuple parts{};                              // of the other side
  std::array<int32_t, kMaxTensorDims> overlap{};  // per dimension, index into the overlaps
  int64_t elements = 1;
  int64_t row_elements = 1;
};

// Everything of one part that the other side needs or has.
struct PartCrossings {
  std::array<const std::vector<PartOverlap>*, kMaxTensorDims> by_dim{};
  std::vector<Crossing> list;  // row-major over by_dim
};

// How ranks that hold a part serve those that want regions of it.
struct PartService {
  absl::Span<const int> holders;  // by replica, then by contribution
  ServeTable table;
};

// From whom the ranks of a destination part get a region.
struct Supplier {
  int holder = -1;                       // the only one, who serves only one rank; or
  const PartService* service = nullptr;  // one of several, or for several ranks
  int32_t want = 0;                      // of the service: the destination part's
};

// Thread: one at a time.
class ClassTables {
 public:
  // `tensor` is any of the class; it and `options` must outlive this object. `layout_pair`: as
  // Parties has it.
  ClassTables(const TensorTransfer& tensor, const PlanOptions& options, int layout_pair);

  ClassTables(const ClassTables&) = delete;
  ClassTables& operator=(const ClassTables&) = delete;

  // All that is returned by reference lives until Clear.
  void Clear();
  // About how much memory Clear would give back.
  int64_t bytes() const { return bytes_ + parties_.bytes(); }

  int dims() const { return dims_; }
  const Mesh& mesh(Side side) const { return LayoutOf(side).mesh; }
  const Partition& partition(Side side) const { return side == Side::kSrc ? src_ : dst_; }
  bool reduces() const { return src_.contributions() > 1; }
  Parties& parties() { return parties_; }

  // The indices along `dim` that part `part` of `side` owns.
  const IntervalList& Owned(Side side, int dim, int64_t part);
  // The ranks of `side` with these parts: by replica, then by contribution.
  absl::Span<const int> RanksOf(Side side, const PartTuple& parts);
  const PartCrossings& CrossingsOf(Side side, const PartTuple& parts);
  // Wants are numbered as the part's crossings.
  const PartService& ServiceOf(const PartTuple& src_parts);
  // One for each of the part's crossings.
  const std::vector<Supplier>& SuppliersOf(const PartTuple& dst_parts);

 private:
  // Short cut for a part with a single holder. The holder serves every want in full, so wants do
  // not affect each other. Only the want of `dst_parts` is looked at; `crossing` has its elements.
  const PartService& ServiceOf(const PartTuple& src_parts, const PartTuple& dst_parts,
                               const Crossing& crossing);
  Supplier SupplierOf(const PartTuple& dst_parts, const Crossing& crossing);
  int32_t WantOf(const PartTuple& src_parts, const PartTuple& dst_parts);

  template <typename Key, typename Value>
  using Cache = absl::flat_hash_map<Key, std::unique_ptr<Value>>;
  using PairOfParts = std::pair<PartTuple, PartTuple>;
  struct SideTables {
    std::array<Cache<int64_t, IntervalList>, kMaxTensorDims> owned;
    // How the other side splits what a part owns.
    std::array<Cache<int64_t, std::vector<PartOverlap>>, kMaxTensorDims> overlaps;
    Cache<PartTuple, RankList> ranks;
    Cache<PartTuple, PartCrossings> crossings;
  };

  const Layout& LayoutOf(Side side) const { return side == Side::kSrc ? tensor_.src : tensor_.dst; }
  SideTables& TablesOf(Side side) { return sides_[static_cast<size_t>(side)]; }
  const std::vector<PartOverlap>& OverlapsOf(Side side, int dim, int64_t part);
  std::unique_ptr<PartService> Serve(const PartTuple& src_parts, absl::Span<const Want> wants);
  bool NodesMeet();
  const absl::flat_hash_set<int>& ReducingNodes();

  const TensorTransfer& tensor_;
  const PlanOptions& options_;
  const int dims_;
  const Partition src_;
  const Partition dst_;
  Parties parties_;
  std::array<SideTables, 2> sides_;
  Cache<PartTuple, PartService> services_;
  Cache<PairOfParts, PartService> pair_services_;
  Cache<PartTuple, std::vector<Supplier>> suppliers_;
  std::optional<bool> nodes_meet_;                          // a node has ranks of both sides
  std::optional<absl::flat_hash_set<int>> reducing_nodes_;  // as in Reducers
  int64_t bytes_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CLASS_TABLES_H_
