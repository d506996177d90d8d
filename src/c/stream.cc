// Streams of data shards, and leases of what they bring.
#include "sluice/stream.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "c/call.h"
#include "c/convert.h"
#include "c/handles.h"
#include "c/metrics.h"
#include "c/structs.h"
#include "session/stream/describe_stream.h"
#include "tensor/error_text.h"

namespace sluice::c {
namespace {

absl::Status OfAnotherThread(absl::string_view what) {
  return absl::FailedPreconditionError(
      absl::StrCat("the ", what, " belongs to another thread than the one that calls"));
}

absl::StatusOr<ItemTransform> ToTransform(const sluice_transform* given) {
  sluice_transform read;
  SLUICE_RETURN_IF_ERROR(ReadStruct("sluice_transform", given, &read));
  ItemTransform transform;
  SLUICE_ASSIGN_OR_RETURN(const DType src, ToDType("transform.src", read.src));
  SLUICE_ASSIGN_OR_RETURN(const DType dst, ToDType("transform.dst", read.dst));
  transform.src = src;
  transform.dst = dst;
  if (read.scale != 0) transform.scale = read.scale;
  transform.bias = read.bias;
  SLUICE_ASSIGN_OR_RETURN(const auto scale,
                          ReadFixed("transform.channel_scale", read.channel_scale, read.channels));
  SLUICE_ASSIGN_OR_RETURN(const auto bias,
                          ReadFixed("transform.channel_bias", read.channel_bias, read.channels));
  transform.channel_scale.assign(scale.begin(), scale.end());
  transform.channel_bias.assign(bias.begin(), bias.end());
  if (read.shape != nullptr) transform.shape.assign(read.shape, read.shape + 3);
  transform.planar = read.planar != 0;
  if (read.crop_height != 0 || read.crop_width != 0) {
    transform.crop = {read.crop_top, read.crop_left, read.crop_height, read.crop_width};
  }
  return transform;
}

// Whether this thread is in a generator of the caller's, which must not use streams: it may be what
// they wait for.
thread_local bool t_generates = false;

// Has items made by the caller's function, which threads of the stream call.
void SetGenerator(const sluice_stream_options& read, StreamSource* source) {
  auto* const generate = read.generate;
  void* const self = read.self;
  if (generate == nullptr) return;
  const auto make = [generate, self](int64_t item,
                                     absl::Span<std::byte> into) -> absl::StatusOr<int64_t> {
    const auto capacity = static_cast<int64_t>(into.size());
    int64_t bytes = capacity;
    t_generates = true;
    const absl::Status status = CallBack("the caller's generator", [&] {
      return generate(self, item, into.data(), capacity, &bytes);
    });
    t_generates = false;
    if (!status.ok()) return status;
    return bytes;
  };
  if (read.sized != 0) {
    source->sized_generator = make;
  } else {
    source->generator = [make](int64_t item, absl::Span<std::byte> into) {
      return make(item, into).status();
    };
  }
}

absl::Status SetSource(const sluice_stream_options& read, StreamSource* source) {
  if (read.format < SLUICE_FORMAT_INDEX || read.format > SLUICE_FORMAT_SAFETENSORS) {
    return absl::InvalidArgumentError(absl::StrCat("there is no format ", read.format));
  }
  if (read.generate_order < SLUICE_GENERATE_FREE ||
      read.generate_order > SLUICE_GENERATE_ONE_AHEAD) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no generate_order ", read.generate_order));
  }
  if (read.uri != nullptr && read.generate != nullptr) {
    return absl::InvalidArgumentError("both `uri` and `generate` are set");
  }
  source->uri = TextOf(read.uri);
  source->format = static_cast<ItemFormat>(read.format);
  source->index = TextOf(read.index);
  source->item_bytes = read.item_bytes;
  SetGenerator(read, source);
  source->generator_items = read.generator_items;
  source->generate_order = static_cast<GenerateOrder>(read.generate_order);
  if (read.generate_ahead != 0) source->generate_ahead = read.generate_ahead;
  if (read.generator_threads != 0) source->generator_threads = read.generator_threads;
  if (read.connections != 0) source->connections = read.connections;
  source->ca_file = TextOf(read.ca_file);
  source->s3.endpoint = TextOf(read.s3_endpoint);
  source->s3.region = TextOf(read.s3_region);
  return absl::OkStatus();
}

absl::Status SetOrder(const sluice_stream_options& read, StreamOrder* order) {
  if (read.cursor == nullptr && read.cursor_bytes > 0) return IsNull("cursor");
  order->shuffle = read.shuffle != 0;
  order->seed = read.seed;
  if (read.shuffle_block_items != 0) order->shuffle_block_items = read.shuffle_block_items;
  if (read.epochs != 0) order->epochs = read.epochs;
  if (read.cursor_bytes > 0) {
    order->cursor.assign(static_cast<const char*>(read.cursor), read.cursor_bytes);
  }
  order->in_order = read.as_they_come == 0;
  return absl::OkStatus();
}

absl::Status SetReads(const sluice_stream_options& read, StreamReads* reads) {
  if (read.budget_bytes != 0) reads->budget_bytes = read.budget_bytes;
  if (read.slots != 0) reads->slots = read.slots;
  if (read.piece_bytes != 0) reads->piece_bytes = read.piece_bytes;
  reads->exchange = read.no_exchange == 0;
  reads->hedge.enabled = read.hedge != 0;
  if (read.hedge_quantile != 0) reads->hedge.quantile = read.hedge_quantile;
  if (read.hedge_extra_share_max != 0) reads->hedge.extra_share_max = read.hedge_extra_share_max;
  if (read.attempts_max != 0) reads->retry.attempts_max = read.attempts_max;
  SLUICE_RETURN_IF_ERROR(ReadTime("backoff_s", read.backoff_s, &reads->retry.backoff));
  return ReadTime("request_timeout_s", read.request_timeout_s, &reads->retry.request_timeout);
}

absl::StatusOr<StreamOptions> ToStreamOptions(const sluice_stream_options* given) {
  sluice_stream_options read;
  SLUICE_RETURN_IF_ERROR(ReadStruct("sluice_stream_options", given, &read));
  StreamOptions options;
  SLUICE_RETURN_IF_ERROR(SetSource(read, &options.source));
  SLUICE_RETURN_IF_ERROR(SetOrder(read, &options.order));
  SLUICE_RETURN_IF_ERROR(SetReads(read, &options.reads));
  options.selection.first = read.first;
  if (read.step != 0) options.selection.step = read.step;
  if (read.end != 0) options.selection.end = read.end;
  if (read.buffers != 0) options.buffers.count = read.buffers;
  if (read.batch_items != 0) options.buffers.batch_items = read.batch_items;
  SLUICE_RETURN_IF_ERROR(ReadTime("timeout_s", read.timeout_s, &options.timeout));
  if (read.transform != nullptr) {
    SLUICE_ASSIGN_OR_RETURN(options.buffers.transform, ToTransform(read.transform));
  }
  return options;
}

absl::Status OpenOn(sluice_session* session, const sluice_stream_options* given,
                    sluice_stream** stream) {
  absl::StatusOr<StreamOptions> options = IsNull("stream");
  if (stream != nullptr) options = Try([&] { return ToStreamOptions(given); });
  if (!options.ok()) return Refuse(session, "OpenStream", options.status());
  auto handle = std::make_unique<sluice_stream>();
  handle->session = session;
  SLUICE_ASSIGN_OR_RETURN(handle->stream, OpenStream(session->session.get(), *options));
  const std::lock_guard lock(session->streams_mutex);
  session->streams.push_back(std::move(handle));
  *stream = session->streams.back().get();
  return absl::OkStatus();
}

absl::Status CheckCaller(const sluice_stream* stream) {
  if (stream == nullptr) return IsNull("stream");
  return t_generates ? absl::FailedPreconditionError("a generator cannot use a stream")
                     : absl::OkStatus();
}

bool MayHaveThread(const sluice_stream& stream) {
  return stream.session->session->options().progress_thread;
}

// Whether this thread may use the stream: the session's, until another one has claimed it.
absl::Status CheckStream(const sluice_stream* stream) {
  SLUICE_RETURN_IF_ERROR(CheckCaller(stream));
  const std::thread::id owner = stream->owner.load();
  if (!MayHaveThread(*stream) || owner == std::thread::id()) return CheckSession(stream->session);
  return owner == std::this_thread::get_id() ? absl::OkStatus() : OfAnotherThread("stream");
}

// Makes the stream this thread's, if no other one has it.
absl::Status ClaimStream(sluice_stream* stream) {
  SLUICE_RETURN_IF_ERROR(CheckCaller(stream));
  if (!MayHaveThread(*stream)) return CheckSession(stream->session);
  std::thread::id owner;
  const std::thread::id self = std::this_thread::get_id();
  const bool is_own = stream->owner.compare_exchange_strong(owner, self) || owner == self;
  return is_own ? absl::OkStatus() : OfAnotherThread("stream");
}

// While a thread is in a call of a stream, the session cannot be destroyed.
class StreamCall {
 public:
  explicit StreamCall(const sluice_stream& stream) : session_(stream.session) { Add(1); }
  ~StreamCall() { Add(-1); }
  StreamCall(const StreamCall&) = delete;
  StreamCall& operator=(const StreamCall&) = delete;

 private:
  void Add(int calls) {
    const std::lock_guard lock(session_->streams_mutex);
    session_->stream_calls += calls;
  }

  sluice_session* const session_;
};

absl::Status CloseStream(sluice_stream* stream) {
  std::unique_ptr<sluice_stream> closed;
  {
    sluice_session* const session = stream->session;
    const std::lock_guard lock(session->streams_mutex);
    for (auto each = session->streams.begin(); each != session->streams.end(); ++each) {
      if (each->get() != stream) continue;
      closed = std::move(*each);
      session->streams.erase(each);
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckItem(const sluice_lease* lease, int64_t i, int64_t first) {
  if (lease == nullptr) return IsNull("lease");
  if (i >= first && i < lease->lease.items()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the lease has no item ", i, ", only 0 .. ", lease->lease.items() - 1));
}

absl::Status ViewItem(sluice_lease* lease, int64_t i, sluice_view* view) {
  SLUICE_RETURN_IF_ERROR(CheckItem(lease, i, -1));
  if (i < 0 && !lease->lease.is_batch()) {
    return absl::InvalidArgumentError("items of several sizes are no batch");
  }
  const int64_t items = lease->lease.items();
  if (lease->views.empty()) lease->views.resize(static_cast<size_t>(items) + 1);
  // The shape's memory stays as long as the lease: it is written once.
  TensorView& kept = lease->views[static_cast<size_t>(i < 0 ? items : i)];
  if (kept.data == nullptr) kept = i < 0 ? lease->lease.batch() : lease->lease.view(i);
  view->data = kept.data;
  view->byte_offset = kept.byte_offset;
  view->shape = kept.shape.data();
  view->strides = kept.strides.empty() ? nullptr : kept.strides.data();
  view->ndim = static_cast<int32_t>(kept.shape.size());
  view->dtype = FromDType(kept.dtype);
  view->device = static_cast<int32_t>(kept.device);
  view->ordinal = kept.device_ordinal;
  return absl::OkStatus();
}

absl::Status CheckLease(const sluice_lease* lease) {
  if (lease == nullptr) return IsNull("lease");
  return lease->owner == std::this_thread::get_id() ? absl::OkStatus() : OfAnotherThread("lease");
}

}  // namespace
}  // namespace sluice::c

using sluice::c::CheckLease;
using sluice::c::CheckStream;
using sluice::c::Guard;
using sluice::c::IsNull;

sluice_status sluice_stream_open(sluice_session* session, const sluice_stream_options* options,
                                 sluice_stream** stream) {
  return Guard("sluice_stream_open", [&]() -> absl::Status {
    sluice::c::Clear(stream);
    SLUICE_RETURN_IF_ERROR(sluice::c::CheckSession(session));
    return sluice::c::OpenOn(session, options, stream);
  });
}

sluice_status sluice_stream_next(sluice_stream* stream, sluice_lease** lease) {
  return Guard("sluice_stream_next", [&]() -> absl::StatusOr<sluice_status> {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("lease", lease));
    SLUICE_RETURN_IF_ERROR(sluice::c::CheckCaller(stream));
    // Counts the call first: a thread that sees the claim then sees the call, too.
    const sluice::c::StreamCall call(*stream);
    SLUICE_RETURN_IF_ERROR(sluice::c::ClaimStream(stream));
    auto handle = std::make_unique<sluice_lease>();
    handle->owner = std::this_thread::get_id();
    SLUICE_ASSIGN_OR_RETURN(sluice::Lease next, stream->stream->Next());
    if (next.end()) return SLUICE_END;
    handle->lease = std::move(next);
    *lease = handle.release();
    return SLUICE_OK;
  });
}

int32_t sluice_stream_ready(const sluice_stream* stream) {
  if (stream == nullptr) return -1;
  const sluice::c::StreamCall call(*stream);
  return stream->stream->Ready() ? 1 : 0;
}

sluice_status sluice_stream_end_update(sluice_stream* stream) {
  return Guard("sluice_stream_end_update", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(CheckStream(stream));
    const sluice::c::StreamCall call(*stream);
    stream->stream->EndUpdate();
    return absl::OkStatus();
  });
}

int64_t sluice_stream_items(const sluice_stream* stream) {
  return stream == nullptr ? -1 : stream->stream->items();
}

sluice_status sluice_stream_cursor(const sluice_stream* stream, void* cursor, size_t* bytes) {
  return Guard("sluice_stream_cursor", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(CheckStream(stream));
    const sluice::c::StreamCall call(*stream);
    return sluice::c::WriteBytes(stream->stream->Cursor(), 0, cursor, bytes);
  });
}

sluice_status sluice_stream_metrics(sluice_stream* stream, sluice_metric* metrics, int64_t* count) {
  return Guard("sluice_stream_metrics", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(CheckStream(stream));
    const sluice::c::StreamCall call(*stream);
    return sluice::c::WriteMetrics(sluice::c::MetricsOf(stream->stream->stats()), metrics, count);
  });
}

sluice_status sluice_stream_close(sluice_stream* stream) {
  return Guard("sluice_stream_close", [&]() -> absl::Status {
    if (stream == nullptr) return absl::OkStatus();
    SLUICE_RETURN_IF_ERROR(CheckStream(stream));
    const sluice::c::StreamCall call(*stream);
    return sluice::c::CloseStream(stream);
  });
}

sluice_status sluice_merge_cursors(const void* const* cursors, const size_t* cursor_bytes,
                                   int64_t num_cursors, void* merged, size_t* bytes) {
  return Guard("sluice_merge_cursors", [&]() -> absl::Status {
    SLUICE_ASSIGN_OR_RETURN(const auto firsts,
                            sluice::c::ReadFixed("cursors", cursors, num_cursors));
    SLUICE_ASSIGN_OR_RETURN(const auto lengths,
                            sluice::c::ReadFixed("cursor_bytes", cursor_bytes, num_cursors));
    std::vector<std::string> all;
    for (size_t i = 0; i < firsts.size(); ++i) {
      if (firsts[i] == nullptr) return IsNull(absl::StrCat("cursors[", i, "]"));
      all.emplace_back(static_cast<const char*>(firsts[i]), lengths[i]);
    }
    SLUICE_ASSIGN_OR_RETURN(const std::string one, sluice::MergeCursors(all));
    return sluice::c::WriteBytes(one, 0, merged, bytes);
  });
}

int64_t sluice_lease_items(const sluice_lease* lease) {
  return lease == nullptr ? -1 : lease->lease.items();
}

int64_t sluice_lease_item(const sluice_lease* lease, int64_t i) {
  if (lease == nullptr || i < 0 || i >= lease->lease.items()) return -1;
  return lease->lease.item(i);
}

int64_t sluice_lease_epoch(const sluice_lease* lease, int64_t i) {
  if (lease == nullptr || i < 0 || i >= lease->lease.items()) return -1;
  return lease->lease.epoch(i);
}

sluice_status sluice_lease_view(sluice_lease* lease, int64_t i, sluice_view* view) {
  return Guard("sluice_lease_view", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("view", view));
    SLUICE_RETURN_IF_ERROR(CheckLease(lease));
    return sluice::c::ViewItem(lease, i, view);
  });
}

sluice_status sluice_lease_to_dlpack(sluice_lease* lease, int64_t i, void** managed_tensor) {
  return Guard("sluice_lease_to_dlpack", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("managed_tensor", managed_tensor));
    SLUICE_RETURN_IF_ERROR(CheckLease(lease));
    SLUICE_ASSIGN_OR_RETURN(*managed_tensor, sluice::ToDLPack(&lease->lease, i));
    delete lease;
    return absl::OkStatus();
  });
}

sluice_status sluice_lease_release(sluice_lease* lease) {
  return Guard("sluice_lease_release", [&]() -> absl::Status {
    if (lease == nullptr) return absl::OkStatus();
    SLUICE_RETURN_IF_ERROR(CheckLease(lease));
    delete lease;
    return absl::OkStatus();
  });
}
