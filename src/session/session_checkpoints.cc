// How checkpoints are loaded and saved between ranks.
#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "session/checkpoint_catalog.h"
#include "session/checkpoint_files.h"
#include "session/checkpoint_input.h"
#include "session/checkpoint_run.h"
#include "session/clock.h"
#include "session/open_device.h"
#include "session/rounds.h"
#include "session/session_impl.h"

namespace sluice {
namespace {

constexpr char kLoadCall[] = "LoadCheckpoint";
constexpr char kSaveCall[] = "SaveCheckpoint";

// How long a failed one waits for what is under way. What is not over then keeps its staging for
// ever.
constexpr absl::Duration kSettleTime = absl::Seconds(1);

}  // namespace

// ---- What both directions share.

absl::Status SessionImpl::AgreeOn(const absl::Status& own, const char* call) {
  Proposal proposal;
  proposal.call = call;
  proposal.status = own;
  return Agree(std::move(proposal));
}

// What this rank's own calls look at may be wrong already: `own`.
absl::Status SessionImpl::AgreeOnInput(const char* call, const CheckpointInput& input,
                                       size_t tensors) {
  Proposal proposal;
  proposal.call = call;
  proposal.status = input.status;
  proposal.values = {
      {"the number of tensors", static_cast<int64_t>(tensors)},
      {"the tensors' names", static_cast<int64_t>(input.tensors.names), false},
      {"the tensors' shapes or dtypes", static_cast<int64_t>(input.tensors.tensors), false},
      {"the tensors' meshes, ranks or placements", static_cast<int64_t>(input.tensors.layouts),
       false},
      {"the place, piece_bytes or shard_bytes_max", static_cast<int64_t>(input.call), false}};
  return Agree(std::move(proposal));
}

absl::StatusOr<std::unique_ptr<Transport>> SessionImpl::OpenCheckpointTransport() {
  if (size() == 1) return nullptr;
  absl::StatusOr<std::unique_ptr<Transport>> transport = fabric_->OpenTransport();
  if (!transport.ok()) return Poison(transport.status());
  if (absl::Status status = (*transport)->Reserve(size()); !status.ok()) return Poison(status);
  return transport;
}

absl::Status SessionImpl::FinishTogether(const char* call, absl::Duration timeout,
                                         absl::FunctionRef<absl::StatusOr<StepResult>()> step,
                                         absl::FunctionRef<std::string()> describe) {
  const int64_t timeout_ns = absl::ToInt64Nanoseconds(timeout);
  Rounds rounds(fabric_.get(), call, timeout);
  absl::Status own;
  StepResult result;
  int64_t moved_ns = MonotonicNs();
  call_wait_.Reset();
  while (true) {
    if (absl::Status status = CheckAlarm(); !status.ok()) return status;
    bool moved = AdvanceStreams();
    int64_t now_ns = MonotonicNs();
    if (own.ok() && !result.done) {
      const absl::StatusOr<StepResult> stepped = step();
      own = stepped.status();
      result = stepped.value_or(StepResult());
      moved |= result.moved;
      now_ns = MonotonicNs();
      if (result.moved || result.waits) moved_ns = now_ns;
      if (own.ok() && !result.done && now_ns - moved_ns > timeout_ns) {
        own = absl::DeadlineExceededError(
            absl::StrCat("no progress for ", absl::FormatDuration(timeout), "; ", describe()));
      }
    }
    const absl::StatusOr<bool> over = rounds.Poll(result.done, own, now_ns);
    if (!over.ok()) return rounds.out_of_step() ? Poison(over.status()) : over.status();
    if (*over) return absl::OkStatus();
    if (moved) {
      call_wait_.Reset();
    } else {
      call_wait_.Pause(size() > 1 || !streams_.empty() ? Awaited::kRanks : Awaited::kFiles,
                       std::min(result.due_ns, next_due_ns()) - MonotonicNs());
    }
  }
}

absl::Status SessionImpl::Carry(const char* call, const CheckpointOptions& options,
                                CheckpointRun* run) {
  ShardRunner* const runner = run->runner();
  if (run->ready_fd() >= 0) call_wait_.Watch(run->ready_fd());
  absl::Status status = FinishTogether(
      call, options.timeout,
      [runner]() -> absl::StatusOr<StepResult> {
        const absl::StatusOr<bool> moved = runner->Poll();
        if (!moved.ok()) return moved.status();
        // The device is heard only by asking.
        const int64_t due_ns = runner->has_copies() ? 0 : runner->next_due_ns();
        return StepResult{.moved = *moved, .done = runner->done(), .due_ns = due_ns};
      },
      [runner] { return runner->DescribeOldest(); });
  if (run->ready_fd() >= 0) call_wait_.Unwatch(run->ready_fd());
  if (status.ok()) return status;
  runner->Poison(status);
  const Deadline deadline(kSettleTime);
  Backoff backoff;
  while (!runner->Settle() && !deadline.Passed()) PauseFor(&backoff);
  return status;
}

// ---- Loading.

// Rank 0 looks for all, so that nothing is read twice.
absl::StatusOr<CheckpointCatalog> SessionImpl::ShareCatalog(
    const SourceAddress& address, absl::Span<const CheckpointTensor> tensors,
    const CheckpointOptions& options, Transport* transport) {
  std::string text;
  absl::Status status;
  if (rank() == 0) {
    Backoff backoff;
    const absl::StatusOr<CheckpointCatalog> found =
        FindTensors(address, tensors, options, [&] { PauseFor(&backoff); });
    status = found.status();
    if (found.ok()) text = CatalogText(*found);
  }
  status = ShareText(status, transport, &text, kLoadCall);
  if (!status.ok()) return status;
  return ParseCatalogText(text);
}

absl::StatusOr<CheckpointStats> SessionImpl::LoadCheckpoint(
    const std::string& uri, absl::Span<const CheckpointTensor> tensors,
    const CheckpointOptions& options) {
  const int64_t begin_ns = MonotonicNs();
  if (absl::Status status = FinishCancels(); !status.ok()) return status;
  if (absl::Status status = CheckIdle(kLoadCall); !status.ok()) return status;
  const MemoryRules rules = runner_->MemoryRulesFor(options_.accelerator.get());
  CheckpointInput input =
      LookAtInput(CheckpointFlow::kLoad, tensors, uri, options, rules, rank(), size());
  const absl::StatusOr<SourceAddress> address = ParseSourceAddress(uri);
  input.status.Update(address.status());
  if (uri.empty()) input.status.Update(absl::InvalidArgumentError("no address of a checkpoint"));
  absl::Status status = AgreeOnInput(kLoadCall, input, tensors.size());
  if (!status.ok()) return status;
  absl::StatusOr<std::unique_ptr<Transport>> transport = OpenCheckpointTransport();
  if (!transport.ok()) return transport.status();
  const absl::StatusOr<CheckpointCatalog> catalog =
      ShareCatalog(*address, tensors, options, transport->get());
  if (!catalog.ok()) return catalog.status();
  CheckpointRunParts parts;
  parts.flow = CheckpointFlow::kLoad;
  parts.rank = rank();
  parts.files = catalog->files;
  parts.transport = *std::move(transport);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const CheckpointCatalog::Entry& entry = catalog->entries[i];
    parts.places.push_back(
        {entry.file, entry.begin, entry.dtype, tensors[i].dtype, input.views[i]});
  }
  constexpr int64_t kReadsMax = 4096;
  const int64_t reads = options.budget_bytes / options.piece_bytes + 1;
  absl::StatusOr<std::unique_ptr<Source>> source =
      OpenFiles(*address, catalog->files, options, static_cast<int>(std::min(reads, kReadsMax)));
  absl::StatusOr<std::unique_ptr<CheckpointRun>> run = nullptr;
  absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice(options_);
  status = source.status();
  status.Update(device.status());
  if (status.ok()) {
    parts.source = *std::move(source);
    parts.device = *std::move(device);
    run = CheckpointRun::Make(std::move(parts), tensors, options);
    status = run.status();
  }
  if (status = AgreeOn(status, kLoadCall); !status.ok()) return status;
  const int64_t planned_ns = MonotonicNs();
  if (status = Carry(kLoadCall, options, run->get()); !status.ok()) return status;
  CheckpointStats stats = (*run)->stats();
  stats.tensors_ignored = catalog->ignored;
  if (rank() == 0) stats.header_bytes = catalog->header_bytes;
  stats.planning = absl::Nanoseconds(planned_ns - begin_ns);
  stats.seconds = absl::Nanoseconds(MonotonicNs() - begin_ns);
  return stats;
}

// ---- Saving.

absl::Status SessionImpl::SyncFiles(const CheckpointOptions& options, CheckpointWriter* writer) {
  // A thread of its own waits for the storage: the others are to hear that this rank lives.
  std::atomic<bool> synced = false;
  absl::Status outcome;
  std::thread syncer([&] {
    outcome = writer->Sync();
    synced.store(true, std::memory_order_release);
  });
  absl::Status status = FinishTogether(
      kSaveCall, options.timeout,
      [&]() -> absl::StatusOr<StepResult> {
        if (!synced.load(std::memory_order_acquire)) return StepResult{.waits = true};
        if (!outcome.ok()) return outcome;
        return StepResult{.moved = true, .done = true};
      },
      [] { return std::string(); });
  syncer.join();
  return status;
}

absl::StatusOr<CheckpointStats> SessionImpl::SaveCheckpoint(
    const std::string& directory, absl::Span<const CheckpointTensor> tensors,
    const CheckpointOptions& options) {
  const int64_t begin_ns = MonotonicNs();
  if (absl::Status status = FinishCancels(); !status.ok()) return status;
  if (absl::Status status = CheckIdle(kSaveCall); !status.ok()) return status;
  const MemoryRules rules = runner_->MemoryRulesFor(options_.accelerator.get());
  CheckpointInput input =
      LookAtInput(CheckpointFlow::kSave, tensors, directory, options, rules, rank(), size());
  if (directory.empty()) input.status.Update(absl::InvalidArgumentError("no directory"));
  absl::Status status = AgreeOnInput(kSaveCall, input, tensors.size());
  if (!status.ok()) return status;
  absl::StatusOr<std::unique_ptr<Transport>> transport = OpenCheckpointTransport();
  if (!transport.ok()) return transport.status();
  const absl::StatusOr<CheckpointFileLayout> layout =
      LayOutCheckpoint(tensors, options.shard_bytes_max);
  CheckpointFiles files;  // rank 0's
  status = layout.status();
  if (status.ok() && rank() == 0) status = files.Create(directory, *layout);
  std::string text = absl::StrJoin(files.temporaries(), "\n");
  status = ShareText(status, transport->get(), &text, kSaveCall);
  if (!status.ok()) return status;
  CheckpointWriter writer(absl::StrSplit(text, '\n'));
  CheckpointRunParts parts;
  parts.flow = CheckpointFlow::kSave;
  parts.rank = rank();
  parts.writer = &writer;
  parts.transport = *std::move(transport);
  for (const CheckpointFileLayout::File& file : layout->files) parts.files.push_back(file.name);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const CheckpointFileLayout::Place& place = layout->places[i];
    parts.places.push_back(
        {place.file, place.begin, FileDTypeOf(tensors[i]), tensors[i].dtype, input.views[i]});
  }
  absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice(options_);
  absl::StatusOr<std::unique_ptr<CheckpointRun>> run = nullptr;
  status = device.status();
  if (device.ok()) {
    parts.device = *std::move(device);
    run = CheckpointRun::Make(std::move(parts), tensors, options);
    status = run.status();
  }
  if (status = AgreeOn(status, kSaveCall); !status.ok()) return status;
  const int64_t planned_ns = MonotonicNs();
  if (status = Carry(kSaveCall, options, run->get()); !status.ok()) return status;
  const int64_t written_ns = MonotonicNs();
  if (status = SyncFiles(options, &writer); !status.ok()) return status;
  if (rank() == 0) status = files.Commit();
  if (status = AgreeOn(status, kSaveCall); !status.ok()) return status;
  CheckpointStats stats = (*run)->stats();
  stats.planning = absl::Nanoseconds(planned_ns - begin_ns);
  stats.syncing = absl::Nanoseconds(MonotonicNs() - written_ns);
  stats.seconds = absl::Nanoseconds(MonotonicNs() - begin_ns);
  return stats;
}

}  // namespace sluice
