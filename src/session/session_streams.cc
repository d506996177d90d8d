// How streams are opened between ranks, and driven.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "device/normalization.h"
#include "session/backoff.h"
#include "session/clock.h"
#include "session/session_impl.h"
#include "session/stream_impl.h"
#include "session/stream_source.h"
#include "storage/shard_index.h"
#include "tensor/stable_hash.h"
#include "transport/deadline.h"

namespace sluice {
namespace {

// Messages of an index that is passed on.
constexpr size_t kIndexMessageBytes = size_t{1} << 20;

absl::Status CheckStreamOptions(const StreamOptions& options) {
  const auto at_least = [](absl::string_view name, int64_t value, int64_t least) {
    if (value >= least) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is ", value, " but must be at least ", least));
  };
  absl::Status status;
  status.Update(at_least("epochs", options.epochs, 1));
  status.Update(at_least("budget_bytes", options.budget_bytes, 1));
  status.Update(at_least("slots", options.slots, 0));
  status.Update(at_least("piece_bytes", options.piece_bytes, 0));
  status.Update(at_least("device_buffers", options.device_buffers, 1));
  status.Update(at_least("batch_items", options.batch_items, 1));
  status.Update(at_least("selection.first", options.selection.first, 0));
  status.Update(at_least("selection.step", options.selection.step, 1));
  status.Update(at_least("selection.end", options.selection.end, -1));
  status.Update(at_least("retry.attempts_max", options.retry.attempts_max, 1));
  status.Update(at_least("source.connections", options.source.connections, 1));
  if (status.ok() && options.timeout <= absl::ZeroDuration()) {
    status = absl::InvalidArgumentError("timeout must be above 0");
  }
  if (status.ok() && options.retry.request_timeout <= absl::ZeroDuration()) {
    status = absl::InvalidArgumentError("retry.request_timeout must be above 0");
  }
  if (status.ok() && options.epochs >= int64_t{1} << kRunBits) {
    status = absl::InvalidArgumentError(
        absl::StrCat("epochs is ", options.epochs, ", which is too many"));
  }
  if (status.ok() && options.transform &&
      !NormalizationExists(options.transform->src, options.transform->dst)) {
    status = absl::InvalidArgumentError(absl::StrCat("no transform leads from ",
                                                     DTypeName(options.transform->src), " to ",
                                                     DTypeName(options.transform->dst)));
  }
  return status;
}

// What must be equal on all ranks, as far as a session can see.
int64_t HashOf(const StreamOptions& options) {
  StableHash hash;
  hash.AddText(options.source.uri);
  hash.AddSigned(static_cast<int64_t>(options.source.format));
  hash.AddSigned(options.source.item_bytes);
  hash.AddSigned(options.source.generator_items);
  hash.AddSigned(options.shuffle ? 1 : 0);
  hash.Add(options.seed);
  hash.AddSigned(options.epochs);
  hash.AddSigned(options.piece_bytes);
  hash.AddSigned(options.exchange ? 1 : 0);
  return static_cast<int64_t>(hash.value());
}

// Reads that a source may have at once: slots that are not known before its items are.
int StreamReadsMax(const StreamOptions& options) {
  constexpr int64_t kReadsMax = 4096;
  return static_cast<int>(
      options.slots > 0 ? std::min(options.slots + options.slots / 8 + 2, kReadsMax) : kReadsMax);
}

// What each rank tells the others when a stream is opened.
struct StreamRecord {
  PlaceSet places;
  int64_t cursor_bytes = 0;
  std::array<char, Cursor::kBytesMax> cursor = {};
};
static_assert(sizeof(StreamRecord) <= Fabric::kMaxRecordBytes);

}  // namespace

absl::StatusOr<std::vector<std::byte>> SessionImpl::Gather(absl::Span<const std::byte> record,
                                                           const char* call) {
  if (absl::Status status = fabric_->StartAllGather(record); !status.ok()) return Poison(status);
  const Deadline deadline(options_.timeout);
  std::vector<std::byte> all;
  std::vector<int> missing;
  Backoff backoff;
  while (true) {
    const absl::StatusOr<bool> done = fabric_->PollAllGather(&all, &missing);
    if (!done.ok()) return Poison(done.status());
    if (*done) return all;
    if (absl::Status status = CheckAlarm(); !status.ok()) return status;
    if (deadline.Passed()) {
      return Poison(absl::DeadlineExceededError(
          absl::StrCat(call, ": no word from ranks ", RankList(missing), " for ",
                       absl::FormatDuration(options_.timeout))));
    }
    PauseFor(&backoff);
  }
}

absl::Status SessionImpl::RunMessages(Transport* transport, absl::Span<const TransportOp> ops,
                                      const char* call) {
  if (absl::Status status = transport->Start(ops); !status.ok()) return Poison(status);
  const Deadline deadline(options_.timeout);
  Backoff backoff;
  std::array<TransportEvent, 16> events;
  while (transport->outstanding() > 0) {
    const absl::StatusOr<int> count = transport->Poll(absl::MakeSpan(events));
    if (!count.ok()) return Poison(count.status());
    for (int i = 0; i < *count; ++i) {
      const absl::Status& status = events[static_cast<size_t>(i)].status;
      if (!status.ok()) return Poison(status);
    }
    if (absl::Status status = CheckAlarm(); !status.ok()) return status;
    if (deadline.Passed()) {
      return Poison(absl::DeadlineExceededError(absl::StrCat(call, ": the index does not cross")));
    }
    if (*count == 0) PauseFor(&backoff);
  }
  return absl::OkStatus();
}

// Rank 0 reads it for all, so that nothing is read twice.
absl::Status SessionImpl::ShareText(Transport* transport, std::string* text, const char* call) {
  const int64_t bytes = static_cast<int64_t>(text->size());
  absl::StatusOr<std::vector<std::byte>> all =
      Gather(absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&bytes), sizeof(bytes)), call);
  if (!all.ok()) return all.status();
  int64_t whole = 0;
  std::memcpy(&whole, all->data(), sizeof(whole));
  text->resize(static_cast<size_t>(whole));
  for (size_t begin = 0; begin < text->size(); begin += kIndexMessageBytes) {
    TransportOp op;
    op.data = reinterpret_cast<std::byte*>(text->data()) + begin;
    op.bytes = std::min(kIndexMessageBytes, text->size() - begin);
    std::vector<TransportOp> ops;
    if (rank() != 0) {
      op.kind = TransportOp::Kind::kReceive;
      op.peer = 0;
      ops.push_back(op);
    }
    for (int dst = 1; rank() == 0 && dst < size(); ++dst) {
      op.peer = dst;
      ops.push_back(op);
    }
    if (absl::Status status = RunMessages(transport, ops, call); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// The catalog of a source with a uri: the index, read once for all where ranks exchange, or what
// lies in the directory.
absl::StatusOr<Catalog> SessionImpl::FindCatalog(const StreamOptions& options,
                                                 const SourceAddress& address,
                                                 Transport* transport) {
  if (options.source.format != ItemFormat::kIndex) {
    const bool files = address.scheme != "http" && address.scheme != "https";
    absl::StatusOr<Catalog> listed =
        files ? ListObjects(address, options.source)
              : absl::StatusOr<Catalog>(absl::InvalidArgumentError(
                    "an HTTP source needs an index.json: it cannot be listed"));
    absl::Status status = AgreeOn(listed.status());
    if (!status.ok()) return status;
    return listed;
  }
  std::string text;
  absl::Status fetched;
  if (rank() == 0 || transport == nullptr) {
    absl::StatusOr<std::string> index = FetchIndex(address, options.source);
    absl::Duration pause = options.retry.backoff;
    for (int i = 1; i < options.retry.attempts_max && absl::IsUnavailable(index.status()); ++i) {
      absl::SleepFor(std::exchange(pause, 2 * pause));
      index = FetchIndex(address, options.source);
    }
    fetched = index.status();
    if (index.ok()) text = *std::move(index);
  }
  if (absl::Status status = AgreeOn(fetched); !status.ok()) return status;
  if (transport != nullptr) {
    if (absl::Status status = ShareText(transport, &text); !status.ok()) return status;
  }
  absl::StatusOr<ShardIndex> index = ParseShardIndex(text);
  if (absl::Status status = AgreeOn(index.status()); !status.ok()) return status;
  return std::move(index->catalog);
}

absl::Status SessionImpl::AgreeOn(const absl::Status& own, const char* call) {
  Proposal proposal;
  proposal.call = call;
  proposal.status = own;
  return Agree(std::move(proposal));
}

absl::Status SessionImpl::PlanStream(const StreamOptions& options, StreamParts* parts) {
  const int64_t items = parts->items->items();
  StreamRecord own;
  own.places = {options.selection.first, options.selection.step,
                options.selection.end < 0 ? items : std::min(options.selection.end, items)};
  absl::Status status;
  if (items > StreamPlan::kItemsMax) {
    status = absl::InvalidArgumentError(absl::StrCat(items, " items are too many"));
  }
  if (options.cursor.size() > own.cursor.size()) {
    status = absl::InvalidArgumentError("the cursor is too long to be one");
  } else {
    own.cursor_bytes = static_cast<int64_t>(options.cursor.size());
    std::copy(options.cursor.begin(), options.cursor.end(), own.cursor.begin());
  }
  if (absl::Status agreed = AgreeOn(status); !agreed.ok()) return agreed;
  absl::StatusOr<std::vector<std::byte>> all =
      Gather(absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&own), sizeof(own)));
  if (!all.ok()) return all.status();
  StreamPlanOptions plan;
  plan.items = items;
  plan.epochs = options.epochs;
  plan.shuffle = options.shuffle;
  plan.seed = options.seed;
  plan.exchange = options.exchange;
  // All ranks come to the same result here.
  std::vector<Cursor> cursors;
  for (int other = 0; other < size(); ++other) {
    StreamRecord record;
    std::memcpy(&record, all->data() + static_cast<size_t>(other) * sizeof(record), sizeof(record));
    plan.places.push_back(record.places);
    if (record.cursor_bytes == 0) continue;
    absl::StatusOr<Cursor> cursor = Cursor::Parse(
        absl::string_view(record.cursor.data(), static_cast<size_t>(record.cursor_bytes)));
    if (!cursor.ok()) return cursor.status();
    cursors.push_back(*std::move(cursor));
  }
  Cursor start;
  start.items = items;
  start.shuffle = options.shuffle;
  start.seed = options.seed;
  start.places = own.places;
  if (!cursors.empty()) {
    if (cursors.size() != static_cast<size_t>(size())) {
      return absl::InvalidArgumentError("some ranks pass a cursor and some do not");
    }
    const absl::StatusOr<Cursor> merged = MergeCursors(cursors);
    if (!merged.ok()) return merged.status();
    if (merged->items != items || merged->shuffle != options.shuffle ||
        merged->seed != options.seed) {
      return absl::InvalidArgumentError(
          absl::StrCat("the cursor is of another stream: '", merged->ToText(), "'; here are ",
                       items, " items, ", options.shuffle ? "shuffled by seed " : "not shuffled",
                       options.shuffle ? absl::StrCat(options.seed) : ""));
    }
    start.point = merged->point;
  }
  plan.resume = start.point;
  parts->start = start;
  parts->plan = std::make_unique<StreamPlan>(plan, rank());
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Stream>> SessionImpl::OpenStream(const StreamOptions& options) {
  if (absl::Status status = FinishCancels(); !status.ok()) return status;
  if (absl::Status status = CheckIdle("OpenStream"); !status.ok()) return status;
  StreamParts parts;
  parts.begin_ns = MonotonicNs();
  parts.rank = rank();
  parts.options = options;
  const absl::StatusOr<SourceAddress> address = ParseSourceAddress(options.source.uri);
  Proposal proposal;
  proposal.call = "OpenStream";
  proposal.status = CheckStreamOptions(options);
  proposal.status.Update(address.status());
  proposal.values = {{"the number of streams opened before", streams_opened_},
                     {"the stream's options", HashOf(options), false}};
  if (absl::Status status = Agree(std::move(proposal)); !status.ok()) return status;
  parts.number = static_cast<int>(streams_opened_++);
  if (size() > 1 && options.exchange) {
    absl::StatusOr<std::unique_ptr<Transport>> transport = fabric_->OpenTransport();
    if (!transport.ok()) return Poison(transport.status());
    if (absl::Status status = (*transport)->Reserve(size()); !status.ok()) return Poison(status);
    parts.transport = *std::move(transport);
    parts.sharers_max = size();
  }
  absl::StatusOr<OpenedSource> opened = absl::InternalError("no source");
  if (address->scheme.empty()) {
    opened = OpenGenerator(options);
  } else {
    absl::StatusOr<Catalog> catalog = FindCatalog(options, *address, parts.transport.get());
    if (!catalog.ok()) return catalog.status();
    opened = OpenCatalog(*address, options, *std::move(catalog), StreamReadsMax(options));
  }
  absl::Status resolved = opened.status();
  if (opened.ok()) {
    absl::StatusOr<StreamLimits> limits = ResolveStreamLimits(
        options, *opened->items, opened->source->alignment(), opened->whole_items);
    resolved = limits.status();
    if (limits.ok()) parts.limits = *limits;
  }
  int64_t piece_bytes = parts.limits.piece_bytes;
  if (absl::Status status = AgreeOn(resolved); !status.ok()) return status;
  parts.items = std::move(opened->items);
  parts.source = std::move(opened->source);
  parts.end_update = std::move(opened->end_update);
  if (absl::Status status = PlanStream(options, &parts); !status.ok()) return status;
  parts.device = MakeHostDevice();
  if (trace_ != nullptr) {
    parts.stage_trace =
        std::make_unique<StageTrace>(trace_.get(), options_.trace_events, parts.number,
                                     parts.limits.slots, options.trace_epochs);
    parts.consumer_trace =
        std::make_unique<ConsumerTrace>(trace_.get(), options_.trace_events, parts.number,
                                        options.device_buffers, options.trace_epochs);
  }
  absl::StatusOr<std::unique_ptr<StreamImpl>> stream = StreamImpl::Make(std::move(parts), this);
  Proposal last;
  last.call = "OpenStream";
  last.status = stream.status();
  last.values = {
      {"the bytes of a piece, which follow from budget_bytes: give piece_bytes", piece_bytes}};
  if (absl::Status status = Agree(std::move(last)); !status.ok()) return status;
  streams_.push_back(stream->get());
  streams_known_ = (*stream)->number() + 1;
  for (const Watch::StreamAlarm& alarm : std::exchange(early_alarms_, {})) {
    if (alarm.stream == (*stream)->number()) (*stream)->Fail(alarm.status);
  }
  idle_wait_.Watch((*stream)->ready_fd());
  return *std::move(stream);
}

// ---- What a stream asks for.

absl::Status SessionImpl::Pump() {
  if (!poison_.ok()) return poison_;
  const absl::StatusOr<bool> moved = Advance();
  if (!moved.ok()) return moved.status();
  if (*moved) {
    idle_wait_.Reset();
  } else {
    idle_wait_.Pause(awaited(), next_due_ns() - MonotonicNs());
  }
  return absl::OkStatus();
}

void SessionImpl::RaiseAlarm(int number, const absl::Status& status) {
  watch_.RaiseStreamAlarm(number, status);
}

void SessionImpl::Remove(StreamImpl* stream, const absl::Status& unfinished) {
  std::unique_lock<FairLock> lock;
  if (lock_ != nullptr) lock = std::unique_lock<FairLock>(*lock_);
  streams_.erase(std::remove(streams_.begin(), streams_.end(), stream), streams_.end());
  idle_wait_.Unwatch(stream->ready_fd());
  if (!stream->ended() && stream->is_exchanged()) RaiseAlarm(stream->number(), unfinished);
}

// ---- How streams are driven.

bool SessionImpl::AdvanceStreams() {
  for (const Watch::StreamAlarm& alarm : watch_.TakeStreamAlarms()) {
    if (alarm.stream >= streams_known_) early_alarms_.push_back(alarm);
    for (StreamImpl* const stream : streams_) {
      if (stream->number() == alarm.stream) stream->Fail(alarm.status);
    }
  }
  bool moved = false;
  const int64_t now_ns = MonotonicNs();
  for (StreamImpl* const stream : streams_) moved |= stream->Advance(now_ns);
  return moved;
}

void SessionImpl::PauseFor(Backoff* backoff) {
  if (!AdvanceStreams()) backoff->Pause();
}

Awaited SessionImpl::awaited() const {
  if (!runs_.empty() || !collectives_.empty()) return Awaited::kRanks;
  Awaited awaited = Awaited::kNothing;
  for (const StreamImpl* const stream : streams_) {
    if (stream->ended()) continue;
    if (stream->has_messages()) return Awaited::kRanks;
    awaited = Awaited::kFiles;
  }
  return awaited;
}

int64_t SessionImpl::next_due_ns() const {
  int64_t due_ns = INT64_MAX;
  for (const StreamImpl* const stream : streams_) {
    if (!stream->ended()) due_ns = std::min(due_ns, stream->next_due_ns());
  }
  return due_ns;
}

}  // namespace sluice
