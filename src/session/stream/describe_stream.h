// The fields of a stream's options and statistics.
#ifndef SLUICE_SRC_SESSION_STREAM_DESCRIBE_STREAM_H_
#define SLUICE_SRC_SESSION_STREAM_DESCRIBE_STREAM_H_

#include "session/base/describe.h"
#include "sluice/stream.h"

namespace sluice {

inline constexpr const char* kItemFormats[] = {"index", "raw", "npy", "safetensors"};
inline constexpr const char* kGenerateOrders[] = {"free", "after_update", "one_ahead"};

template <typename Visitor, MaybeConst<ItemCrop> Struct>
void Describe(Visitor& v, Struct& o) {
  v.Field("top", o.top, {.equal = true});
  v.Field("left", o.left, {.equal = true});
  v.Field("height", o.height, {.equal = true});
  v.Field("width", o.width, {.equal = true});
}

template <typename Visitor, MaybeConst<ItemTransform> Struct>
void Describe(Visitor& v, Struct& o) {
  v.Field("src", o.src, {.equal = true});
  v.Field("dst", o.dst, {.equal = true});
  v.Field("scale", o.scale, {.equal = true});
  v.Field("bias", o.bias, {.equal = true});
  v.Field("channel_scale", o.channel_scale, {.equal = true});
  v.Field("channel_bias", o.channel_bias, {.equal = true});
  v.Field("shape", o.shape, {.equal = true});
  v.Field("planar", o.planar, {.equal = true});
  v.Field("crop", o.crop, {.equal = true});
}

// All but the generators.
template <typename Visitor, MaybeConst<StreamOptions> Struct>
void Describe(Visitor& v, Struct& o) {
  v.Field("source.uri", o.source.uri, {.equal = true});
  v.Field("source.format", o.source.format, {.equal = true, .names = kItemFormats});
  v.Field("source.index", o.source.index, {});
  v.Field("source.item_bytes", o.source.item_bytes, {.equal = true});
  v.Field("source.generator_items", o.source.generator_items, {.equal = true});
  v.Field("source.generate_order", o.source.generate_order,
          {.equal = true, .names = kGenerateOrders});
  v.Field("source.generate_ahead", o.source.generate_ahead, {.min = 1, .equal = true});
  v.Field("source.generator_threads", o.source.generator_threads,
          {.min = 1, .max = 256, .equal = true});
  v.Field("source.connections", o.source.connections, {.min = 1, .max = kConnectionsMax});
  v.Field("source.ca_file", o.source.ca_file, {});
  DescribeS3(v, o.source.s3);
  v.Field("selection.first", o.selection.first, {.min = 0});
  v.Field("selection.step", o.selection.step, {.min = 1});
  v.Field("selection.end", o.selection.end, {.min = 0});
  v.Field("order.shuffle", o.order.shuffle, {.equal = true});
  v.Field("order.seed", o.order.seed, {.equal = true});
  v.Field("order.shuffle_block_items", o.order.shuffle_block_items, {.min = 1, .equal = true});
  v.Field("order.epochs", o.order.epochs, {.min = 1, .equal = true});
  v.Field("order.cursor", o.order.cursor, {.is_bytes = true});
  v.Field("order.in_order", o.order.in_order, {});
  v.Field("reads.budget_bytes", o.reads.budget_bytes, {.min = 1});
  v.Field("reads.slots", o.reads.slots, {.min = 1});
  v.Field("reads.piece_bytes", o.reads.piece_bytes, {.min = 1, .equal = true});
  v.Field("reads.exchange", o.reads.exchange, {.equal = true});
  v.Field("reads.hedge.enabled", o.reads.hedge.enabled, {.name = "hedge"});
  v.Field("reads.hedge.quantile", o.reads.hedge.quantile, {.name = "hedge_quantile"});
  v.Field("reads.hedge.extra_share_max", o.reads.hedge.extra_share_max,
          {.name = "hedge_extra_share_max"});
  v.Field("reads.retry.attempts_max", o.reads.retry.attempts_max, {.min = 1});
  v.Field("reads.retry.backoff", o.reads.retry.backoff, {});
  v.Field("reads.retry.request_timeout", o.reads.retry.request_timeout, {.min = 1});
  v.Field("buffers.count", o.buffers.count, {.name = "buffers", .min = 1});
  v.Field("buffers.batch_items", o.buffers.batch_items, {.min = 1});
  v.Field("buffers.device", o.buffers.device, {});
  v.Field("buffers.await_in_stream", o.buffers.await_in_stream, {});
  v.Field("buffers.transform", o.buffers.transform, {.equal = true});
  v.Field("timeout", o.timeout, {.min = 1});
  v.Field("trace_epochs", o.trace_epochs, {.min = 0});
}

template <typename Visitor, MaybeConst<StreamStats> Struct>
void Describe(Visitor& v, Struct& s) {
  EachOf(v, "items", s.items, "bytes", s.bytes, "requests", s.requests, "bytes_read", s.bytes_read,
         "read_runs", s.read_runs, "opens", s.opens, "connections", s.connections, "hedges",
         s.hedges, "hedges_won", s.hedges_won, "retries", s.retries, "slots_max", s.slots_max,
         "slots_peak", s.slots_peak, "budget_bytes", s.budget_bytes, "budget_bytes_peak",
         s.budget_bytes_peak, "slot_bytes", s.slot_bytes);
  v.Field("buffer_bytes", s.device_bytes, {.name = "device_bytes"});
  EachOf(v, "bytes_copied", s.bytes_copied, "staleness_max", s.staleness_max, "trace_left_out",
         s.trace_left_out, "first_item_s", s.first_item, "reading_s", s.reading, "exchanging_s",
         s.exchanging, "copying_s", s.copying, "busy_s", s.busy, "waiting_s", s.waiting,
         "consuming_s", s.consuming);
}

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_DESCRIBE_STREAM_H_
