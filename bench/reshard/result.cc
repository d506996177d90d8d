// Folding the ranks' records into one result.
#include "reshard/result.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace sluice::bench {
namespace {

// Microseconds of each iteration. On one host, from the first rank to start to the last to end, on
// their common monotonic clock. Otherwise what rank 0 saw from barrier to barrier.
std::vector<double> IterationTimes(absl::Span<const RankRecord> records, bool one_host) {
  std::vector<double> times;
  for (size_t i = 0; i < records[0].start_ns.size(); ++i) {
    int64_t start = records[0].start_ns[i];
    int64_t end = records[0].end_ns[i];
    if (one_host) {
      for (const RankRecord& record : records) {
        start = std::min(start, record.start_ns[i]);
        end = std::max(end, record.end_ns[i]);
      }
    }
    times.push_back(static_cast<double>(end - start) / 1e3);
  }
  std::sort(times.begin(), times.end());
  return times;
}

double Median(const std::vector<double>& sorted) {
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// The smallest time that 99% of the iterations do not exceed.
double P99(const std::vector<double>& sorted) {
  const auto rank = static_cast<size_t>(std::ceil(0.99 * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1];
}

void SetTimes(const std::vector<double>& sorted, CaseResult* result) {
  if (sorted.empty()) return;
  result->min_us = sorted.front();
  result->median_us = Median(sorted);
  result->p99_us = P99(sorted);
  result->max_us = sorted.back();
  if (result->payload_bytes > 0 && result->median_us > 0) {
    result->alg_bw = static_cast<double>(result->payload_bytes) / result->median_us / 1e3;
  }
}

std::string DTypeOf(const TransferSpec& spec) {
  std::string name(spec.tensors.empty() ? "-" : DTypeName(spec.tensors[0].dst_dtype));
  for (const TensorTransfer& tensor : spec.tensors) {
    if (DTypeName(tensor.dst_dtype) != name) return "mixed";
  }
  return name;
}

// Tensor by tensor, each in the order of its target mesh.
std::vector<TargetRank> OrderFingerprints(const TransferSpec& spec,
                                          absl::Span<const RankRecord> records) {
  std::vector<std::map<int, const Fingerprint*>> by_tensor(spec.tensors.size());
  for (size_t r = 0; r < records.size(); ++r) {
    for (const auto& [tensor, fingerprint] : records[r].fingerprints) {
      by_tensor[static_cast<size_t>(tensor)][static_cast<int>(r)] = &fingerprint;
    }
  }
  std::vector<TargetRank> ordered;
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    for (const int rank : spec.tensors[i].dst.mesh.ranks()) {
      const auto found = by_tensor[i].find(rank);
      if (found == by_tensor[i].end()) continue;
      ordered.push_back(
          {rank, spec.tensors.size() > 1 ? spec.tensors[i].name : std::string(), *found->second});
    }
  }
  return ordered;
}

void AddRank(const RankRecord& record, CaseResult* result) {
  result->payload_bytes += record.stats.received_bytes;
  result->buckets += record.stats.buckets_as_source;
  result->channels += record.stats.channels_as_source;
  result->wrong += record.wrong;
  result->plan_us = std::max(result->plan_us, absl::ToDoubleMicroseconds(record.stats.plan_time));
  result->peak_buckets = std::max(result->peak_buckets, record.counters.buckets_peak);
  result->peak_bytes = std::max(result->peak_bytes, record.counters.staging_bytes_peak);
  result->peak_ops = std::max(result->peak_ops, record.counters.operations_peak);
  result->free_peak_buckets =
      std::max(result->free_peak_buckets, record.stats.peak_buckets_without_budget);
  result->free_peak_bytes =
      std::max(result->free_peak_bytes, record.stats.peak_bytes_without_budget);
  if (record.counters.running > absl::ZeroDuration()) {
    result->wait_share += absl::FDivDuration(record.counters.budget_wait, record.counters.running);
  }
}

}  // namespace

const char* ClockName(bool one_host) { return one_host ? "monotonic" : "barrier"; }

CaseResult Summarise(const std::string& id, const TransferSpec& spec, const Options& options,
                     int64_t slots, bool one_host, absl::Span<const RankRecord> records) {
  CaseResult result;
  result.id = id;
  result.dtype = DTypeOf(spec);
  result.tensors = static_cast<int64_t>(spec.tensors.size());
  result.limit_buckets = slots;
  result.limit_bytes = slots * options.bucket_bytes;
  result.plan_hash = records[0].stats.plan_hash;
  result.corruptible_elements = records[0].corruptible_elements;
  result.checked = options.check != 0 || options.corrupt_bytes > 0;
  for (const RankRecord& record : records) AddRank(record, &result);
  result.wait_share /= static_cast<double>(records.size());
  SetTimes(IterationTimes(records, one_host), &result);
  result.target_ranks = OrderFingerprints(spec, records);
  return result;
}

}  // namespace sluice::bench
