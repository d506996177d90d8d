// Modes in turns, between barriers.
#include "stream/rounds.h"

#include <sys/resource.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "device/copy_flat.h"
#include "job/trace_file.h"
#include "memory/memory_watch.h"
#include "sluice/status.h"
#include "sluice/testing.h"
#include "stream/baselines/baseline.h"
#include "stream/consumer.h"
#include "workload/json_input.h"
#include "workload/local_part.h"

namespace sluice::bench {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

Usage UsageNow() {
  Usage usage;
  rusage of;
  if (getrusage(RUSAGE_SELF, &of) == 0) usage.cpu_s = Seconds(of.ru_utime) + Seconds(of.ru_stime);
  if (getrusage(RUSAGE_THREAD, &of) == 0) usage.major_faults = of.ru_majflt;
  return usage;
}

// Brings items that are on a device to the host, where they are checked.
class ItemFetch {
 public:
  absl::StatusOr<TensorView> OnHost(Accelerator* accelerator, const TensorView& view) {
    if (view.device == DeviceKind::kCpu) return view;
    if (device_ == nullptr) {
      SLUICE_ASSIGN_OR_RETURN(device_, accelerator->OpenDevice());
    }
    memory_.resize(BytesOf(view).size());
    SLUICE_RETURN_IF_ERROR(CopyFlat(device_.get(), static_cast<const std::byte*>(view.data),
                                    view.device, memory_.data(), DeviceKind::kCpu, memory_.size()));
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
      SLUICE_ASSIGN_OR_RETURN(const Lease lease, Take());
      SLUICE_RETURN_IF_ERROR(Consume(lease));
      stream_->EndUpdate();
    }
    return absl::OkStatus();
  }

  // The order of GenerateOrder::kOneAhead.
  absl::Status TakeAllOneAhead() {
    if (consumer_->done()) return absl::OkStatus();
    absl::StatusOr<Lease> lease = Take();
    while (lease.ok()) {
      SLUICE_RETURN_IF_ERROR(Consume(*lease));
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
    SLUICE_ASSIGN_OR_RETURN(Lease lease, stream_->Next());
    if (lease.end()) {
      return absl::DataLossError(
          absl::StrCat("the stream ended ", consumer_->left(), " items before its end"));
    }
    consumer_->Arrived(waited);
    return lease;
  }

  absl::Status Consume(const Lease& lease) {
    for (int64_t i = 0; i < lease.items() && !consumer_->done(); ++i) {
      SLUICE_ASSIGN_OR_RETURN(const TensorView view, fetch_.OnHost(accelerator_, lease.view(i)));
      consumer_->Consume(lease.item(i), lease.epoch(i), view);
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
  SLUICE_ASSIGN_OR_RETURN(const Lease lease, stream->Next());
  if (lease.end()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the stream goes on after all its ", stream->items(), " items"));
}

// For ranks that have much to do: each ends by itself when it waits too long for an item.
constexpr absl::Duration kLongestRun = absl::Hours(24);
// Between looks at the other ranks, so that those that are done leave the processors to the rest.
constexpr absl::Duration kBetweenLooks = absl::Microseconds(200);

StreamOptions WithGenerator(const StreamBenchOptions& options, const Contents& contents, int rank,
                            int size) {
  StreamOptions stream = StreamOptionsOf(options, rank, size);
  if (options.is_generator()) {
    stream.source.generator =
        MakeFillGenerator(contents.FillOf(contents.TypeOf(0)),
                          absl::ToInt64Nanoseconds(absl::Milliseconds(options.generate_ms)));
  }
  return stream;
}

absl::Status RunBaseline(const Mode& mode, const BaselineJob& job, RankOutcome* outcome) {
  if (mode.kind == Mode::Kind::kLoop) return RunLoop(job, outcome);
  if (mode.kind == Mode::Kind::kSerial) return RunSerial(job, outcome);
  if (mode.kind == Mode::Kind::kWaves) return RunWaves(job, mode.slabs, outcome);
  return RunThreads(job, mode.workers, mode.ahead, outcome);
}

// The consumer's thread has taken its last item.
void NoteUsage(const Usage& begin, RankOutcome* outcome) {
  const Usage now = UsageNow();
  outcome->cpu_s = now.cpu_s - begin.cpu_s;
  outcome->major_faults = now.major_faults - begin.major_faults;
}

// Opens a stream, consumes what `consumer`, which is started, wants of it, and closes it. `watch`
// looks at memory from when the stream is open until all ranks have met.
// Collective where ranks exchange: `meet` is called once before a stream that was opened is closed,
// and has to go on driving the session until all ranks have come.
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
  outcome->stats = (*stream)->stats();
  outcome->cursor = (*stream)->Cursor();
  return status;
}

}  // namespace

Rounds::Rounds(const StreamBenchOptions* options, const Contents* contents, Ranks* ranks,
               Session* session)
    : options_(*options),
      contents_(*contents),
      ranks_(*ranks),
      session_(*session),
      stream_(WithGenerator(*options, *contents, ranks->rank(), ranks->size())),
      check_(contents, options->check, options->stream.buffers.transform),
      bar_(ranks->rank() == 0),
      rounds_(options->modes.size()) {}

absl::Status Rounds::Progress() {
  absl::SleepFor(kBetweenLooks);
  return session_.Poll();
}

absl::Status Rounds::Meet() {
  absl::Status status = ranks_.Barrier(kLongestRun, [this] { return Progress(); });
  if (!status.ok()) lost_ = true;
  return status;
}

MappedMemory Rounds::Grow() const {
  const auto bytes = static_cast<size_t>(options_.grow_bytes);
  MappedMemory grown = MapMemory(bytes);
  if (grown != nullptr) std::memset(grown.get(), 1, bytes);
  return grown;
}

absl::Status Rounds::Deliver(const Mode& mode, int round, const StreamPlan& plan,
                             const Usage& begin, Consumer* consumer, RankOutcome* outcome) {
  InjectedDelay delay = DelayOf(options_);
  if (mode.kind == Mode::Kind::kWarm) delay.latency = absl::ZeroDuration();
  const BaselineJob job = {&stream_, delay, plan, consumer};
  if (!mode.is_stream()) {
    absl::Status status = RunBaseline(mode, job, outcome);
    NoteUsage(begin, outcome);
    return status;
  }
  StreamOptions stream = stream_;
  if (round > 0 || mode.kind == Mode::Kind::kWarm) stream.trace_epochs = 0;
  absl::Status met;
  // Pages of mapped files are no memory of this process.
  MemoryWatch watch(absl::StartsWith(options_.source, "mmap:"));
  MappedMemory grown;
  const auto meet = [&] {
    NoteUsage(begin, outcome);
    grown = Grow();
    met = Meet();
  };
  absl::Status status = RunSluice(&session_, stream, delay, consumer, meet, &watch, outcome);
  outcome->grown_rank = ranks_.rank();
  return met.ok() ? status : met;
}

absl::Status Rounds::RunHere(const Mode& mode, int round, RankOutcome* outcome) {
  SLUICE_ASSIGN_OR_RETURN(const auto plan, contents_.PlanOf(stream_));
  ConsumerOptions consume;
  consume.consume_ns = absl::ToInt64Nanoseconds(absl::Microseconds(options_.consume_us));
  consume.stop_items = options_.stop_items;
  consume.corrupt_items = options_.corrupt;
  consume.hash_items = options_.is_generator();
  consume.touches = options_.touch;
  // The others always deliver in order.
  consume.in_order = stream_.order.in_order || !mode.is_stream();
  Consumer consumer(&contents_, &check_, plan, consume, &bar_);
  const std::string label =
      options_.iterations > 1
          ? absl::StrCat(mode.Name(), ", round ", round + 1, " of ", options_.iterations)
          : mode.Name();
  bar_.Begin(label, consumer.wanted(), "items");
  SLUICE_RETURN_IF_ERROR(Meet());
  consumer.Start();
  absl::Status status = Deliver(mode, round, plan, UsageNow(), &consumer, outcome);
  consumer.AddTo(outcome);
  bar_.Clear();
  return status;
}

absl::Status Rounds::RunMode(size_t m, int round) {
  const Mode& mode = options_.modes[m];
  RankOutcome mine;
  mine.status = RunHere(mode, round, &mine);
  if (lost_) return mine.status;
  const auto records = ranks_.AllGather(Encode(mine), kLongestRun, [this] { return Progress(); });
  if (!records.ok()) {
    lost_ = true;
    return mine.status.ok() ? records.status() : mine.status;
  }
  std::vector<RankOutcome> outcomes;
  std::vector<absl::Status> statuses;
  for (const std::string& record : *records) {
    outcomes.push_back(DecodeOutcome(record));
    statuses.push_back(outcomes.back().status);
  }
  rounds_[m].push_back(SumOf(mode.Name(), outcomes));
  return CombineStatuses(statuses);
}

std::vector<Result> Rounds::Medians() const {
  std::vector<Result> results;
  for (const std::vector<Result>& rounds : rounds_) {
    if (!rounds.empty()) results.push_back(MedianOf(rounds));
  }
  return results;
}

absl::Status Rounds::Run(absl::FunctionRef<void(const std::vector<Result>&)> so_far,
                         std::vector<Result>* results, bool* lost) {
  absl::Status status;
  for (int round = 0; round < options_.iterations && status.ok(); ++round) {
    for (size_t m = 0; m < rounds_.size() && status.ok(); ++m) {
      status = Prefixed(options_.modes[m].Name(), RunMode(m, round));
      so_far(Medians());
    }
  }
  *results = Medians();
  *lost = lost_;
  return status;
}

absl::StatusOr<std::string> Rounds::WriteTrace(TraceFileFacts* facts) {
  if (options_.trace_file.empty()) return std::string();
  return WriteTraceFile(
      options_.trace_file, *session_.trace(), options_.timeout(), &ranks_,
      [this] { return session_.Poll(); }, options_.is_emulated() ? "emulated device" : "", facts);
}

}  // namespace sluice::bench
