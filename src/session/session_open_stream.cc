// How streams are opened between ranks.
//
// Ranks wait for each other twice. First they compare what they ask for; with it comes how long the
// text of the catalog is, which rank 0 has fetched for all of them, and where each rank begins.
// Then each does its part alone, and they tell each other whether it went well.
#include <algorithm>
#include <utility>

#include "session/clock.h"
#include "session/open_device.h"
#include "session/session_impl.h"
#include "session/stream_catalog.h"
#include "session/stream_impl.h"
#include "session/stream_limits.h"
#include "session/stream_options.h"
#include "session/stream_source.h"
#include "session/stream_start.h"

namespace sluice {
namespace {

constexpr char kCall[] = "OpenStream";

// Reads that a source may have at once: slots that are not known before its items are.
int StreamReadsMax(const StreamOptions& options) {
  constexpr int64_t kReadsMax = 4096;
  return static_cast<int>(
      options.slots > 0 ? std::min(options.slots + options.slots / 8 + 2, kReadsMax) : kReadsMax);
}

absl::StatusOr<OpenedSource> OpenSource(const StreamOptions& options, const SourceAddress& address,
                                        absl::string_view catalog_text) {
  if (address.scheme.empty()) return OpenGenerator(options);
  absl::StatusOr<Catalog> catalog = ReadCatalogText(catalog_text, options.source);
  if (!catalog.ok()) return catalog.status();
  return OpenCatalog(address, options, *std::move(catalog), StreamReadsMax(options));
}

}  // namespace

// Where ranks exchange, rank 0 looks for the catalog for all, so that nothing is read twice.
absl::StatusOr<SessionImpl::StreamMeeting> SessionImpl::MeetForStream(
    const StreamOptions& options, const absl::StatusOr<SourceAddress>& address) {
  const bool exchanges = size() > 1 && options.exchange;
  StreamMeeting meeting;
  Proposal proposal;
  proposal.call = kCall;
  proposal.status = CheckStreamOptions(options);
  proposal.status.Update(CheckStreamDevice(options, options_.accelerator.get()));
  proposal.status.Update(address.status());
  const bool fetches = rank() == 0 || !exchanges;
  if (proposal.status.ok() && fetches && !address->scheme.empty()) {
    absl::StatusOr<std::string> text = FetchCatalogText(*address, options.source, options.retry);
    proposal.status = text.status();
    if (text.ok()) meeting.catalog_text = *std::move(text);
  }
  proposal.values = {{"the number of streams opened before", streams_opened_},
                     {"the stream's options", HashOfStream(options), false}};
  proposal.payload = StreamRequestOf(options, static_cast<int64_t>(meeting.catalog_text.size()));
  if (absl::Status status = Agree(std::move(proposal)); !status.ok()) return status;
  ++streams_opened_;
  for (int other = 0; other < size(); ++other) {
    meeting.requests.push_back(agreement_.payload(other));
  }
  if (!exchanges) return meeting;
  absl::StatusOr<std::unique_ptr<Transport>> transport = fabric_->OpenTransport();
  if (!transport.ok()) return Poison(transport.status());
  if (absl::Status status = (*transport)->Reserve(size()); !status.ok()) return Poison(status);
  meeting.transport = *std::move(transport);
  absl::Status status = PassText(meeting.transport.get(), TextBytesOf(meeting.requests[0]),
                                 &meeting.catalog_text, kCall);
  if (!status.ok()) return status;
  return meeting;
}

absl::StatusOr<std::unique_ptr<StreamImpl>> SessionImpl::MakeStream(const StreamOptions& options,
                                                                    const SourceAddress& address,
                                                                    int64_t begin_ns,
                                                                    StreamMeeting meeting) {
  absl::StatusOr<OpenedSource> opened = OpenSource(options, address, meeting.catalog_text);
  if (!opened.ok()) return opened.status();
  const absl::StatusOr<StreamLimits> limits = ResolveStreamLimits(
      options, *opened->items, opened->source->alignment(), opened->whole_items);
  if (!limits.ok()) return limits.status();
  absl::StatusOr<StreamStart> start =
      PlanStream(options, opened->items->items(), rank(), meeting.requests);
  if (!start.ok()) return start.status();
  absl::StatusOr<std::unique_ptr<Device>> device =
      options.device == DeviceKind::kCpu ? MakeHostDevice() : OpenDevice(options_);
  if (!device.ok()) return device.status();
  StreamParts parts;
  parts.number = static_cast<int>(streams_opened_ - 1);
  parts.rank = rank();
  parts.options = options;
  parts.limits = *limits;
  parts.items = std::move(opened->items);
  parts.source = std::move(opened->source);
  parts.end_update = std::move(opened->end_update);
  parts.plan = std::move(start->plan);
  parts.start = std::move(start->cursor);
  parts.device = *std::move(device);
  if (options_.accelerator != nullptr) parts.device_ordinal = options_.accelerator->ordinal();
  parts.sharers_max = meeting.transport == nullptr ? 1 : size();
  parts.transport = std::move(meeting.transport);
  parts.begin_ns = begin_ns;
  if (trace_ != nullptr) {
    parts.stage_trace =
        std::make_unique<StageTrace>(trace_.get(), options_.trace_events, parts.number,
                                     parts.limits.slots, options.trace_epochs);
    parts.consumer_trace =
        std::make_unique<ConsumerTrace>(trace_.get(), options_.trace_events, parts.number,
                                        options.device_buffers, options.trace_epochs);
  }
  return StreamImpl::Make(std::move(parts), this);
}

absl::StatusOr<std::unique_ptr<Stream>> SessionImpl::OpenStream(const StreamOptions& options) {
  const int64_t begin_ns = MonotonicNs();
  if (absl::Status status = FinishCancels(); !status.ok()) return status;
  if (absl::Status status = CheckIdle(kCall); !status.ok()) return status;
  const absl::StatusOr<SourceAddress> address = ParseSourceAddress(options.source.uri);
  absl::StatusOr<StreamMeeting> meeting = MeetForStream(options, address);
  if (!meeting.ok()) return meeting.status();
  absl::StatusOr<std::unique_ptr<StreamImpl>> stream =
      MakeStream(options, *address, begin_ns, *std::move(meeting));
  Proposal last;
  last.call = kCall;
  last.status = stream.status();
  last.values = {{"the bytes of a piece, which follow from budget_bytes: give piece_bytes",
                  stream.ok() ? (*stream)->piece_bytes() : 0}};
  if (absl::Status status = Agree(std::move(last)); !status.ok()) return status;
  (*stream)->Opened();
  streams_.push_back(stream->get());
  streams_known_ = (*stream)->number() + 1;
  for (const Watch::StreamAlarm& alarm : std::exchange(early_alarms_, {})) {
    if (alarm.stream == (*stream)->number()) (*stream)->Fail(alarm.status);
  }
  idle_wait_.Watch((*stream)->ready_fd());
  return *std::move(stream);
}

}  // namespace sluice
