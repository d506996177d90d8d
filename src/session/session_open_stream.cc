// How streams are opened between ranks.
//
// Ranks wait for each other three times. First they compare what they ask for; with it comes where
// each rank begins. Then rank 0 fetches the text of the catalog for all of them. A store may take
// longer than a rank may be silent, so a thread does it, and all ranks hear each other. Then each
// does its part alone, and they tell each other whether it went well.
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
  proposal.values = {{"the number of streams opened before", streams_opened_},
                     {"the stream's options", HashOfStream(options), false}};
  proposal.payload = StreamRequestText(options);
  if (absl::Status status = Agree(std::move(proposal)); !status.ok()) return status;
  ++streams_opened_;
  for (int other = 0; other < size(); ++other) {
    absl::StatusOr<StreamRequest> request = ParseStreamRequest(agreement_.payload(other), other);
    // The others see what this rank sees, or that it has gone.
    if (!request.ok()) return Poison(request.status());
    meeting.requests.push_back(*std::move(request));
  }
  if (absl::Status status = GatherCursors(options.cursor, &meeting.requests); !status.ok()) {
    return status;
  }
  if (!address->scheme.empty()) {
    OwnWorkFunction fetch;
    if (rank() == 0 || !exchanges) {
      fetch = [&](const WorkStop& stop) {
        absl::StatusOr<std::string> text =
            FetchCatalogText(*address, options.source, options.retry, &stop);
        if (text.ok()) meeting.catalog_text = *std::move(text);
        return text.status();
      };
    }
    absl::Status status = WorkTogether(kCall, options_.timeout, std::move(fetch));
    if (!status.ok()) return status;
  }
  if (!exchanges) return meeting;
  absl::StatusOr<std::unique_ptr<Transport>> transport = fabric_->OpenTransport();
  if (!transport.ok()) return Poison(transport.status());
  if (absl::Status status = (*transport)->Reserve(size()); !status.ok()) return Poison(status);
  meeting.transport = *std::move(transport);
  absl::Status status = PassNewText(meeting.transport.get(), &meeting.catalog_text, kCall);
  if (!status.ok()) return status;
  return meeting;
}

// Ranks that pass the same cursor, the merged one, have it already. Others tell what did not fit
// their requests, piece by piece.
absl::Status SessionImpl::GatherCursors(const std::string& own,
                                        std::vector<StreamRequest>* requests) {
  bool equal = true;
  size_t longest = 0;
  for (const StreamRequest& request : *requests) {
    equal = equal && request.cursor_bytes == (*requests)[0].cursor_bytes &&
            request.cursor_hash == (*requests)[0].cursor_hash;
    longest = std::max(longest, static_cast<size_t>(request.cursor_bytes));
  }
  if (equal) {
    for (StreamRequest& request : *requests) request.cursor = own;
    return absl::OkStatus();
  }
  for (size_t begin = kCursorBytes; begin < longest; begin += kCursorBytes) {
    Proposal more;
    more.call = kCall;
    if (begin < own.size()) more.payload = own.substr(begin, kCursorBytes);
    if (absl::Status status = Agree(std::move(more)); !status.ok()) return status;
    for (int other = 0; other < size(); ++other) {
      (*requests)[static_cast<size_t>(other)].cursor += agreement_.payload(other);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StreamImpl>> SessionImpl::MakeStream(const StreamOptions& options,
                                                                    const SourceAddress& address,
                                                                    int64_t begin_ns,
                                                                    StreamMeeting meeting) {
  absl::StatusOr<OpenedSource> opened = OpenSource(options, address, meeting.catalog_text);
  if (!opened.ok()) return opened.status();
  // Without an exchange each rank may have other items, on a disk of its own.
  const uint64_t data = options.exchange ? opened->items->fingerprint() : 0;
  absl::StatusOr<StreamStart> start =
      PlanStream(options, opened->items->items(), data, rank(), meeting.requests);
  if (!start.ok()) return start.status();
  const StreamShare share = {start->plan->CountToCome(), meeting.transport == nullptr ? 1 : size()};
  const absl::StatusOr<StreamLimits> limits = ResolveStreamLimits(
      options, *opened->items, opened->source->alignment(), opened->whole_items, share);
  if (!limits.ok()) return limits.status();
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
  parts.order = std::move(start->order);
  parts.device = *std::move(device);
  if (options_.accelerator != nullptr) parts.device_ordinal = options_.accelerator->ordinal();
  parts.sharers_max = share.sharers_max;
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
  if (absl::Status status = FinishCollectives(); !status.ok()) return status;
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
