// Consuming a stream, and its statistics.
#include "stream/sluice_mode.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/copy_flat.h"
#include "workload/local_part.h"

namespace sluice::bench {
namespace {

// Brings items that are on a device to the host, where they are checked.
class ItemFetch {
 public:
  absl::StatusOr<TensorView> OnHost(Accelerator* accelerator, const TensorView& view) {
    if (view.device == DeviceKind::kCpu) return view;
    if (device_ == nullptr) {
      absl::StatusOr<std::unique_ptr<Device>> opened = accelerator->OpenDevice();
      if (!opened.ok()) return opened.status();
      device_ = *std::move(opened);
    }
    memory_.resize(BytesOf(view).size());
    absl::Status status = CopyFlat(device_.get(), static_cast<const std::byte*>(view.data),
                                   view.device, memory_.data(), DeviceKind::kCpu, memory_.size());
    if (!status.ok()) return status;
    return DenseView(memory_.data(), view.shape, view.dtype);
  }

 private:
  std::unique_ptr<Device> device_;
  std::vector<std::byte> memory_;
};

// One consumer's way through a stream. Its clock runs from the opening on.
class Trainer {
 public:
  Trainer(Accelerator* accelerator, Stream* stream, Consumer* consumer)
      : accelerator_(accelerator), stream_(stream), consumer_(consumer) {}

  absl::Status TakeAll() {
    while (!consumer_->done()) {
      const absl::StatusOr<Lease> lease = Take();
      if (!lease.ok()) return lease.status();
      if (absl::Status status = Consume(*lease); !status.ok()) return status;
      stream_->EndUpdate();
    }
    return absl::OkStatus();
  }

  // The order of GenerateOrder::kOneAhead.
  absl::Status TakeAllOneAhead() {
    if (consumer_->done()) return absl::OkStatus();
    absl::StatusOr<Lease> lease = Take();
    while (lease.ok()) {
      if (absl::Status status = Consume(*lease); !status.ok()) return status;
      if (consumer_->done()) return absl::OkStatus();
      absl::StatusOr<Lease> next = Take();
      stream_->EndUpdate();
      lease = std::move(next);
    }
    return lease.status();
  }

 private:
  absl::StatusOr<Lease> Take() {
    if (!std::exchange(is_first_, false)) consumer_->Asked();
    const bool waited = !stream_->Ready();
    absl::StatusOr<Lease> lease = stream_->Next();
    if (!lease.ok()) return lease.status();
    if (lease->end()) {
      return absl::DataLossError(
          absl::StrCat("the stream ended ", consumer_->left(), " items before its end"));
    }
    consumer_->Arrived(waited);
    return lease;
  }

  absl::Status Consume(const Lease& lease) {
    for (int64_t i = 0; i < lease.items() && !consumer_->done(); ++i) {
      const absl::StatusOr<TensorView> view = fetch_.OnHost(accelerator_, lease.view(i));
      if (!view.ok()) return view.status();
      consumer_->Consume(lease.item(i), lease.epoch(i), *view);
    }
    return absl::OkStatus();
  }

  Accelerator* const accelerator_;
  Stream* const stream_;
  Consumer* const consumer_;
  ItemFetch fetch_;
  bool is_first_ = true;
};

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
  outcome->read_runs = stats.read_runs;
  outcome->trace_left_out = stats.trace_left_out;
  outcome->busy_s = absl::ToDoubleSeconds(stats.busy);
  outcome->next_wait_s = absl::ToDoubleSeconds(stats.waiting);
  outcome->opens = stats.opens;
  outcome->connections = stats.connections;
  outcome->hedges = stats.hedges;
  outcome->hedges_won = stats.hedges_won;
  outcome->retries = stats.retries;
  outcome->staleness_max = stats.staleness_max;
  outcome->bytes_copied = stats.bytes_copied;
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

absl::Status RunSluice(Session* session, const StreamOptions& options, const InjectedDelay& delay,
                       Consumer* consumer, absl::FunctionRef<void()> meet, MemoryWatch* watch,
                       RankOutcome* outcome) {
  consumer->Asked();
  absl::StatusOr<std::unique_ptr<Stream>> stream = OpenDelayedStream(session, options, delay);
  if (!stream.ok()) return stream.status();  // on all ranks
  watch->Begin();
  Trainer trainer(session->options().accelerator.get(), stream->get(), consumer);
  absl::Status status = options.source.generate_order == GenerateOrder::kOneAhead
                            ? trainer.TakeAllOneAhead()
                            : trainer.TakeAll();
  if (status.ok()) status = ExpectEnd(stream->get(), *consumer);
  meet();
  watch->End();
  outcome->grown_bytes = watch->growth();
  outcome->grown_by = std::string(MethodName(watch->method()));
  AddStats((*stream)->stats(), outcome);
  outcome->cursor = (*stream)->Cursor();
  return status;
}

}  // namespace sluice::bench
