// The cross product of the --compare flags.
#include "reshard/lanes.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "job/ranks.h"
#include "sluice/status.h"
#include "sluice/testing.h"

namespace sluice::bench {
namespace {

std::string NameOf(int64_t knob) { return knob == 0 ? "auto" : absl::StrCat(knob); }

// What is compared, or what is given where nothing is.
template <typename Value>
std::vector<Value> ListOr(const std::vector<Value>& compared, const Value& given) {
  return compared.empty() ? std::vector<Value>{given} : compared;
}

Lane LaneOf(const Options& options, int64_t budget, const std::string& transport,
            const std::string& plan, bool coalesce, int64_t bucket_bytes, int64_t max_in_flight) {
  Lane lane;
  lane.plan = plan;
  SessionOptions& session = lane.options;
  if (bucket_bytes != 0) session.bucket_bytes = bucket_bytes;
  if (max_in_flight != 0) session.max_in_flight = static_cast<int>(max_in_flight);
  session.coalesce = coalesce;
  session.budget_buckets = budget != 0 ? budget : kNoLimit;
  if (options.budget_bytes >= 0) {
    session.budget_bytes = options.budget_bytes > 0 ? options.budget_bytes : kNoLimit;
  }
  session.timeout = session.patience = options.timeout();
  session.progress_thread = options.progress_thread;
  session.direct = transport == "direct";
  if (!options.compare_budgets.empty()) {
    if (budget == 0) session.budget_bytes = kNoLimit;
    absl::StrAppend(&lane.suffix, "/budget-", budget);
  }
  if (!options.compare_transports.empty()) absl::StrAppend(&lane.suffix, "/", transport);
  if (!options.compare_plans.empty()) absl::StrAppend(&lane.suffix, "/", plan);
  if (!options.compare_coalesce.empty()) absl::StrAppend(&lane.suffix, CoalesceSuffix(coalesce));
  if (!options.compare_bucket_bytes.empty()) {
    absl::StrAppend(&lane.suffix, "/bucket-", NameOf(bucket_bytes));
  }
  if (!options.compare_max_in_flight.empty()) {
    absl::StrAppend(&lane.suffix, "/in-flight-", NameOf(max_in_flight));
  }
  return lane;
}

}  // namespace

const char* CoalesceSuffix(bool coalesce) { return coalesce ? "/coalesce" : "/no-coalesce"; }

std::vector<Lane> LanesOf(const Options& options) {
  std::vector<Lane> lanes;
  const auto add_knobs = [&](int64_t budget, const std::string& transport, const std::string& plan,
                             bool coalesce) {
    for (const int64_t bucket :
         ListOr(options.compare_bucket_bytes, options.bucket_bytes.value_or(0))) {
      for (const int64_t in_flight :
           ListOr(options.compare_max_in_flight, options.max_in_flight.value_or(0))) {
        lanes.push_back(LaneOf(options, budget, transport, plan, coalesce, bucket, in_flight));
      }
    }
  };
  for (const int64_t budget : ListOr(options.compare_budgets, options.budget_buckets)) {
    for (const std::string& transport : ListOr(options.compare_transports, options.gpu.transport)) {
      for (const std::string& plan : PlansOf(options)) {
        for (const bool coalesce : CoalesceOf(options)) {
          add_knobs(budget, transport, plan, coalesce);
        }
      }
    }
  }
  return lanes;
}

absl::StatusOr<std::vector<Lane>> OpenLanes(const Options& options, const Gpu& gpu, Job* job,
                                            std::unique_ptr<Fabric> first_fabric) {
  std::vector<Lane> lanes = LanesOf(options);
  for (Lane& lane : lanes) {
    if (!options.trace_file.empty()) lane.options.trace_events = options.trace_events;
    lane.options.accelerator = gpu.accelerator;
    lane.options.transport = gpu.transport;
    absl::StatusOr<std::unique_ptr<Fabric>> fabric = std::exchange(first_fabric, nullptr);
    if (*fabric == nullptr) {
      fabric = job->MakeFabric(options.timeout());
      if (!fabric.ok()) return fabric.status();
      fabric = PlanNodes(*std::move(fabric), options.ranks_per_node);
    }
    SLUICE_ASSIGN_OR_RETURN(
        lane.session, Relays(lane.plan) ? Session::Create(*std::move(fabric), lane.options)
                                        : CreateNaiveSession(*std::move(fabric), lane.options));
  }
  return lanes;
}

absl::Status CheckLanes(const Options& options) {
  const std::pair<const char*, size_t> lists[] = {
      {"--compare-budgets", options.compare_budgets.size()},
      {"--compare-transports", options.compare_transports.size()},
      {"--compare-plans", options.compare_plans.size()},
      {"--compare-coalesce", options.compare_coalesce.size()},
      {"--compare-bucket-bytes", options.compare_bucket_bytes.size()},
      {"--compare-max-in-flight", options.compare_max_in_flight.size()}};
  size_t lanes = 1;
  for (const auto& [flag, entries] : lists) {
    if (entries > kComparedMax) {
      return absl::InvalidArgumentError(absl::StrCat(flag, ": at most ", kComparedMax));
    }
    lanes *= std::max<size_t>(1, entries);
  }
  if (lanes <= kLanesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the --compare flags list ", lanes, " combinations; at most ", kLanesMax));
}

}  // namespace sluice::bench
