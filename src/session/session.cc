// What users call.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "device/cache_share.h"
#include "plan/auto_knobs.h"
#include "plan/groups.h"
#include "session/backoff.h"
#include "session/clock.h"
#include "session/limits.h"
#include "session/open_device.h"
#include "session/session_impl.h"
#include "session/threaded_session.h"
#include "tensor/check.h"
#include "tensor/stable_hash.h"
#include "transport/deadline.h"

namespace sluice {
namespace {

// Run numbers are part of bucket ids.
constexpr int64_t kRunMax = (int64_t{1} << kRunBits) - 1;

// How long Close stays for ranks that have not parted from this one, when nothing is under way
// here: operations of theirs with this rank may end only meanwhile.
constexpr absl::Duration kFarewellTime = absl::Seconds(5);

int64_t AsSigned(uint64_t hash) { return static_cast<int64_t>(hash); }

int64_t HashOfName(const TransportMaker* maker) {
  StableHash hash;
  hash.AddText(maker == nullptr ? "" : maker->name());
  return AsSigned(hash.value());
}

// Numbers that ranks tell each other.
std::string TextOf(const GroupNeed& need) {
  return absl::StrCat(need.round, " ", need.phase, " ", need.channel_round, " ",
                      need.channel_phase);
}

absl::StatusOr<GroupNeed> NeedFrom(const std::string& text, int rank) {
  GroupNeed need;
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  if (words.size() == 4 && absl::SimpleAtoi(words[0], &need.round) &&
      absl::SimpleAtoi(words[1], &need.phase) && absl::SimpleAtoi(words[2], &need.channel_round) &&
      absl::SimpleAtoi(words[3], &need.channel_phase)) {
    return need;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("rank ", rank, " runs another build of Sluice: what it says of its groups ",
                   "has another form"));
}

}  // namespace

// In a forked child the ends of connections are the parent's, too.
SessionImpl::~SessionImpl() {
  if (!fork_guard_.InChild()) return;
  static_cast<void>(runner_.release());
  static_cast<void>(fabric_.release());
  for (std::unique_ptr<TransferRun>& run : runs_) static_cast<void>(run.release());
  for (std::unique_ptr<TransferRun>& run : spare_runs_) static_cast<void>(run.release());
}

absl::Status SessionImpl::Open() {
  const absl::StatusOr<Budget> budget = ResolveBudget(options_);
  Proposal proposal;
  proposal.call = "Create";
  proposal.status = budget.status();
  // What is staged on a device passes no cache.
  proposal.payload = absl::StrCat(options_.accelerator == nullptr ? CacheShareBytes() : 0);
  absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice(options_);
  proposal.status.Update(device.status());
  if (options_.transport != nullptr && options_.accelerator == nullptr) {
    proposal.status.Update(absl::InvalidArgumentError(
        absl::StrCat("the transport ", options_.transport->name(), " needs an accelerator")));
  }
  if (options_.progress_thread && budget.ok()) {
    const absl::Status fits = fabric_->CheckOtherThread();
    if (!fits.ok() && proposal.status.ok()) {
      proposal.status =
          absl::Status(fits.code(), absl::StrCat("progress_thread: ", fits.message()));
    }
  }
  proposal.values = {{"bucket_bytes", options_.bucket_bytes},
                     {"max_in_flight", options_.max_in_flight},
                     {"budget_buckets", options_.budget_buckets},
                     {"budget_bytes", options_.budget_bytes},
                     {"timeout (ns)", absl::ToInt64Nanoseconds(options_.timeout)},
                     {"relay", options_.relay ? 1 : 0},
                     {"the ranks' nodes", AsSigned(HashPlan({}, PlanOptionsNow()).options), false},
                     {"the transport", HashOfName(options_.transport.get()), false},
                     {"direct", options_.direct ? 1 : 0}};
  if (absl::Status status = Agree(std::move(proposal)); !status.ok()) return status;
  budget_ = *budget;
  cache_bytes_ = SmallestCacheShare();
  absl::StatusOr<std::unique_ptr<Transport>> transport = OpenTransport(device->get());
  if (!transport.ok()) return Poison(transport.status());
  watch_.set_witness(this);
  TraceRecorder* recorder = nullptr;
  int device_track = -1;
  if (options_.trace_events > 0) {
    trace_ = std::make_unique<JoinedTraceLog>(rank());
    recorder = trace_->AddRecorder(options_.trace_events);
    if (options_.accelerator != nullptr) device_track = trace_->AddTrack("device");
  }
  const int max_in_flight = max_in_flight_ != 0
                                ? max_in_flight_
                                : AutoMaxInFlight(options_.bucket_bytes, budget_.slot_bytes);
  runner_ = std::make_unique<Runner>(*std::move(device), *std::move(transport), budget_.slots,
                                     max_in_flight, recorder, device_track);
  return absl::OkStatus();
}

absl::StatusOr<Transfer*> SessionImpl::Compile(const TransferSpec& spec) {
  if (absl::Status status = FinishCollectives(); !status.ok()) return status;
  if (absl::Status status = CheckIdle("Compile"); !status.ok()) return status;
  if (absl::Status status = FinishDeviceWork(); !status.ok()) return status;
  std::unique_ptr<CompiledTransfer> transfer;
  Proposal proposal;
  proposal.call = "Compile";
  const PlanHash hash = HashPlan(spec, PlanOptionsNow());
  proposal.status = Plan(spec, hash, &transfer);
  proposal.values = {{"the number of tensors", static_cast<int64_t>(spec.tensors.size())},
                     {"the tensors' names", AsSigned(hash.names), false},
                     {"the tensors' shapes or dtypes", AsSigned(hash.tensors), false},
                     {"the tensors' meshes, ranks or placements", AsSigned(hash.layouts), false},
                     {"the planning options", AsSigned(hash.options), false},
                     {"the number of runs started before", last_run_}};
  if (transfer != nullptr) proposal.payload = TextOf(NeedOf(transfer->plan()));
  if (absl::Status status = Agree(std::move(proposal)); !status.ok()) {
    // It may be another rank that cannot have it.
    if (transfer != nullptr) runner_->Forget(transfer.get());
    return status;
  }
  GroupNeed most;
  for (int other = 0; other < size(); ++other) {
    const absl::StatusOr<GroupNeed> need = NeedFrom(agreement_.payload(other), other);
    if (!need.ok()) return Poison(need.status());
    most = Most(most, *need);
  }
  transfer->cut = CutFor(most, budget_.slots, transfer->plan().max_in_flight);
  transfer->number = transfers_compiled_++;
  return transfers_.emplace(transfer->number, std::move(transfer)).first->second.get();
}

absl::Status SessionImpl::Drop(Transfer* transfer) {
  if (absl::Status status = FinishCollectives(); !status.ok()) return status;
  if (absl::Status status = CheckIdle("Drop"); !status.ok()) return status;
  if (absl::Status status = FinishDeviceWork(); !status.ok()) return status;
  CompiledTransfer* const dropped = Find(transfer);
  Proposal proposal;
  proposal.call = "Drop";
  if (dropped == nullptr) {
    proposal.status = absl::InvalidArgumentError("Drop of a transfer that is not this session's");
  }
  proposal.values = {{"the transfer to drop", dropped == nullptr ? -1 : dropped->number},
                     {"the number of runs started before", last_run_}};
  if (absl::Status status = Agree(std::move(proposal)); !status.ok()) return status;
  spare_runs_.erase(std::remove_if(spare_runs_.begin(), spare_runs_.end(),
                                   [dropped](const std::unique_ptr<TransferRun>& run) {
                                     return &run->transfer() == dropped;
                                   }),
                    spare_runs_.end());
  runner_->Forget(dropped);
  transfers_.erase(dropped->number);
  return absl::OkStatus();
}

// Runs in streams are done before the device is.
absl::Status SessionImpl::FinishDeviceWork() {
  Backoff backoff;
  const Deadline deadline(options_.timeout);
  while (poison_.ok() && runner_->busy()) {
    if (deadline.Passed()) {
      return Poison(absl::DeadlineExceededError(
          absl::StrCat("the device is still at work for runs that have ended after ",
                       absl::FormatDuration(options_.timeout))));
    }
    if (absl::Status status = Advance().status(); !status.ok()) return status;
    backoff.Pause();
  }
  return poison_;
}

absl::StatusOr<Session::RunId> SessionImpl::Start(Transfer* transfer,
                                                  absl::Span<const TensorView> src,
                                                  absl::Span<const TensorView> dst,
                                                  const StartOptions& options) {
  if (absl::Status status = CheckUsable(); !status.ok()) return status;
  if (last_run_ - done_.all_up_to() >= kMaxRunsInFlight) {
    return absl::FailedPreconditionError(absl::StrCat("Start while ", kMaxRunsInFlight,
                                                      " runs are in flight, from run ",
                                                      done_.all_up_to() + 1, " on"));
  }
  if (last_run_ >= kRunMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the session has made all its ", kRunMax, " runs"));
  }
  CompiledTransfer* compiled = Find(transfer);
  if (compiled == nullptr) {
    return absl::InvalidArgumentError("Start of a transfer that is not this session's");
  }
  if (options.stream) {
    if (options_.accelerator == nullptr) {
      return absl::FailedPreconditionError(
          "Start in a stream, but the session was made without an accelerator");
    }
    absl::Status own = options_.accelerator->CheckStream(*options.stream);
    if (!own.ok()) return own;
  }
  std::unique_ptr<TransferRun> run = TakeRun(*compiled);
  run->Reset(last_run_ + 1, options);
  const absl::Status bound = run->Bind(src, dst);
  // The others have begun this run, so it cannot be refused any more.
  if (compiled->agreed && !bound.ok()) return Poison(bound);
  if (run->in_stream() && bound.ok()) {
    if (absl::Status status = runner_->BeginInStream(run.get()); !status.ok()) {
      return Poison(status);
    }
  }
  ++last_run_;
  runner_->Add(run.get());
  if (compiled->agreed) {
    Release(run.get());
  } else {
    collectives_.push_back({Collective::Kind::kCompareViews, last_run_, bound});
  }
  runs_.push_back(std::move(run));
  KeepStep();
  while (!events_.empty() && events_.front().event.run <= last_run_ - kEventRuns) {
    events_.pop_front();
  }
  NoteMove();
  // The others need not wait for this rank's next call to hear of this one.
  AdvanceCollectives().IgnoreError();
  return last_run_;
}

absl::Status SessionImpl::Supply(RunId id, int tensor, const TensorView& dst) {
  if (absl::Status status = CheckUsable(); !status.ok()) return status;
  if (absl::Status status = CheckRun(id); !status.ok()) return status;
  TransferRun* const run = FindRun(id);
  if (run == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("run ", id, " is over"));
  }
  absl::Status status = run->Supply(tensor, dst);
  if (status.ok()) NoteMove();
  return status;
}

bool SessionImpl::PollEvent(Event* event) {
  if (fork_guard_.InChild()) return false;
  while (!events_.empty()) {
    RunEvent next = std::move(events_.front());
    events_.pop_front();
    if (!HoldBackFor(next)) continue;
    *event = std::move(next.event);
    return true;
  }
  return false;
}

// Only now: what the run's stream has got by now is not to wait for the run.
bool SessionImpl::HoldBackFor(const RunEvent& next) {
  if (next.mark == 0) return true;
  TransferRun* const run = FindRun(next.event.run);
  if (run == nullptr) return true;  // its stream comes after all of it
  // The device may have come past what has failed.
  if (!poison_.ok()) return false;
  const absl::Status status = run->HoldBack(next.mark);
  if (!status.ok()) Poison(status).IgnoreError();
  return status.ok();
}

absl::Status SessionImpl::Poll() {
  if (absl::Status status = fork_guard_.Check(); !status.ok()) return status;
  if (!poison_.ok()) {
    Settle();
    return poison_;
  }
  return Advance().status();
}

absl::Status SessionImpl::Wait(RunId run) {
  if (absl::Status status = fork_guard_.Check(); !status.ok()) return status;
  if (absl::Status status = CheckRun(run); !status.ok()) return status;
  for (bool first = true;; first = false) {
    // A run that this rank has finished stays finished, whatever happened afterwards. But the other
    // ranks need this one for a Cancel of it.
    if (done_.Has(run) && (!poison_.ok() || !pending_cancels_.Has(run))) return outcomes_.Of(run);
    if (!poison_.ok()) return Poll();
    const absl::StatusOr<bool> moved = Advance();
    if (!moved.ok()) continue;
    if (*moved || first) {
      idle_wait_.Reset();
    } else {
      idle_wait_.Pause(awaited());
    }
  }
}

bool SessionImpl::IsDone(RunId run) const {
  return is_poisoned() || (done_.Has(run) && !pending_cancels_.Has(run));
}

absl::Status SessionImpl::Close() {
  if (absl::Status status = fork_guard_.Check(); !status.ok()) return status;
  if (!streams_.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("Close while ", streams_.size(), " streams are open"));
  }
  if (FinishCancels().ok()) {
    if (absl::Status status = CheckIdle("Close"); !status.ok()) return status;
    return runner_ == nullptr ? absl::OkStatus() : FinishDeviceWork();
  }
  Backoff backoff;
  const Deadline deadline(options_.timeout);
  const Deadline farewell(std::min(options_.timeout, kFarewellTime));
  while (!Settle()) {
    if (farewell.Passed() && !runner_->has_operations()) break;
    if (deadline.Passed()) {
      return absl::DeadlineExceededError(
          absl::StrCat("operations of the failed runs are still under way after ",
                       absl::FormatDuration(options_.timeout)));
    }
    backoff.Pause();
  }
  return absl::OkStatus();
}

PlanOptions SessionImpl::PlanOptionsNow() const {
  PlanOptions options;
  options.bucket_bytes = options_.bucket_bytes;
  options.max_in_flight = max_in_flight_;
  options.node_of_rank = fabric_->node_of_rank();
  options.slots = budget_.slots;
  options.slot_bytes = budget_.slot_bytes;
  options.cache_bytes = cache_bytes_;
  options.relay = options_.relay;
  return options;
}

// All ranks have to plan alike, also where their hosts are not.
int64_t SessionImpl::SmallestCacheShare() const {
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (int other = 0; other < size(); ++other) {
    int64_t share = 0;
    SLUICE_CHECK(absl::SimpleAtoi(agreement_.payload(other), &share),
                 "not what a rank says of its cache");
    smallest = std::min(smallest, share);
  }
  return smallest;
}

absl::Status SessionImpl::Plan(const TransferSpec& spec, const PlanHash& hash,
                               std::unique_ptr<CompiledTransfer>* transfer) {
  if (absl::Status status = ValidateSpec(spec, size()); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<CompiledTransfer>> made =
      CompiledTransfer::Make(spec, PlanOptionsNow(), rank(), hash.all);
  if (!made.ok()) return made.status();
  (*made)->memory = runner_->MemoryRulesFor(options_.accelerator.get());
  if (absl::Status status = runner_->Prepare(made->get()); !status.ok()) return status;
  *transfer = *std::move(made);
  return absl::OkStatus();
}

CompiledTransfer* SessionImpl::Find(const Transfer* transfer) const {
  for (const auto& [number, owned] : transfers_) {
    if (owned.get() == transfer) return owned.get();
  }
  return nullptr;
}

absl::Status SessionImpl::CheckUsable() const {
  if (absl::Status status = fork_guard_.Check(); !status.ok()) return status;
  return poison_;
}

TransferRun* SessionImpl::FindRun(RunId id) const {
  for (const auto& run : runs_) {
    if (run->id() == id) return run.get();
  }
  return nullptr;
}

absl::Status SessionImpl::CheckRun(RunId id) const {
  if (id >= 1 && id <= last_run_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("there is no run ", id));
}

absl::Status SessionImpl::CheckIdle(absl::string_view call) const {
  if (runs_.empty()) return absl::OkStatus();
  std::vector<std::string> runs;
  for (const auto& run : runs_) runs.push_back(absl::StrCat(run->id()));
  return absl::FailedPreconditionError(
      absl::StrCat(call, " while runs are in flight: ", absl::StrJoin(runs, ", ")));
}

std::unique_ptr<TransferRun> SessionImpl::TakeRun(const CompiledTransfer& transfer) {
  for (std::unique_ptr<TransferRun>& run : spare_runs_) {
    if (&run->transfer() != &transfer) continue;
    std::swap(run, spare_runs_.back());
    std::unique_ptr<TransferRun> taken = std::move(spare_runs_.back());
    spare_runs_.pop_back();
    return taken;
  }
  return std::make_unique<TransferRun>(&transfer, &events_);
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(std::unique_ptr<Fabric> fabric,
                                                         const SessionOptions& options) {
  if (fabric == nullptr) return absl::InvalidArgumentError("no fabric");
  auto session = std::make_unique<SessionImpl>(std::move(fabric), options);
  if (absl::Status status = session->Open(); !status.ok()) return status;
  if (!options.progress_thread) return session;
  return ThreadedSession::Create(std::move(session));
}

}  // namespace sluice
