// The routes of one class of tensors that concern one rank.
//
// They are found once for all tensors of the class and handed out for each tensor, with the
// replicas rotated.
#ifndef SLUICE_SRC_PLAN_ROUTES_H_
#define SLUICE_SRC_PLAN_ROUTES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "mesh/partition.h"
#include "plan/bucket.h"
#include "plan/class_tables.h"
#include "plan/party.h"
#include "plan/plan.h"

namespace sluice {

// Elements [begin, end) of a region, and who passes them to whom.
struct Route {
  Role role = Role::kSource;     // this rank's
  const Party* party = nullptr;  // lives as long as the tables and pairs of the ClassRoutes
  int32_t region = -1;           // index into Plan::regions; as Chunk::region
  int32_t dst_region = -1;       // as Chunk::dst_region
  int64_t begin = 0;
  int64_t end = 0;
  int64_t row_elements = 1;
};

// Thread: one at a time, of all that share the tables.
class ClassRoutes {
 public:
  // `tables` of the class, and what all classes of the rank share, `pairs`, must outlive this
  // object; `tables` must not be cleared before.
  ClassRoutes(ClassTables* tables, PairParties* pairs, int rank);

  ClassRoutes(const ClassRoutes&) = delete;
  ClassRoutes& operator=(const ClassRoutes&) = delete;

  // Appends the routes of one tensor of the class; `rotation` shifts which replica serves whom and
  // must be equal on all ranks. Regions are added to `plan` on first use.
  void AppendRoutes(int64_t rotation, Plan* plan, std::vector<Route>* routes);

  // Shape of this rank's dense local tensor on each side.
  absl::Span<const int64_t> src_local_shape() const { return src_.local_shape; }
  absl::Span<const int64_t> dst_local_shape() const { return dst_.local_shape; }

 private:
  // This rank's part of the tensor on one side.
  struct OwnSide {
    std::optional<int64_t> position;
    PartTuple parts{};
    std::array<const IntervalList*, kMaxTensorDims> owned{};
    std::vector<int64_t> local_shape;
    const PartCrossings* crossings = nullptr;
    std::vector<int32_t> regions;  // of the crossings, as source or destination; -1: not yet
  };
  // A source part that this rank needs a region of, and who serves it.
  struct Supply {
    int32_t crossing = 0;
    const Supplier* from = nullptr;
    int32_t need = 0;         // where it has a service
    int32_t first_share = 0;  // of the need's group, those of this rank
    int32_t end_share = 0;
  };
  static constexpr size_t kNone = static_cast<size_t>(-1);

  OwnSide PlaceOn(Side side, int rank);
  void PlanAsSource();
  void PlanAsDestination();
  std::pair<size_t, size_t> PlaceInNeeds(const std::vector<Need>& needs, int32_t want) const;
  void FindShares(Supply* supply) const;
  bool Contributes(const Need& need, absl::Span<const int> holders, int owner) const;

  int32_t AddRegion(const OwnSide& place, size_t crossing, Role role, Plan* plan) const;
  int32_t RegionOf(OwnSide* place, size_t crossing, Role role, Plan* plan) const;
  void AppendLocalRoute(Plan* plan, std::vector<Route>* routes);
  void AppendSourceRoutes(int64_t rotation, Plan* plan, std::vector<Route>* routes);
  void AppendReducedRoutes(int64_t rotation, Plan* plan, std::vector<Route>* routes);
  void AppendDestinationRoutes(int64_t rotation, Plan* plan, std::vector<Route>* routes);
  void AppendSupply(const Supply& supply, int64_t rotation, Plan* plan, std::vector<Route>* routes);

  ClassTables& tables_;
  PairParties& pairs_;
  const int rank_;
  OwnSide src_;
  OwnSide dst_;
  const PartService* service_ = nullptr;    // of this rank's source part
  size_t local_crossing_ = kNone;           // of the source part: what this rank needs itself
  size_t own_crossing_ = kNone;             // of the destination part: the same
  int32_t local_region_ = -1;               // of it
  std::vector<size_t> candidate_of_group_;  // where this rank stands in each group, or kNone
  std::vector<Supply> supplies_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_ROUTES_H_
