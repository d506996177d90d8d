// Opens streams between ranks, and drives them.
//
// Ranks wait for each other three times. First they compare what they ask for; with it comes where
// each rank begins. Then rank 0 fetches the text of the catalog for all of them. A store may take
// longer than a rank may be silent, so a thread does it, and all ranks hear each other. Then each
// does its part alone, and they tell each other whether it went well.
#include "session/stream/streams.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "session/base/open_device.h"
#include "session/peers/share_text.h"
#include "session/peers/together.h"
#include "session/stream/generate_gate.h"
#include "session/stream/stream_catalog.h"
#include "session/stream/stream_impl.h"
#include "session/stream/stream_limits.h"
#include "session/stream/stream_options.h"
#include "session/stream/stream_source.h"
#include "session/stream/stream_start.h"
#include "sluice/testing.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

constexpr char kCall[] = "OpenStream";

// Spans of so many epochs are recorded where nothing else is said: the next ones look alike.
constexpr int64_t kTraceEpochs = 5;

// Reads that a source may have at once: slots that are not known before its items are.
int StreamReadsMax(const StreamOptions& options) {
  constexpr int64_t kReadsMax = 4096;
  const int64_t slots = std::min(options.reads.slots.value_or(kReadsMax), kReadsMax);
  return static_cast<int>(std::min(slots + slots / 8 + 2, kReadsMax));
}

absl::StatusOr<OpenedSource> OpenSource(const StreamOptions& options, const InjectedDelay& delay,
                                        const SourceAddress& address,
                                        absl::string_view catalog_text) {
  if (address.scheme.empty()) return OpenGenerator(options, delay);
  SLUICE_ASSIGN_OR_RETURN(Catalog catalog, ReadCatalogText(catalog_text, options.source));
  return OpenCatalog(address, options, delay, std::move(catalog), StreamReadsMax(options));
}

}  // namespace

// Gathers the requests of all ranks and the catalog. If ranks exchange, rank 0 reads the catalog
// for all, so that nothing is read twice.
absl::StatusOr<Streams::Meeting> Streams::Meet(const StreamOptions& options,
                                               const absl::StatusOr<SourceAddress>& address) {
  const bool exchanges = peers().size() > 1 && options.reads.exchange;
  SLUICE_ASSIGN_OR_RETURN(std::vector<StreamRequest> requests, GatherRequests(options, address));
  Meeting meeting;
  meeting.requests = std::move(requests);
  if (!address->scheme.empty()) {
    OwnWorkFunction fetch;
    if (peers().rank() == 0 || !exchanges) {
      fetch = [&](const WorkStop& stop) -> absl::Status {
        SLUICE_ASSIGN_OR_RETURN(std::string text, FetchCatalogText(*address, options.source,
                                                                   options.reads.retry, &stop));
        meeting.catalog_text = std::move(text);
        return absl::OkStatus();
      };
    }
    SLUICE_RETURN_IF_ERROR(
        WorkTogether(parts_.peers, kCall, parts_.options->timeout, std::move(fetch)));
  }
  if (!exchanges) return meeting;
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, peers().OpenTransport());
  meeting.transport = std::move(transport);
  SLUICE_RETURN_IF_ERROR(
      ShareText(parts_.peers, meeting.transport.get(), &meeting.catalog_text, kCall));
  return meeting;
}

absl::StatusOr<std::vector<StreamRequest>> Streams::GatherRequests(
    const StreamOptions& options, const absl::StatusOr<SourceAddress>& address) {
  Proposal proposal;
  proposal.call = kCall;
  proposal.status = CheckStreamOptions(options);
  proposal.status.Update(CheckStreamDevice(options, parts_.options->accelerator.get()));
  proposal.status.Update(address.status());
  proposal.values = {{"the number of streams opened before", opened_},
                     {"the stream's options", HashOfStream(options), false}};
  proposal.payload = StreamRequestText(options);
  if (absl::Status status = peers().Agree(std::move(proposal)); !status.ok()) return status;
  ++opened_;
  std::vector<StreamRequest> requests;
  for (int other = 0; other < peers().size(); ++other) {
    absl::StatusOr<StreamRequest> request = ParseStreamRequest(peers().payload(other), other);
    // The others see what this rank sees, or that it has gone.
    if (!request.ok()) return peers().Poison(request.status());
    requests.push_back(*std::move(request));
  }
  // Mostly all ranks pass the same cursor, the merged one.
  const bool is_one = std::all_of(requests.begin(), requests.end(), [&](const auto& request) {
    return request.cursor_hash == requests[0].cursor_hash;
  });
  if (is_one) {
    for (StreamRequest& request : requests) request.cursor = options.order.cursor;
    return requests;
  }
  auto cursors = peers().Exchange(absl::OkStatus(), options.order.cursor, kCall);
  if (!cursors.ok()) return cursors.status();
  for (size_t r = 0; r < requests.size(); ++r) requests[r].cursor = std::move((*cursors)[r]);
  return requests;
}

// Tracks for this rank's slots, and for its consumer.
void Streams::AddTraces(StreamParts* stream) const {
  JoinedTraceLog* const trace = parts_.trace;
  if (trace == nullptr) return;
  const int64_t capacity = parts_.options->trace_events;
  const int64_t epochs = stream->options.trace_epochs.value_or(kTraceEpochs);
  // Viewers should not take an emulated device for a real one.
  const bool emulated = stream->options.buffers.device == kEmulatedDevice;
  stream->stage_trace =
      std::make_unique<StageTrace>(trace, capacity, stream->number, stream->limits.slots, epochs);
  stream->consumer_trace = std::make_unique<ConsumerTrace>(trace, capacity, stream->number,
                                                           stream->options.buffers.count, epochs,
                                                           emulated ? "emulated device" : "device");
}

absl::StatusOr<std::unique_ptr<StreamImpl>> Streams::Make(StreamOptions options,
                                                          const InjectedDelay& delay,
                                                          const SourceAddress& address,
                                                          int64_t begin_ns, Meeting meeting) {
  std::string().swap(options.source.index);  // may be long, and has been read
  // Batches that are to see this or that update come one after the other.
  if (address.scheme.empty() && options.source.generate_order != GenerateOrder::kFree) {
    options.order.in_order = true;
  }
  SLUICE_ASSIGN_OR_RETURN(OpenedSource opened,
                          OpenSource(options, delay, address, meeting.catalog_text));
  // Without an exchange each rank may have other items, on a disk of its own.
  const uint64_t data = options.reads.exchange ? opened.items->fingerprint() : 0;
  SLUICE_ASSIGN_OR_RETURN(StreamStart start, PlanStream(options, opened.items->items(), data,
                                                        peers().rank(), meeting.requests));
  const StreamShare share = {start.plan->CountToCome(),
                             meeting.transport == nullptr ? 1 : peers().size()};
  SLUICE_ASSIGN_OR_RETURN(const StreamLimits limits,
                          ResolveStreamLimits(options, *opened.items, opened.source->alignment(),
                                              opened.whole_items, share));
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, options.buffers.device == DeviceKind::kCpu
                                                              ? MakeHostDevice()
                                                              : OpenDevice(*parts_.options));
  StreamParts parts;
  parts.number = static_cast<int>(opened_ - 1);
  parts.rank = peers().rank();
  parts.options = options;
  parts.limits = limits;
  parts.items = std::move(opened.items);
  parts.source = std::move(opened.source);
  parts.generator = opened.generator;
  parts.plan = std::move(start.plan);
  parts.order = std::move(start.order);
  parts.device = std::move(device);
  if (parts_.options->accelerator != nullptr)
    parts.device_ordinal = parts_.options->accelerator->ordinal();
  parts.sharers_max = share.sharers_max;
  parts.transport = std::move(meeting.transport);
  parts.begin_ns = begin_ns;
  AddTraces(&parts);
  return StreamImpl::Make(std::move(parts), this);
}

absl::StatusOr<std::unique_ptr<Stream>> Streams::Open(const StreamOptions& options,
                                                      const InjectedDelay& delay) {
  const int64_t begin_ns = MonotonicNs();
  const absl::StatusOr<SourceAddress> address = ParseSourceAddress(options.source.uri);
  SLUICE_ASSIGN_OR_RETURN(Meeting meeting, Meet(options, address));
  absl::StatusOr<std::unique_ptr<StreamImpl>> stream =
      Make(options, delay, *address, begin_ns, std::move(meeting));
  Proposal last;
  last.call = kCall;
  last.status = stream.status();
  last.values = {{"the bytes of a piece, which follow from budget_bytes: give piece_bytes",
                  stream.ok() ? (*stream)->piece_bytes() : 0}};
  if (absl::Status status = peers().Agree(std::move(last)); !status.ok()) return status;
  (*stream)->Opened();
  streams_.push_back(stream->get());
  known_ = (*stream)->number() + 1;
  for (const Watch::StreamAlarm& alarm : std::exchange(early_alarms_, {})) {
    if (alarm.stream == (*stream)->number()) (*stream)->Fail(alarm.status);
  }
  parts_.idle_wait->Watch((*stream)->ready_fd());
  return *std::move(stream);
}

// ---- What a stream asks for.

void Streams::RaiseAlarm(int number, const absl::Status& status) {
  peers().watch()->RaiseStreamAlarm(number, status);
}

void Streams::Remove(StreamImpl* stream, const absl::Status& unfinished) {
  const std::unique_lock<FairLock> lock = Hold(parts_.lock);
  streams_.erase(std::remove(streams_.begin(), streams_.end(), stream), streams_.end());
  parts_.idle_wait->Unwatch(stream->ready_fd());
  if (!stream->ended() && stream->is_exchanged()) RaiseAlarm(stream->number(), unfinished);
}

// ---- How streams are driven.

bool Streams::Advance() {
  for (const Watch::StreamAlarm& alarm : peers().watch()->TakeStreamAlarms()) {
    if (alarm.stream >= known_) early_alarms_.push_back(alarm);
    for (StreamImpl* const stream : streams_) {
      if (stream->number() == alarm.stream) stream->Fail(alarm.status);
    }
  }
  bool moved = false;
  const int64_t now_ns = MonotonicNs();
  for (StreamImpl* const stream : streams_) moved |= stream->Advance(now_ns);
  return moved;
}

void Streams::Fail(const absl::Status& status) {
  for (StreamImpl* const stream : streams_) stream->Fail(status);
}

void Streams::Settle() {
  for (StreamImpl* const stream : streams_) stream->Settle();
}

Awaited Streams::awaited() const {
  Awaited awaited = Awaited::kNothing;
  for (const StreamImpl* const stream : streams_) {
    if (stream->ended()) continue;
    if (stream->needs_polls()) return Awaited::kRanks;
    awaited = Awaited::kFiles;
  }
  return awaited;
}

int64_t Streams::next_due_ns() const {
  int64_t due_ns = INT64_MAX;
  for (const StreamImpl* const stream : streams_) {
    if (!stream->ended()) due_ns = std::min(due_ns, stream->next_due_ns());
  }
  return due_ns;
}

}  // namespace sluice
