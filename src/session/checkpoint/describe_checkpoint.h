// The fields of a checkpoint's options and statistics.
#ifndef SLUICE_SRC_SESSION_CHECKPOINT_DESCRIBE_CHECKPOINT_H_
#define SLUICE_SRC_SESSION_CHECKPOINT_DESCRIBE_CHECKPOINT_H_

#include <cstdint>

#include "session/base/describe.h"
#include "sluice/checkpoint.h"

namespace sluice {

// All but `metadata`, `catalog` and `progress`.
template <typename Visitor, MaybeConst<CheckpointOptions> Struct>
void Describe(Visitor& v, Struct& o) {
  v.Field("budget_bytes", o.budget_bytes, {.min = 1});
  v.Field("slots", o.slots, {.min = 1});
  v.Field("piece_bytes", o.piece_bytes, {.min = 64, .max = int64_t{1} << 30, .equal = true});
  v.Field("shard_bytes_max", o.shard_bytes_max, {.min = 1, .equal = true});
  v.Field("retry.attempts_max", o.retry.attempts_max, {.min = 1});
  v.Field("retry.backoff", o.retry.backoff, {});
  v.Field("retry.request_timeout", o.retry.request_timeout, {.min = 1});
  v.Field("timeout", o.timeout, {.min = 1});
  v.Field("connections", o.connections, {.min = 1, .max = kConnectionsMax});
  v.Field("ca_file", o.ca_file, {});
  DescribeS3(v, o.s3);
}

template <typename Visitor, MaybeConst<CheckpointStats> Struct>
void Describe(Visitor& v, Struct& s) {
  EachOf(v, "tensors", s.tensors, "tensors_ignored", s.tensors_ignored, "files", s.files, "pieces",
         s.pieces, "file_pieces", s.file_pieces, "file_bytes", s.file_bytes, "bytes_read",
         s.bytes_read, "header_bytes", s.header_bytes, "bytes", s.bytes, "sent_bytes", s.sent_bytes,
         "retries", s.retries, "slots_max", s.slots_max, "slots_peak", s.slots_peak, "budget_bytes",
         s.budget_bytes, "budget_bytes_peak", s.budget_bytes_peak, "piece_bytes", s.piece_bytes);
  v.Field("seconds", s.seconds);
  EachOf(v, "planning_s", s.planning, "reading_s", s.reading, "exchanging_s", s.exchanging,
         "copying_s", s.copying, "writing_s", s.writing, "syncing_s", s.syncing);
}

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_CHECKPOINT_DESCRIBE_CHECKPOINT_H_
