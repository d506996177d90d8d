// Consuming a stream, and its statistics.
#include "stream/sluice_mode.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice::bench {
namespace {

absl::Status ConsumeAll(Stream* stream, Consumer* consumer) {
  bool is_first = true;
  while (!consumer->done()) {
    if (!std::exchange(is_first, false)) consumer->Asked();
    const bool waited = !stream->Ready();
    const absl::StatusOr<Lease> lease = stream->Next();
    if (!lease.ok()) return lease.status();
    if (lease->end()) {
      return absl::DataLossError(
          absl::StrCat("the stream ended ", consumer->left(), " items before its end"));
    }
    consumer->Arrived(waited);
    for (int64_t i = 0; i < lease->items() && !consumer->done(); ++i) {
      consumer->Consume(lease->item(i), lease->epoch(i), lease->view(i));
    }
    stream->EndUpdate();
  }
  return absl::OkStatus();
}

// What comes after the last item must be the end.
absl::Status ExpectEnd(Stream* stream, const Consumer& consumer) {
  if (consumer.wanted() < stream->items()) return absl::OkStatus();  // stopped before
  const absl::StatusOr<Lease> lease = stream->Next();
  if (!lease.ok()) return lease.status();
  if (lease->end()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the stream goes on after all its ", stream->items(), " items"));
}

void AddStats(const StreamStats& stats, RankOutcome* outcome) {
  outcome->requests = stats.requests;
  outcome->bytes_read = stats.bytes_read;
  outcome->opens = stats.opens;
  outcome->connections = stats.connections;
  outcome->hedges = stats.hedges;
  outcome->hedges_won = stats.hedges_won;
  outcome->retries = stats.retries;
  outcome->peak_slots = stats.slots_peak;
  outcome->peak_bytes = stats.budget_bytes_peak;
  outcome->limit_slots = stats.slots_max;
  outcome->limit_bytes = stats.budget_bytes;
  outcome->device_bytes = stats.device_bytes;
  outcome->stage_s.read = absl::ToDoubleSeconds(stats.reading);
  outcome->stage_s.exchange = absl::ToDoubleSeconds(stats.exchanging);
  outcome->stage_s.copy = absl::ToDoubleSeconds(stats.copying);
}

}  // namespace

absl::Status RunSluice(Session* session, const StreamOptions& options, Consumer* consumer,
                       absl::FunctionRef<void()> meet, RankOutcome* outcome) {
  consumer->Asked();
  absl::StatusOr<std::unique_ptr<Stream>> stream = session->OpenStream(options);
  if (!stream.ok()) return stream.status();  // on all ranks
  absl::Status status = ConsumeAll(stream->get(), consumer);
  if (status.ok()) status = ExpectEnd(stream->get(), *consumer);
  meet();
  AddStats((*stream)->stats(), outcome);
  outcome->cursor = (*stream)->Cursor();
  return status;
}

}  // namespace sluice::bench
