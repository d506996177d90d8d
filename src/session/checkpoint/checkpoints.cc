// How checkpoints are loaded and saved between ranks.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "session/checkpoint_catalog.h"
#include "session/checkpoint_files.h"
#include "session/checkpoint_headers.h"
#include "session/checkpoint_input.h"
#include "session/checkpoint_layout.h"
#include "session/checkpoint_run.h"
#include "session/clock.h"
#include "session/open_device.h"
#include "session/session_impl.h"
#include "session/text_list.h"
#include "tensor/check.h"

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
  while (!runner->Settle(true) && !deadline.Passed()) PauseFor(&backoff);
  return status;
}

// ---- Loading.

// Rank 0 looks for all, so that nothing is read twice.
absl::StatusOr<CheckpointCatalog> SessionImpl::ShareCatalog(
    const SourceAddress& address, absl::Span<const CheckpointTensor> tensors,
    const CheckpointOptions& options, Transport* transport) {
  std::string text;
  absl::StatusOr<CheckpointCatalog> found = CheckpointCatalog();
  OwnWorkFunction find;
  if (rank() == 0) {
    find = [&](const WorkStop& stop) {
      found = FindTensors(address, tensors, options, stop);
      if (found.ok()) text = CatalogText(*found);
      return found.status();
    };
  }
  absl::Status status = WorkTogether(kLoadCall, options.timeout, std::move(find));
  if (!status.ok()) return status;
  status = ShareText(absl::OkStatus(), transport, &text, kLoadCall);
  if (!status.ok()) return status;
  return rank() == 0 ? std::move(found) : ParseCatalogText(text);
}

absl::StatusOr<CheckpointStats> SessionImpl::LoadCheckpoint(
    const std::string& uri, absl::Span<const CheckpointTensor> tensors,
    const CheckpointOptions& options) {
  const int64_t begin_ns = MonotonicNs();
  if (absl::Status status = FinishCollectives(); !status.ok()) return status;
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
  absl::StatusOr<CheckpointCatalog> catalog =
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
  const FileStates states = FileStatesOf(*address, *catalog);
  absl::StatusOr<std::unique_ptr<Source>> source = OpenFiles(
      *address, catalog->files, options, static_cast<int>(std::min(reads, kReadsMax)), states);
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
  OwnWorkFunction look_again;
  if (!address->is_http()) {
    look_again = [&](const WorkStop&) {
      (*run)->EndReading().reset();  // looks at each file that it closes
      return states.identities->outcome();
    };
  } else if (rank() == 0) {
    look_again = [&](const WorkStop& stop) {
      return CheckUnchanged(*address, options, stop, &*catalog);
    };
  }
  if (status = WorkTogether(kLoadCall, options.timeout, std::move(look_again)); !status.ok()) {
    return status;
  }
  stats.tensors_ignored = catalog->ignored;
  if (rank() == 0) stats.header_bytes = catalog->header_bytes;
  stats.planning = absl::Nanoseconds(planned_ns - begin_ns);
  stats.seconds = absl::Nanoseconds(MonotonicNs() - begin_ns);
  return stats;
}

// ---- Saving.

absl::StatusOr<CheckpointStats> SessionImpl::SaveCheckpoint(
    const std::string& directory, absl::Span<const CheckpointTensor> tensors,
    const CheckpointOptions& options) {
  CheckpointFiles files;  // rank 0's
  absl::StatusOr<CheckpointStats> stats = SaveInto(&files, directory, tensors, options);
  // Removing what a failure has left waits for the file system, and no other rank waits for it. A
  // save that was refused has left nothing: in a forked child no thread may be started.
  if (!stats.ok() && files.begun()) WorkAlone([&files] { files.Discard(); });
  return stats;
}

absl::StatusOr<CheckpointStats> SessionImpl::SaveInto(CheckpointFiles* files,
                                                      const std::string& directory,
                                                      absl::Span<const CheckpointTensor> tensors,
                                                      const CheckpointOptions& options) {
  const int64_t begin_ns = MonotonicNs();
  if (absl::Status status = FinishCollectives(); !status.ok()) return status;
  if (absl::Status status = CheckIdle(kSaveCall); !status.ok()) return status;
  const MemoryRules rules = runner_->MemoryRulesFor(options_.accelerator.get());
  CheckpointInput input =
      LookAtInput(CheckpointFlow::kSave, tensors, directory, options, rules, rank(), size());
  if (directory.empty()) input.status.Update(absl::InvalidArgumentError("no directory"));
  absl::Status status = AgreeOnInput(kSaveCall, input, tensors.size());
  if (!status.ok()) return status;
  absl::StatusOr<std::unique_ptr<Transport>> transport = OpenCheckpointTransport();
  if (!transport.ok()) return transport.status();
  // Rank 0 alone writes headers; places are the same with any id.
  const absl::StatusOr<CheckpointFileLayout> layout =
      LayOutCheckpoint(tensors, options.shard_bytes_max, std::string(kSaveIdBytes, '0'));
  if (!layout.ok()) return layout.status();  // on all ranks
  OwnWorkFunction create;
  OwnWorkFunction commit;
  if (rank() == 0) {
    create = [&](const WorkStop&) -> absl::Status {
      const absl::StatusOr<std::string> id = NewSaveId();
      if (!id.ok()) return id.status();
      const absl::StatusOr<CheckpointFileLayout> own =
          LayOutCheckpoint(tensors, options.shard_bytes_max, *id);
      return own.ok() ? files->Create(directory, *own) : own.status();
    };
    commit = [&](const WorkStop&) { return files->Commit(); };
  }
  status = WorkTogether(kSaveCall, options.timeout, std::move(create));
  if (!status.ok()) return status;
  std::string text = JoinTexts(files->temporaries());
  status = ShareText(absl::OkStatus(), transport->get(), &text, kSaveCall);
  if (!status.ok()) return status;
  absl::StatusOr<std::vector<std::string>> temporaries = SplitTexts(text);
  if (!temporaries.ok()) return temporaries.status();
  SLUICE_CHECK(temporaries->size() == layout->files.size(), "rank 0 has made other files");
  std::vector<CheckpointWriter::File> writes;
  for (size_t i = 0; i < temporaries->size(); ++i) {
    writes.push_back({std::move((*temporaries)[i]), layout->files[i].bytes});
  }
  CheckpointWriter writer(std::move(writes));
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
  status = WorkTogether(kSaveCall, options.timeout,
                        [&writer](const WorkStop&) { return writer.Sync(); });
  if (!status.ok()) return status;
  status = WorkTogether(kSaveCall, options.timeout, std::move(commit));
  if (!status.ok()) return status;
  CheckpointStats stats = (*run)->stats();
  stats.planning = absl::Nanoseconds(planned_ns - begin_ns);
  stats.syncing = absl::Nanoseconds(MonotonicNs() - written_ns);
  stats.seconds = absl::Nanoseconds(MonotonicNs() - begin_ns);
  return stats;
}

}  // namespace sluice
