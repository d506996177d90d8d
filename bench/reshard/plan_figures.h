// What the plans of a transfer come to: who sends how much to whom, beside the least that could be.
#ifndef SLUICE_BENCH_RESHARD_PLAN_FIGURES_H_
#define SLUICE_BENCH_RESHARD_PLAN_FIGURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "plan/plan.h"
#include "sluice/transfer.h"

namespace sluice::bench {

// Bytes of tensors on the wire, contributions to a reduction among them.
struct RouteBytes {
  int src = 0;
  int dst = 0;
  int64_t bytes = 0;
  int hop = 1;  // 1: `src` has them from the start; others had them, or parts of them, before it

  friend bool operator==(const RouteBytes&, const RouteBytes&) = default;
};

struct PlanFigures {
  std::string id;
  std::string plan;  // relay or naive
  bool coalesce = true;
  // What crosses between nodes, over CrossingBounds; 1 where nothing has to and nothing does.
  double node_bytes_ratio = 1;
  double busiest_src_ratio = 1;
  double busiest_dst_ratio = 1;
  int64_t node_bytes = 0;
  int hops_max = 0;
  int64_t bucket_bytes = 0;  // in force
  int max_in_flight = 0;     // likewise
  int64_t buckets = 0;
  int64_t chunks = 0;        // in them
  int64_t channels = 0;      // of the rank that has most
  int64_t peak_buckets = 0;  // without a budget, of the rank that holds most
  int64_t peak_bytes = 0;
  std::vector<RouteBytes> routes;  // ascending (src, dst, hop), each once
};

// Plans for all ranks, as many as options.node_of_rank has. Errors are those of ValidateSpec and
// MakePlan.
absl::StatusOr<PlanFigures> FiguresOf(const TransferSpec& spec, const PlanOptions& options);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_PLAN_FIGURES_H_
