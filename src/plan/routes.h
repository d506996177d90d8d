// The routes of one class of tensors that concern one rank.
//
// Tensors of equal shape, element size and layouts form a class: their routes are computed once and
// handed out for each tensor, with the replicas rotated.
#ifndef SLUICE_SRC_PLAN_ROUTES_H_
#define SLUICE_SRC_PLAN_ROUTES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "mesh/partition.h"
#include "plan/bucket.h"
#include "plan/party.h"
#include "plan/plan.h"
#include "plan/serve.h"
#include "sluice/transfer.h"

namespace sluice {

// Elements [begin, end) of a region, and who passes them to whom.
struct Route {
  Role role = Role::kSource;     // this rank's
  const Party* party = nullptr;  // lives as long as the ClassRoutes
  int32_t region = -1;           // index into Plan::regions; as Chunk::region
  int32_t dst_region = -1;       // as Chunk::dst_region
  int64_t begin = 0;
  int64_t end = 0;
  int64_t row_elements = 1;
};

class ClassRoutes {
 public:
  // `tensor` is any of the class; it and `options` must outlive this object. `layout_pair`: as
  // Parties has it.
  ClassRoutes(const TensorTransfer& tensor, const PlanOptions& options, int layout_pair, int rank);

  ClassRoutes(const ClassRoutes&) = delete;
  ClassRoutes& operator=(const ClassRoutes&) = delete;

  // Appends the routes of one tensor of the class; `rotation` shifts which replica serves whom and
  // must be equal on all ranks. Regions are added to `plan` on first use.
  void AppendRoutes(int64_t rotation, Plan* plan, std::vector<Route>* routes);

  // Shape of this rank's dense local tensor on each side.
  absl::Span<const int64_t> src_local_shape() const { return src_local_shape_; }
  absl::Span<const int64_t> dst_local_shape() const { return dst_local_shape_; }

 private:
  using Owned = std::array<IntervalList, kMaxTensorDims>;

  // One combination of the other side's parts that shares a region with ours.
  struct Crossing {
    PartTuple parts{};
    std::array<int32_t, kMaxTensorDims> overlap{};  // per dimension, index into overlaps
    int64_t elements = 1;
    int64_t row_elements = 1;
    int32_t region = -1;        // as source or destination
    int32_t local_region = -1;  // where this rank is both
  };
  // Everything of one part that the other side needs or has.
  struct Overlaps {
    std::array<std::vector<PartOverlap>, kMaxTensorDims> by_dim;
    std::vector<Crossing> crossings;  // row-major over by_dim
  };
  // A source part that this rank needs a region of.
  struct Supply {
    int32_t crossing = 0;
    std::vector<int> holders;   // of the part
    Need need;                  // the one with this rank
    ServeGroup group;           // shares of that need alone
    std::vector<size_t> slots;  // parallel to group.shares
  };

  using OverlapsByDim = std::array<const std::vector<PartOverlap>*, kMaxTensorDims>;

  Overlaps FindOverlaps(const Owned& owned, const Partition& other) const;
  std::vector<Crossing> Cross(const OverlapsByDim& by_dim) const;
  std::vector<Want> WantsOf(absl::Span<const Crossing> crossings) const;
  ServeTable Divide(absl::Span<const int> holders, absl::Span<const Want> wants) const;
  std::vector<int> HoldersOf(const PartTuple& parts) const;
  void PlanAsSource();
  void PlanAsDestination();
  std::vector<Want> OwnWant(const Crossing& crossing) const;
  std::vector<Want> WantsOfPart(const PartTuple& src_parts, int32_t* mine);
  Supply SupplyFor(int32_t crossing_index);
  const std::vector<PartOverlap>& TargetsOf(int dim, int64_t src_part);

  int32_t AddRegion(const Overlaps& overlaps, const Crossing& crossing, Role role,
                    Plan* plan) const;
  int32_t SourceRegion(size_t crossing, Plan* plan);
  int32_t DestinationRegion(size_t crossing, Plan* plan);
  bool reduces() const { return src_.contributions() > 1; }
  void AppendLocalRoute(Plan* plan, std::vector<Route>* routes);
  void AppendSourceRoutes(int64_t rotation, Plan* plan, std::vector<Route>* routes);
  void AppendReducedRoutes(int64_t rotation, Plan* plan, std::vector<Route>* routes);
  void AppendDestinationRoutes(int64_t rotation, Plan* plan, std::vector<Route>* routes);

  const TensorTransfer& tensor_;
  const PlanOptions& options_;
  const int rank_;
  const int dims_;
  const Partition src_;
  const Partition dst_;
  Parties parties_;
  std::vector<int64_t> src_local_shape_;
  std::vector<int64_t> dst_local_shape_;
  std::optional<int64_t> src_position_;
  std::optional<int64_t> dst_position_;
  PartTuple src_parts_{};
  PartTuple dst_parts_{};
  Owned src_owned_;
  Owned dst_owned_;

  Overlaps as_source_;
  std::vector<int> holders_;  // of this rank's part
  std::vector<Want> wants_;   // parallel to as_source_.crossings
  ServeTable serve_;
  static constexpr size_t kNone = static_cast<size_t>(-1);
  size_t local_crossing_ = kNone;           // of as_source_: what this rank needs of its own part
  size_t own_crossing_ = kNone;             // of as_destination_: the same
  std::vector<size_t> candidate_of_group_;  // where this rank stands in each group, or kNone
  Overlaps as_destination_;
  std::vector<Supply> supplies_;
  // Per dimension: a source part, and how the target layout splits it.
  std::array<absl::flat_hash_map<int64_t, std::vector<PartOverlap>>, kMaxTensorDims> targets_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_ROUTES_H_
