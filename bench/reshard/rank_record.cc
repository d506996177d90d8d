// One rank's record as bytes, and back.
#include "reshard/rank_record.h"

#include <nlohmann/json.hpp>
#include <type_traits>

#include "absl/time/time.h"

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

// Calls visit(name, field) for each field but the fingerprints.
template <typename Record, typename Visit>
void ForEachField(Record& r, Visit visit) {
  visit("start", r.start_ns);
  visit("end", r.end_ns);
  visit("wrong", r.wrong);
  visit("peak_target", r.peak_target_bytes);
  visit("whole_target", r.whole_target_bytes);
  visit("grown", r.grown_bytes);
  visit("grown_by", r.grown_by);
  visit("corruptible", r.corruptible_elements);
  visit("buckets", r.stats.buckets_as_source);
  visit("channels", r.stats.channels_as_source);
  visit("received", r.stats.received_bytes);
  visit("sent", r.stats.sent_bytes);
  visit("plan_hash", r.stats.plan_hash);
  visit("bucket_bytes", r.stats.bucket_bytes);
  visit("max_in_flight", r.stats.max_in_flight);
  visit("free_buckets", r.stats.peak_buckets_without_budget);
  visit("free_bytes", r.stats.peak_bytes_without_budget);
  visit("plan", r.stats.plan_time);
  visit("peak_buckets", r.counters.buckets_peak);
  visit("peak_bytes", r.counters.staging_bytes_peak);
  visit("peak_ops", r.counters.operations_peak);
  visit("running", r.counters.running);
  visit("budget_wait", r.counters.budget_wait);
}

}  // namespace

std::string Encode(const RankRecord& r) {
  RecordJson json = {{"fingerprints", RecordJson::array()}};
  ForEachField(r, [&](const char* name, const auto& field) {
    if constexpr (std::is_same_v<decltype(field), const absl::Duration&>) {
      json[name] = absl::ToInt64Nanoseconds(field);
    } else {
      json[name] = field;
    }
  });
  for (const auto& [tensor, fingerprint] : r.fingerprints) {
    json["fingerprints"].push_back(EncodeFingerprint(tensor, fingerprint));
  }
  return json.dump();
}

RankRecord Decode(const std::string& text) {
  const RecordJson json = RecordJson::parse(text);
  RankRecord r;
  ForEachField(r, [&](const char* name, auto& field) {
    if constexpr (std::is_same_v<decltype(field), absl::Duration&>) {
      field = absl::Nanoseconds(json[name].get<int64_t>());
    } else {
      json[name].get_to(field);
    }
  });
  for (const RecordJson& item : json["fingerprints"]) {
    r.fingerprints.push_back(DecodeFingerprint(item));
  }
  return r;
}

}  // namespace sluice::bench
