// Records as bytes and back, and folding those of all ranks into one result.
#include "reshard/result.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "memory/memory_watch.h"
#include "report/spread.h"
#include "session/describe_session.h"
#include "trace/serialize.h"
#include "workload/layout_ranks.h"
#include "workload/local_part.h"

namespace sluice::bench {
namespace {

using RecordJson = nlohmann::json;

RecordJson JsonOf(const std::optional<int64_t>& value) {
  return value ? RecordJson(*value) : RecordJson();
}
std::optional<int64_t> NumberOf(const RecordJson& json) {
  return json.is_null() ? std::nullopt : std::optional<int64_t>(json.get<int64_t>());
}

struct Writer {
  template <typename T>
  void Field(absl::string_view name, const T& value, const FieldRule& /*rule*/ = {}) {
    if constexpr (std::same_as<T, absl::Duration>) {
      json[std::string(name)] = absl::ToInt64Nanoseconds(value);
    } else {
      json[std::string(name)] = value;
    }
  }
  RecordJson json;
};

struct Reader {
  template <typename T>
  void Field(absl::string_view name, T& value, const FieldRule& /*rule*/ = {}) {
    const RecordJson& field = json[std::string(name)];
    if constexpr (std::same_as<T, absl::Duration>) {
      value = absl::Nanoseconds(field.get<int64_t>());
    } else {
      field.get_to(value);
    }
  }
  RecordJson json;
};

// The most that a rank held, first in bytes.
std::pair<int64_t, int64_t> MostOf(absl::Span<const GatePoint> gate) {
  std::pair<int64_t, int64_t> most = {-1, -1};
  for (const GatePoint& point : gate) most = std::max(most, {point.bytes, point.buckets});
  return most;
}

void ChooseGate(absl::Span<const RankRecord> records, CaseResult* result) {
  for (size_t r = 0; r < records.size(); ++r) {
    if (MostOf(records[r].gate) <= MostOf(result->gate)) continue;
    result->gate = records[r].gate;
    result->gate_rank = static_cast<int>(r);
  }
}

// All fields but the gate and the fingerprints.
template <typename Visitor, MaybeConst<RankRecord> Record>
void Describe(Visitor& v, Record& r) {
  EachOf(v, "start", r.start_ns, "end", r.end_ns, "wrong", r.wrong, "peak_target",
         r.peak_target_bytes, "whole_target", r.whole_target_bytes, "grown", r.grown_bytes,
         "grown_by", r.grown_by, "corruptible", r.corruptible_elements);
  Describe(v, r.stats);
  Describe(v, r.counters);
}

// The smallest time that 99% of the iterations do not exceed.
double P99(const std::vector<double>& sorted) {
  const auto rank = static_cast<size_t>(std::ceil(0.99 * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1];
}

void SetTimes(std::vector<double> sorted, CaseResult* result) {
  if (sorted.empty()) return;
  std::sort(sorted.begin(), sorted.end());
  result->min_us = sorted.front();
  result->median_us = Median(sorted);
  result->p99_us = P99(sorted);
  result->max_us = sorted.back();
  result->alg_bw = GbPerSecond(result->payload_bytes, result->median_us);
  result->bus_bw = GbPerSecond(result->port_bytes, result->median_us);
}

std::string DTypeOf(const TensorTransfer& tensor) {
  if (tensor.src_dtype == tensor.dst_dtype) return absl::StrCat(DTypeName(tensor.dst_dtype));
  return absl::StrCat(DTypeName(tensor.src_dtype), ">", DTypeName(tensor.dst_dtype));
}

std::string DTypeOf(const TransferSpec& spec) {
  if (spec.tensors.empty()) return "-";
  std::string name = DTypeOf(spec.tensors[0]);
  for (const TensorTransfer& tensor : spec.tensors) {
    if (DTypeOf(tensor) != name) return "mixed";
  }
  return name;
}

int64_t BytesOf(const TransferSpec& spec) {
  int64_t bytes = 0;
  for (const TensorTransfer& tensor : spec.tensors) {
    bytes += ElementsOf(tensor.shape) * DTypeBytes(tensor.dst_dtype);
  }
  return bytes;
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
    for (const int rank : RanksOf(spec.tensors[i].dst)) {
      const auto found = by_tensor[i].find(rank);
      if (found == by_tensor[i].end()) continue;
      ordered.push_back(
          {rank, spec.tensors.size() > 1 ? spec.tensors[i].name : std::string(), *found->second});
    }
  }
  return ordered;
}

void AddRank(const RankRecord& record, CaseResult* result) {
  const auto raise = [](auto* most, auto value) { *most = std::max(*most, value); };
  const TransferStats& stats = record.stats;
  const SessionCounters& counters = record.counters;
  result->payload_bytes += stats.received_bytes;
  raise(&result->port_bytes, std::max(stats.sent_bytes, stats.received_bytes));
  result->buckets += stats.buckets_as_source;
  result->channels += stats.channels_as_source;
  result->wrong += record.wrong;
  raise(&result->plan_us, absl::ToDoubleMicroseconds(stats.plan_time));
  raise(&result->peak_buckets, counters.buckets_peak);
  raise(&result->peak_bytes, counters.staging_bytes_peak);
  raise(&result->peak_ops, counters.operations_peak);
  raise(&result->windowed_target_bytes, record.peak_target_bytes);
  raise(&result->windowed_bytes, record.peak_target_bytes + counters.staging_bytes_peak);
  raise(&result->whole_target_bytes, record.whole_target_bytes);
  raise(&result->free_peak_buckets, stats.peak_buckets_without_budget);
  raise(&result->free_peak_bytes, stats.peak_bytes_without_budget);
  if (counters.running > absl::ZeroDuration()) {
    result->wait_share += absl::FDivDuration(counters.budget_wait, counters.running);
  }
}

// Slots are of equal size: in time each may have held the largest bucket. Without a budget there
// are as many as channels can fill.
int64_t StagingOf(const CaseResult& result) {
  if (result.limit_bytes > 0) return result.limit_bytes;
  return result.free_peak_buckets * result.bucket_bytes;
}

// Vendors' libraries for devices keep host memory of their own, of which nothing is promised here.
MemoryGrowth GrowthOf(const Options& options, const CaseResult& result,
                      absl::Span<const RankRecord> records) {
  MemoryGrowth memory;
  memory.allowed_bytes = StagingOf(result) + kMemoryBesideStaging;
  memory.growth_bytes = -1;
  for (size_t r = 0; r < records.size(); ++r) {
    if (records[r].grown_bytes <= memory.growth_bytes) continue;
    memory.growth_bytes = records[r].grown_bytes;
    memory.rank = static_cast<int>(r);
    memory.method = records[r].grown_by;
  }
  memory.judged = !options.gpu.uses_device();
  return memory;
}

}  // namespace

std::string Encode(const RankRecord& r) {
  Writer writer;
  Describe(writer, r);
  RecordJson& fingerprints = writer.json["fingerprints"] = RecordJson::array();
  for (const auto& [tensor, f] : r.fingerprints) {
    fingerprints.push_back(
        {tensor, f.local_shape, f.checksum, f.ordered_checksum, JsonOf(f.first), JsonOf(f.last)});
  }
  RecordJson& gate = writer.json["gate"] = RecordJson::array();
  for (const GatePoint& point : r.gate) gate.push_back({point.ns, point.buckets, point.bytes});
  return writer.json.dump();
}

RankRecord Decode(const std::string& text) {
  Reader reader = {RecordJson::parse(text)};
  RankRecord r;
  Describe(reader, r);
  for (const RecordJson& f : reader.json["fingerprints"]) {
    r.fingerprints.emplace_back(f[0].get<int64_t>(),
                                Fingerprint{f[1].get<std::vector<int64_t>>(), f[2].get<int64_t>(),
                                            f[3].get<uint64_t>(), NumberOf(f[4]), NumberOf(f[5])});
  }
  for (const RecordJson& point : reader.json["gate"]) {
    r.gate.push_back({point[0].get<int64_t>(), point[1].get<int64_t>(), point[2].get<int64_t>()});
  }
  return r;
}

std::string TransportName(const Options& options, const RunReport& report) {
  const bool is_one_lane = options.compare_transports.empty() && !report.wires.empty();
  if (options.gpu.transport != "mpi" || !is_one_lane) return options.gpu.transport;
  const std::vector<WireReport>& wires = report.wires.front().report.wires;
  // Between them are no direct copies, so all ranks are reached alike.
  return wires.empty() ? options.gpu.transport : wires.front().wire;
}

std::vector<GatePoint> GateOf(const TraceLog& log, int64_t begin_ns) {
  const absl::StatusOr<TraceContent> content = DecodeTrace(log.Serialize());
  if (!content.ok()) return {};
  std::vector<GatePoint> all;
  for (const TraceEvent& event : content->events) {
    if (event.kind != TraceKind::kSample || event.begin_ns < begin_ns) continue;
    all.push_back({event.begin_ns - begin_ns, event.count, event.bytes});
  }
  if (all.size() <= kGatePointsMax) return all;
  // The last point is the end, and stays.
  const int64_t step = 1 + all.back().ns / static_cast<int64_t>(kGatePointsMax - 1);
  std::vector<GatePoint> kept;
  for (const GatePoint& point : absl::MakeConstSpan(all).first(all.size() - 1)) {
    if (kept.empty() || point.ns / step > kept.back().ns / step) {
      kept.push_back(point);
    } else {
      kept.back().buckets = std::max(kept.back().buckets, point.buckets);
      kept.back().bytes = std::max(kept.back().bytes, point.bytes);
    }
  }
  kept.push_back(all.back());
  return kept;
}

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
  return times;
}

const char* ClockName(bool one_host) { return one_host ? "monotonic" : "barrier"; }

CaseResult Summarise(const std::string& id, const TransferSpec& spec, const Options& options,
                     const Session& session, bool one_host, absl::Span<const RankRecord> records) {
  CaseResult result;
  result.id = id;
  result.dtype = DTypeOf(spec);
  result.tensors = static_cast<int64_t>(spec.tensors.size());
  result.tensor_bytes = BytesOf(spec);
  result.bucket_bytes = records[0].stats.bucket_bytes;
  result.max_in_flight = records[0].stats.max_in_flight;
  result.automatic = !session.options().bucket_bytes || !session.options().max_in_flight;
  result.coalesce = session.options().coalesce;
  result.limit_buckets = session.slots();
  result.limit_bytes = session.slots() * session.slot_bytes();
  result.plan_hash = records[0].stats.plan_hash;
  result.corruptible_elements = records[0].corruptible_elements;
  result.checked = options.check != Check::kNone || options.corrupt_bytes > 0;
  result.sampled = options.check == Check::kSample && options.corrupt_bytes == 0;
  for (const RankRecord& record : records) AddRank(record, &result);
  result.wait_share /= static_cast<double>(records.size());
  result.memory = GrowthOf(options, result, records);
  result.iterations_us = IterationTimes(records, one_host);
  SetTimes(result.iterations_us, &result);
  ChooseGate(records, &result);
  result.target_ranks = OrderFingerprints(spec, records);
  return result;
}

BaselineResult CompareWith(const std::string& name, const std::string& reason,
                           const std::vector<double>& our_times,
                           absl::Span<const RankRecord> records, bool one_host,
                           const CaseResult& ours) {
  BaselineResult result;
  result.name = name;
  result.reason = reason;
  const std::vector<double> times = IterationTimes(records, one_host);
  if (!reason.empty() || times.empty()) return result;
  for (const RankRecord& record : records) result.wrong += record.wrong;
  result.time_us = Median(times);
  result.gb_per_s = GbPerSecond(ours.payload_bytes, result.time_us);
  result.ratio = RatioOf(times, our_times);
  return result;
}

}  // namespace sluice::bench
