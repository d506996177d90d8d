// Loads and saves checkpoints between ranks.
#include "session/checkpoint/checkpoints.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "session/base/team_device.h"
#include "session/base/text_list.h"
#include "session/checkpoint/checkpoint_catalog.h"
#include "session/checkpoint/checkpoint_files.h"
#include "session/checkpoint/checkpoint_headers.h"
#include "session/checkpoint/checkpoint_input.h"
#include "session/checkpoint/checkpoint_layout.h"
#include "session/checkpoint/checkpoint_names.h"
#include "session/checkpoint/checkpoint_run.h"
#include "session/checkpoint/given_catalog.h"
#include "session/peers/share_text.h"
#include "session/peers/together.h"
#include "storage/file/file_sink.h"
#include "storage/http/http_url.h"
#include "tensor/check.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

constexpr char kLoadCall[] = "LoadCheckpoint";
constexpr char kInfoCall[] = "ReadCheckpointInfo";
constexpr char kSaveCall[] = "SaveCheckpoint";

// How long a failed call waits for operations under way. Operations that are not over then keep
// their staging for ever.
constexpr absl::Duration kSettleTime = absl::Seconds(1);

void ShowNothingDone(CheckpointProgress* progress) {
  if (progress == nullptr) return;
  progress->total = 0;
  progress->done = 0;
}

void ShowAllDone(CheckpointProgress* progress) {
  if (progress != nullptr) progress->done = progress->total.load();
}

}  // namespace

// ---- The steps of both directions.

// Compares the input of all ranks. `input` may have found this rank's own input wrong already.
absl::Status Checkpoints::AgreeOnInput(const char* call, const CheckpointInput& input,
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
      {"the place, piece_bytes, shard_bytes_max, metadata or catalog",
       static_cast<int64_t>(input.call), false}};
  return peers_->Agree(std::move(proposal));
}

// Null if there is nobody to exchange with.
absl::StatusOr<std::unique_ptr<Transport>> Checkpoints::OpenTransport() {
  if (peers_->size() == 1) return nullptr;
  return peers_->OpenTransport();
}

// Loading goes into memory that is often new, whose pages one thread alone is slow to get.
absl::StatusOr<std::unique_ptr<Device>> Checkpoints::OpenDevice() {
  if (options_->accelerator != nullptr) return options_->accelerator->OpenDevice();
  const absl::Span<const int> nodes = peers_->fabric()->node_of_rank();
  const int own = nodes[static_cast<size_t>(peers_->rank())];
  return MakeTeamDevice(HelpersOf(std::count(nodes.begin(), nodes.end(), own)));
}

absl::Status Checkpoints::Carry(const char* call, const CheckpointOptions& options,
                                CheckpointRun* run) {
  ShardRunner* const runner = run->runner();
  if (run->ready_fd() >= 0) peers_->call_wait()->Watch(run->ready_fd());
  absl::Status status = FinishTogether(
      peers_, call, options.timeout,
      [runner]() -> absl::StatusOr<TogetherStep> {
        SLUICE_ASSIGN_OR_RETURN(const bool moved, runner->Poll());
        // The device is heard only by asking.
        const int64_t due_ns = runner->has_copies() ? 0 : runner->next_due_ns();
        return TogetherStep{.moved = moved,
                            .done = runner->done(),
                            .waits = runner->has_writes(),
                            .due_ns = due_ns};
      },
      [runner] { return runner->DescribeOldest(); });
  if (run->ready_fd() >= 0) peers_->call_wait()->Unwatch(run->ready_fd());
  if (status.ok()) return status;
  runner->Poison(status);
  const Deadline deadline(kSettleTime);
  Backoff backoff;
  while (!runner->Settle(true) && !deadline.Passed()) peers_->PauseFor(&backoff);
  return status;
}

// ---- Loading.

// Ranks of one node have one page cache. From there each copies its parts sooner than others send
// them.
absl::StatusOr<bool> Checkpoints::SharesMapping(const SourceAddress& address,
                                                const CheckpointRunParts& parts,
                                                const absl::Status& own) {
  const absl::Span<const int> nodes = peers_->fabric()->node_of_rank();
  if (address.scheme != "mmap" || nodes.size() == 1 ||
      absl::c_any_of(nodes, [&](int node) { return node != nodes[0]; })) {
    return false;
  }
  const bool lends = own.ok() && CheckpointRun::MayLend(*parts.source, *parts.device);
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::string> records,
                          peers_->Exchange(own, lends ? "lends" : "", kLoadCall));
  return absl::c_all_of(records, [](const std::string& record) { return !record.empty(); });
}

// Rank 0 looks for all, so that nothing is read twice.
absl::Status Checkpoints::ShareFound(const char* call, const CheckpointOptions& options,
                                     Transport* transport, OwnWorkFunction find,
                                     std::string* text) {
  if (peers_->rank() != 0) find = nullptr;
  absl::Status status = WorkTogether(peers_, call, options.timeout, std::move(find));
  if (!status.ok()) return status;
  return ShareText(peers_, transport, text, call);
}

absl::StatusOr<CheckpointCatalog> Checkpoints::ShareCatalog(
    const CheckpointOptions& options, Transport* transport,
    absl::FunctionRef<absl::StatusOr<CheckpointCatalog>(const WorkStop&)> find) {
  std::string text;
  absl::StatusOr<CheckpointCatalog> found = CheckpointCatalog();
  const auto find_text = [&](const WorkStop& stop) {
    found = find(stop);
    if (found.ok()) text = CatalogText(*found);
    return found.status();
  };
  absl::Status status = ShareFound(kLoadCall, options, transport, find_text, &text);
  if (!status.ok()) return status;
  return peers_->rank() == 0 ? std::move(found) : ParseCatalogText(text);
}

absl::StatusOr<CheckpointInfo> Checkpoints::Info(const std::string& uri,
                                                 const CheckpointOptions& options) {
  const absl::StatusOr<SourceAddress> address = ParseSourceAddress(uri);
  CheckpointInput input = LookAtPlace(uri, options);
  input.status.Update(address.status());
  if (uri.empty()) input.status.Update(absl::InvalidArgumentError("no address of a checkpoint"));
  CheckpointInfo given;
  if (input.status.ok() && !options.catalog.empty()) {
    absl::StatusOr<std::vector<std::string>> names = NamesIn(options.catalog);
    input.status = names.status();
    if (names.ok()) given.tensors = *std::move(names);
  }
  absl::Status status = AgreeOnInput(kInfoCall, input, 0);
  if (!status.ok() || !options.catalog.empty()) {
    return status.ok() ? absl::StatusOr<CheckpointInfo>(std::move(given)) : status;
  }
  absl::StatusOr<std::unique_ptr<Transport>> transport = OpenTransport();
  if (!transport.ok()) return transport.status();
  std::string text;
  const auto find = [&](const WorkStop& stop) {
    const absl::StatusOr<CheckpointInfo> found = FindInfo(*address, options, stop);
    if (found.ok()) text = InfoText(*found);
    return found.status();
  };
  status = ShareFound(kInfoCall, options, transport->get(), find, &text);
  if (!status.ok()) return status;
  return ParseInfoText(text);
}

// Has the arrays of the given catalog in place of the tensors, and their views in `input`.
absl::Status Checkpoints::UseCatalog(const std::string& uri,
                                     absl::Span<const CheckpointTensor> tensors,
                                     const CheckpointOptions& options, const MemoryRules& rules,
                                     CheckpointInput* input, StoredArrays* arrays) {
  if (IsOneFile(uri)) {
    return absl::InvalidArgumentError(absl::StrCat(
        ShownUrl(uri), " is the name of a file, and a catalog names files of a place"));
  }
  SLUICE_ASSIGN_OR_RETURN(*arrays, FindArrays(options.catalog, tensors, peers_->rank()));
  return BindArrays(arrays->tensors, rules, peers_->rank(), input);
}

absl::StatusOr<CheckpointStats> Checkpoints::Load(const std::string& uri,
                                                  absl::Span<const CheckpointTensor> tensors,
                                                  const CheckpointOptions& options,
                                                  const MemoryRules& rules) {
  const int64_t begin_ns = MonotonicNs();
  ShowNothingDone(options.progress);
  CheckpointInput input = LookAtInput(CheckpointFlow::kLoad, tensors, uri, options, rules,
                                      peers_->rank(), peers_->size());
  absl::StatusOr<SourceAddress> address = ParseSourceAddress(uri);
  input.status.Update(address.status());
  if (uri.empty()) input.status.Update(absl::InvalidArgumentError("no address of a checkpoint"));
  StoredArrays arrays;
  if (!options.catalog.empty() && input.status.ok()) {
    input.status = UseCatalog(uri, tensors, options, rules, &input, &arrays);
  }
  absl::Status status = AgreeOnInput(kLoadCall, input, tensors.size());
  if (!status.ok()) return status;
  const auto find = [&](const WorkStop& stop) {
    return options.catalog.empty() ? FindTensors(*address, tensors, options, stop)
                                   : LookAtArrays(*address, arrays, options, stop);
  };
  const auto wanted = static_cast<int64_t>(tensors.size());
  if (!options.catalog.empty()) tensors = arrays.tensors;
  if (tensors.empty()) {  // no element of any is stored
    CheckpointStats stats;
    stats.tensors = wanted;
    stats.tensors_ignored = arrays.ignored;
    return stats;
  }
  absl::StatusOr<std::unique_ptr<Transport>> transport = OpenTransport();
  if (!transport.ok()) return transport.status();
  SLUICE_ASSIGN_OR_RETURN(CheckpointCatalog catalog, ShareCatalog(options, transport->get(), find));
  TakeFileName(&*address);  // the catalog has it
  CheckpointRunParts parts;
  parts.flow = CheckpointFlow::kLoad;
  parts.rank = peers_->rank();
  parts.files = catalog.files;
  parts.transport = *std::move(transport);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const CheckpointCatalog::Entry& entry = catalog.entries[i];
    parts.places.push_back({entry.file, entry.begin, entry.dtype, tensors[i].dtype, input.views[i],
                            input.box_views[i]});
  }
  constexpr int64_t kReadsMax = 4096;
  const int64_t reads = options.budget_bytes / options.piece_bytes + 1;
  const FileStates states = FileStatesOf(*address, catalog);
  absl::StatusOr<std::unique_ptr<Source>> source = OpenFiles(
      *address, catalog.files, options, static_cast<int>(std::min(reads, kReadsMax)), states);
  absl::StatusOr<std::unique_ptr<CheckpointRun>> run = nullptr;
  absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice();
  status = source.status();
  status.Update(device.status());
  if (status.ok()) {
    parts.source = *std::move(source);
    parts.device = *std::move(device);
  }
  const absl::StatusOr<bool> shares = SharesMapping(*address, parts, status);
  if (!shares.ok()) return shares.status();
  parts.shares_mapping = *shares;
  if (status.ok()) {
    run = CheckpointRun::Make(std::move(parts), tensors, options);
    status = run.status();
  }
  if (status = peers_->AgreeOn(status, kLoadCall); !status.ok()) return status;
  const int64_t planned_ns = MonotonicNs();
  if (status = Carry(kLoadCall, options, run->get()); !status.ok()) return status;
  ShowAllDone(options.progress);
  CheckpointStats stats = (*run)->stats();
  OwnWorkFunction look_again;
  std::unique_ptr<Source> files;
  if (!address->is_http()) {
    // The runner ends here: its transport belongs to this thread.
    files = (*run)->EndReading();
    look_again = [&](const WorkStop&) {
      files.reset();  // looks at each file that it closes
      return states.identities->outcome();
    };
  } else if (peers_->rank() == 0) {
    look_again = [&](const WorkStop& stop) {
      return CheckUnchanged(*address, options, stop, &catalog);
    };
  }
  if (status = WorkTogether(peers_, kLoadCall, options.timeout, std::move(look_again));
      !status.ok()) {
    return status;
  }
  stats.tensors = wanted;
  stats.tensors_ignored = catalog.ignored;
  if (peers_->rank() == 0) stats.header_bytes = catalog.header_bytes;
  stats.planning = absl::Nanoseconds(planned_ns - begin_ns);
  stats.seconds = absl::Nanoseconds(MonotonicNs() - begin_ns);
  return stats;
}

// ---- Saving.

absl::StatusOr<CheckpointStats> Checkpoints::Save(const std::string& directory,
                                                  absl::Span<const CheckpointTensor> tensors,
                                                  const CheckpointOptions& options,
                                                  const MemoryRules& rules) {
  CheckpointFiles files;  // rank 0's
  std::unique_ptr<Sink> sink;
  absl::StatusOr<CheckpointStats> stats =
      SaveInto(&files, &sink, directory, tensors, options, rules);
  // Removing what a failure has left waits for the file system, and no other rank waits for it. A
  // save that was refused has left nothing: in a forked child no thread may be started.
  if (!stats.ok() && (files.begun() || sink != nullptr)) {
    WorkAlone(peers_, [&files, &sink] {
      sink.reset();
      files.Discard();
    });
  }
  return stats;
}

absl::StatusOr<CheckpointStats> Checkpoints::SaveInto(CheckpointFiles* files,
                                                      std::unique_ptr<Sink>* sink,
                                                      const std::string& directory,
                                                      absl::Span<const CheckpointTensor> tensors,
                                                      const CheckpointOptions& options,
                                                      const MemoryRules& rules) {
  const int64_t begin_ns = MonotonicNs();
  ShowNothingDone(options.progress);
  CheckpointInput input = LookAtInput(CheckpointFlow::kSave, tensors, directory, options, rules,
                                      peers_->rank(), peers_->size());
  if (directory.empty()) input.status.Update(absl::InvalidArgumentError("no directory"));
  if (IsOneFile(directory)) {  // for a load
    input.status.Update(absl::InvalidArgumentError(
        absl::StrCat(directory, " is the name of a file, and a save makes a directory")));
  }
  absl::Status status = AgreeOnInput(kSaveCall, input, tensors.size());
  if (!status.ok()) return status;
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, OpenTransport());
  // Rank 0 alone writes headers; places are the same with any id.
  const absl::StatusOr<CheckpointFileLayout> layout = LayOutCheckpoint(
      tensors, options.shard_bytes_max, std::string(kSaveIdBytes, '0'), options.metadata);
  if (!layout.ok()) return layout.status();  // on all ranks
  OwnWorkFunction create;
  OwnWorkFunction commit;
  if (peers_->rank() == 0) {
    create = [&](const WorkStop&) -> absl::Status {
      SLUICE_ASSIGN_OR_RETURN(const std::string id, NewSaveId());
      const absl::StatusOr<CheckpointFileLayout> own =
          LayOutCheckpoint(tensors, options.shard_bytes_max, id, options.metadata);
      return own.ok() ? files->Create(directory, *own) : own.status();
    };
    commit = [&](const WorkStop&) { return files->Commit(); };
  }
  status = WorkTogether(peers_, kSaveCall, options.timeout, std::move(create));
  if (!status.ok()) return status;
  std::string text = JoinTexts(files->temporaries());
  status = ShareText(peers_, transport.get(), &text, kSaveCall);
  if (!status.ok()) return status;
  SLUICE_ASSIGN_OR_RETURN(std::vector<std::string> temporaries, SplitTexts(text));
  SLUICE_CHECK(temporaries.size() == layout->files.size(), "rank 0 has made other files");
  std::vector<FileSink::File> writes;
  for (size_t i = 0; i < temporaries.size(); ++i) {
    writes.push_back({std::move(temporaries[i]), layout->files[i].bytes});
  }
  CheckpointRunParts parts;
  parts.flow = CheckpointFlow::kSave;
  parts.rank = peers_->rank();
  parts.transport = std::move(transport);
  for (const CheckpointFileLayout::File& file : layout->files) parts.files.push_back(file.name);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const CheckpointFileLayout::FilePosition& place = layout->places[i];
    parts.places.push_back({place.file, place.begin, FileDTypeOf(tensors[i]), tensors[i].dtype,
                            input.views[i], input.box_views[i]});
  }
  absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice();
  absl::StatusOr<std::unique_ptr<CheckpointRun>> run = nullptr;
  absl::StatusOr<std::unique_ptr<FileSink>> made = FileSink::Make(std::move(writes));
  status = device.status();
  status.Update(made.status());
  if (status.ok()) {
    *sink = *std::move(made);
    parts.sink = sink->get();
    parts.device = *std::move(device);
    run = CheckpointRun::Make(std::move(parts), tensors, options);
    status = run.status();
  }
  if (status = peers_->AgreeOn(status, kSaveCall); !status.ok()) return status;
  const int64_t planned_ns = MonotonicNs();
  if (status = Carry(kSaveCall, options, run->get()); !status.ok()) return status;
  ShowAllDone(options.progress);
  const int64_t written_ns = MonotonicNs();
  status = WorkTogether(peers_, kSaveCall, options.timeout,
                        [sink](const WorkStop&) { return (*sink)->Sync(); });
  if (!status.ok()) return status;
  status = WorkTogether(peers_, kSaveCall, options.timeout, std::move(commit));
  if (!status.ok()) return status;
  CheckpointStats stats = (*run)->stats();
  stats.planning = absl::Nanoseconds(planned_ns - begin_ns);
  stats.syncing = absl::Nanoseconds(MonotonicNs() - written_ns);
  stats.seconds = absl::Nanoseconds(MonotonicNs() - begin_ns);
  return stats;
}

}  // namespace sluice
