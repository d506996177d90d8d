// The fields of a session's options, and of its counters and transfers' statistics.
#ifndef SLUICE_SRC_SESSION_DESCRIBE_SESSION_H_
#define SLUICE_SRC_SESSION_DESCRIBE_SESSION_H_

#include <cstdint>

#include "session/base/describe.h"
#include "sluice/session.h"

namespace sluice {

// All but `accelerator` and `transport`. Session::Create names those that are equal on all ranks.
template <typename Visitor, MaybeConst<SessionOptions> Struct>
void Describe(Visitor& v, Struct& o) {
  // At least two of the largest elements.
  v.Field("bucket_bytes", o.bucket_bytes, {.min = 16, .max = int64_t{1} << 30});
  v.Field("max_in_flight", o.max_in_flight, {.min = 1, .max = 1 << 16});
  v.Field("budget_buckets", o.budget_buckets, {.min = 1, .no_limit = true});
  v.Field("budget_bytes", o.budget_bytes, {.min = 1, .no_limit = true});
  v.Field("trace_events", o.trace_events, {.min = 0, .max = int64_t{1} << 24});  // 1 GiB
  v.Field("timeout", o.timeout, {.min = 1});
  v.Field("patience", o.patience, {.min = 0});
  v.Field("coalesce", o.coalesce, {});
  v.Field("progress_thread", o.progress_thread, {});
  v.Field("direct", o.direct, {});
}

template <typename Visitor, MaybeConst<SessionCounters> Struct>
void Describe(Visitor& v, Struct& s) {
  EachOf(v, "buckets_finished", s.buckets_finished, "buckets_peak", s.buckets_peak,
         "staging_bytes_peak", s.staging_bytes_peak, "operations_peak", s.operations_peak,
         "waited_for_channel", s.waited_for_channel, "waited_for_budget", s.waited_for_budget,
         "running_s", s.running, "budget_wait_s", s.budget_wait);
}

template <typename Visitor, MaybeConst<TransferStats> Struct>
void Describe(Visitor& v, Struct& s) {
  EachOf(v, "buckets", s.buckets, "buckets_as_source", s.buckets_as_source, "channels", s.channels,
         "channels_as_source", s.channels_as_source, "sent_bytes", s.sent_bytes, "received_bytes",
         s.received_bytes, "local_bytes", s.local_bytes, "plan_hash", s.plan_hash, "bucket_bytes",
         s.bucket_bytes, "max_in_flight", s.max_in_flight, "peak_buckets_without_budget",
         s.peak_buckets_without_budget, "peak_bytes_without_budget", s.peak_bytes_without_budget);
  v.Field("plan_s", s.plan_time, {.name = "plan_time"});
}

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_DESCRIBE_SESSION_H_
