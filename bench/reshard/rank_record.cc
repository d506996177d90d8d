// One rank's record as bytes, and back.
#include "reshard/rank_record.h"

#include <nlohmann/json.hpp>

namespace sluice::bench {
namespace {

using RecordJson = nlohmann::json;

constexpr int64_t kNone = -1;

RecordJson EncodeFingerprint(int64_t tensor, const Fingerprint& f) {
  return {tensor,
          f.local_shape,
          f.checksum,
          f.ordered_checksum,
          f.first.value_or(kNone),
          f.last.value_or(kNone)};
}

std::pair<int64_t, Fingerprint> DecodeFingerprint(const RecordJson& json) {
  Fingerprint f;
  f.local_shape = json[1].get<std::vector<int64_t>>();
  f.checksum = json[2].get<int64_t>();
  f.ordered_checksum = json[3].get<uint64_t>();
  if (json[4] != kNone) f.first = json[4].get<int64_t>();
  if (json[5] != kNone) f.last = json[5].get<int64_t>();
  return {json[0].get<int64_t>(), f};
}

}  // namespace

std::string Encode(const RankRecord& r) {
  const TransferStats& s = r.stats;
  const SessionCounters& c = r.counters;
  RecordJson json = {{"start", r.start_ns},
                     {"end", r.end_ns},
                     {"wrong", r.wrong},
                     {"peak_target", r.peak_target_bytes},
                     {"whole_target", r.whole_target_bytes},
                     {"grown", r.grown_bytes},
                     {"grown_by", r.grown_by},
                     {"corruptible", r.corruptible_elements},
                     {"buckets", s.buckets_as_source},
                     {"channels", s.channels_as_source},
                     {"received", s.received_bytes},
                     {"sent", s.sent_bytes},
                     {"plan_hash", s.plan_hash},
                     {"bucket_bytes", s.bucket_bytes},
                     {"max_in_flight", s.max_in_flight},
                     {"free_buckets", s.peak_buckets_without_budget},
                     {"free_bytes", s.peak_bytes_without_budget},
                     {"plan_ns", absl::ToInt64Nanoseconds(s.plan_time)},
                     {"peak_buckets", c.buckets_peak},
                     {"peak_bytes", c.staging_bytes_peak},
                     {"peak_ops", c.operations_peak},
                     {"running_ns", absl::ToInt64Nanoseconds(c.running)},
                     {"budget_wait_ns", absl::ToInt64Nanoseconds(c.budget_wait)},
                     {"fingerprints", RecordJson::array()}};
  for (const auto& [tensor, fingerprint] : r.fingerprints) {
    json["fingerprints"].push_back(EncodeFingerprint(tensor, fingerprint));
  }
  return json.dump();
}

RankRecord Decode(const std::string& text) {
  const RecordJson json = RecordJson::parse(text);
  RankRecord r;
  r.start_ns = json["start"].get<std::vector<int64_t>>();
  r.end_ns = json["end"].get<std::vector<int64_t>>();
  r.wrong = json["wrong"].get<int64_t>();
  r.peak_target_bytes = json["peak_target"].get<int64_t>();
  r.whole_target_bytes = json["whole_target"].get<int64_t>();
  r.grown_bytes = json["grown"].get<int64_t>();
  r.grown_by = json["grown_by"].get<std::string>();
  r.corruptible_elements = json["corruptible"].get<int64_t>();
  r.stats.buckets_as_source = json["buckets"].get<int64_t>();
  r.stats.channels_as_source = json["channels"].get<int64_t>();
  r.stats.received_bytes = json["received"].get<int64_t>();
  r.stats.sent_bytes = json["sent"].get<int64_t>();
  r.stats.plan_hash = json["plan_hash"].get<uint64_t>();
  r.stats.bucket_bytes = json["bucket_bytes"].get<int64_t>();
  r.stats.max_in_flight = json["max_in_flight"].get<int>();
  r.stats.peak_buckets_without_budget = json["free_buckets"].get<int64_t>();
  r.stats.peak_bytes_without_budget = json["free_bytes"].get<int64_t>();
  r.stats.plan_time = absl::Nanoseconds(json["plan_ns"].get<int64_t>());
  r.counters.buckets_peak = json["peak_buckets"].get<int64_t>();
  r.counters.staging_bytes_peak = json["peak_bytes"].get<int64_t>();
  r.counters.operations_peak = json["peak_ops"].get<int64_t>();
  r.counters.running = absl::Nanoseconds(json["running_ns"].get<int64_t>());
  r.counters.budget_wait = absl::Nanoseconds(json["budget_wait_ns"].get<int64_t>());
  for (const RecordJson& item : json["fingerprints"])
    r.fingerprints.push_back(DecodeFingerprint(item));
  return r;
}

}  // namespace sluice::bench
