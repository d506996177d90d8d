// Adds up the links of all ranks' channels.
#include "reshard/plan_figures.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "plan/box_cells.h"
#include "plan/job_planner.h"
#include "reshard/crossing_bounds.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

// By what a sender's plan says; a bucket counts at its source.
class Routes {
 public:
  explicit Routes(const TransferSpec& spec) : spec_(spec) {}

  void Add(int rank, const Plan& plan) {
    for (const Bucket& bucket : plan.buckets) {
      const Channel& channel = plan.channels[static_cast<size_t>(bucket.channel)];
      if (channel.src == rank) {
        ++buckets_;
        chunks_ += bucket.chunk_count;
      }
      const int hop_down = HopFrom(plan, channel);
      for (int32_t i = 0; i < channel.child_count; ++i) {
        const Link& link = plan.links[static_cast<size_t>(int64_t{channel.first_link} + i)];
        bytes_[{rank, link.peer, hop_down}] += PayloadBytes(plan, bucket, &WireDType);
      }
      if (Has(bucket.role, Role::kContributor)) {
        // A sum comes after what it is made of, and the sum of the step before.
        const int hop = Has(bucket.role, Role::kOwner) ? channel.step + 2 : 1;
        bytes_[{rank, channel.owner.peer, hop}] += PayloadBytes(
            plan, bucket, +[](const TensorTransfer& tensor) { return tensor.src_dtype; });
      }
    }
  }

  int64_t buckets() const { return buckets_; }
  int64_t chunks() const { return chunks_; }
  std::vector<RouteBytes> List() const {
    std::vector<RouteBytes> list;
    for (const auto& [ends, bytes] : bytes_) {
      const auto& [src, dst, hop] = ends;
      list.push_back({src, dst, bytes, hop});
    }
    return list;
  }

 private:
  // Of what this rank sends to its children.
  static int HopFrom(const Plan& plan, const Channel& channel) {
    const auto member = [&](int32_t i) {
      return plan.members[static_cast<size_t>(int64_t{channel.first_member} + i)];
    };
    int hop = channel.step_count + 1;
    for (int32_t i = channel.self; member(i).parent >= 0; i = member(i).parent) ++hop;
    return hop;
  }

  int64_t PayloadBytes(const Plan& plan, const Bucket& bucket,
                       DType (*dtype)(const TensorTransfer&)) const {
    int64_t bytes = 0;
    for (int32_t c = 0; c < bucket.chunk_count; ++c) {
      const Chunk& chunk = plan.chunks[static_cast<size_t>(bucket.first_chunk + c)];
      bytes += (chunk.end - chunk.begin) *
               DTypeBytes(dtype(spec_.tensors[static_cast<size_t>(chunk.tensor)]));
    }
    return bytes;
  }

  const TransferSpec& spec_;
  std::map<std::tuple<int, int, int>, int64_t> bytes_;  // by source, destination and hop
  int64_t buckets_ = 0;
  int64_t chunks_ = 0;
};

double Ratio(double value, double bound) {
  if (bound > 0) return value / bound;
  return value > 0 ? std::numeric_limits<double>::infinity() : 1;
}

void Compare(const CrossingBounds& bounds, absl::Span<const int> node_of_rank,
             PlanFigures* figures) {
  std::vector<int64_t> sent(node_of_rank.size()), received(node_of_rank.size());
  for (const RouteBytes& route : figures->routes) {
    figures->hops_max = std::max(figures->hops_max, route.hop);
    const size_t src = static_cast<size_t>(route.src), dst = static_cast<size_t>(route.dst);
    if (node_of_rank[src] == node_of_rank[dst]) continue;
    figures->node_bytes += route.bytes;
    sent[src] += route.bytes;
    received[dst] += route.bytes;
  }
  const auto busiest = [](const std::vector<int64_t>& bytes) {
    return bytes.empty() ? 0.0 : static_cast<double>(*std::max_element(bytes.begin(), bytes.end()));
  };
  figures->node_bytes_ratio =
      Ratio(static_cast<double>(figures->node_bytes), static_cast<double>(bounds.node_bytes));
  figures->busiest_src_ratio = Ratio(busiest(sent), bounds.busiest_src);
  figures->busiest_dst_ratio = Ratio(busiest(received), bounds.busiest_dst);
}

}  // namespace

absl::StatusOr<PlanFigures> FiguresOf(const TransferSpec& given, const PlanOptions& options) {
  const int ranks = static_cast<int>(options.node_of_rank.size());
  SLUICE_RETURN_IF_ERROR(ValidateSpec(given, ranks));
  CellSpec cells;
  if (HasBoxes(given)) {
    SLUICE_ASSIGN_OR_RETURN(cells, CutIntoCells(given));
  }
  const TransferSpec& spec = HasBoxes(given) ? cells.spec : given;
  JobPlanner planner(spec, options);
  Routes routes(spec);
  PlanFigures figures;
  for (int rank = 0; rank < ranks; ++rank) {
    SLUICE_ASSIGN_OR_RETURN(const Plan plan, planner.PlanOf(rank));
    routes.Add(rank, plan);
    figures.bucket_bytes = plan.bucket_bytes;
    figures.max_in_flight = plan.max_in_flight;
    figures.channels = std::max(figures.channels, static_cast<int64_t>(plan.channels.size()));
    figures.peak_buckets = std::max(figures.peak_buckets, plan.peak_buckets_without_budget);
    figures.peak_bytes = std::max(figures.peak_bytes, plan.peak_bytes_without_budget);
  }
  figures.buckets = routes.buckets();
  figures.chunks = routes.chunks();
  figures.routes = routes.List();
  Compare(BoundsOf(spec, options.node_of_rank), options.node_of_rank, &figures);
  return figures;
}

}  // namespace sluice::bench
