// The cross product of the --compare flags.
#include "reshard/lanes.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace sluice::bench {
namespace {

std::string NameOf(int64_t knob) { return knob == 0 ? "auto" : absl::StrCat(knob); }

// What is compared, or what is given where nothing is.
template <typename Value>
std::vector<Value> ListOr(const std::vector<Value>& compared, const Value& given) {
  return compared.empty() ? std::vector<Value>{given} : compared;
}

LaneKnobs LaneOf(const Options& options, int64_t budget, const std::string& transport,
                 const std::string& plan, bool coalesce, int64_t bucket_bytes, int max_in_flight) {
  LaneKnobs lane;
  lane.plan = plan;
  SessionOptions& session = lane.session;
  if (bucket_bytes != 0) session.bucket_bytes = bucket_bytes;
  if (max_in_flight != 0) session.max_in_flight = max_in_flight;
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
  if (!options.compare_coalesce.empty()) {
    absl::StrAppend(&lane.suffix, CoalesceSuffix(coalesce));
  }
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

std::vector<LaneKnobs> LanesOf(const Options& options) {
  std::vector<LaneKnobs> lanes;
  const auto add_knobs = [&](int64_t budget, const std::string& transport, const std::string& plan,
                             bool coalesce) {
    for (const int64_t bucket : ListOr(options.compare_bucket_bytes, options.bucket_bytes)) {
      for (const int in_flight : ListOr(options.compare_max_in_flight, options.max_in_flight)) {
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

std::vector<std::pair<std::string, int64_t>> ComparedKnobs(const Options& options) {
  std::vector<std::pair<std::string, int64_t>> knobs;
  const auto add = [&knobs](const std::string& name, const auto& list) {
    knobs.emplace_back("number of " + name, static_cast<int64_t>(list.size()));
    for (const auto entry : list) knobs.emplace_back(name, entry);
  };
  add("compare_budgets", options.compare_budgets);
  add("compare_bucket_bytes", options.compare_bucket_bytes);
  add("compare_max_in_flight", options.compare_max_in_flight);
  return knobs;
}

}  // namespace sluice::bench
