// The calls of users on transfers.
#include "session/transfer/transfers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "plan/auto_knobs.h"
#include "plan/groups.h"
#include "session/transfer/group_need_text.h"

namespace sluice {
namespace {

// Run numbers are part of bucket ids.
constexpr int64_t kRunMax = (int64_t{1} << kRunBits) - 1;
// The number of runs whose events are kept if nobody takes them.
constexpr int64_t kEventRuns = 4 * Session::kMaxRunsInFlight;

int64_t AsSigned(uint64_t hash) { return static_cast<int64_t>(hash); }

int MaxInFlightIn(const PlanOptions& plan) {
  return plan.max_in_flight != 0 ? plan.max_in_flight
                                 : AutoMaxInFlight(plan.bucket_bytes, plan.slot_bytes);
}

}  // namespace

Transfers::Transfers(Peers* peers, const SessionOptions* options, Parts parts)
    : peers_(peers),
      options_(options),
      plan_options_(parts.plan),
      runner_(std::make_unique<Runner>(std::move(parts.device), std::move(parts.transport),
                                       parts.plan.slots, MaxInFlightIn(parts.plan), parts.trace)),
      stall_clock_(options->timeout, options->patience) {
  peers->watch()->set_witness(this);
}

Transfers::~Transfers() { peers_->watch()->set_witness(nullptr); }

absl::StatusOr<Transfer*> Transfers::Compile(const TransferSpec& spec) {
  std::unique_ptr<CompiledTransfer> transfer;
  Proposal proposal;
  proposal.call = "Compile";
  const PlanHash hash = HashPlan(spec, plan_options_);
  proposal.status = Plan(spec, hash, &transfer);
  proposal.values = {{"the number of tensors", static_cast<int64_t>(spec.tensors.size())},
                     {"the tensors' names", AsSigned(hash.names), false},
                     {"the tensors' shapes or dtypes", AsSigned(hash.tensors), false},
                     {"the tensors' meshes, ranks or placements", AsSigned(hash.layouts), false},
                     {"the planning options", AsSigned(hash.options), false},
                     {"the number of runs started before", history_.last()}};
  if (transfer != nullptr) proposal.payload = TextOf(NeedOf(transfer->plan()));
  CloseImports();
  const absl::Status agreed = peers_->Agree(std::move(proposal));
  if (peers_->poison().ok()) runner_->FreeOutgrown();
  if (!agreed.ok()) {
    // It may be another rank that cannot have it. After a failure of the session nobody asks what
    // there is, and the device may still be at work.
    if (transfer != nullptr && peers_->poison().ok()) runner_->Forget(transfer.get());
    return agreed;
  }
  if (absl::Status status = Cut(transfer.get()); !status.ok()) return status;
  transfer->number = transfers_compiled_++;
  return transfers_.emplace(transfer->number, std::move(transfer)).first->second.get();
}

absl::Status Transfers::Drop(Transfer* transfer) {
  CompiledTransfer* const dropped = Find(transfer);
  Proposal proposal;
  proposal.call = "Drop";
  if (dropped == nullptr) {
    proposal.status = absl::InvalidArgumentError("Drop of a transfer that is not this session's");
  }
  proposal.values = {{"the transfer to drop", dropped == nullptr ? -1 : dropped->number},
                     {"the number of runs started before", history_.last()}};
  // When Drop returns, the tensors' memory is open nowhere.
  CloseImports();
  if (absl::Status status = peers_->Agree(std::move(proposal)); !status.ok()) return status;
  runner_->Forget(dropped);
  transfers_.erase(dropped->number);
  return absl::OkStatus();
}

// Runs have to ask anew which memory the transport may send from.
void Transfers::CloseImports() {
  runner_->CloseImports();
  spare_runs_.clear();
}

absl::Status Transfers::CheckStart(const CompiledTransfer* compiled,
                                   const StartOptions& options) const {
  if (history_.last() - history_.all_over_up_to() >= Session::kMaxRunsInFlight) {
    return absl::FailedPreconditionError(absl::StrCat("Start while ", Session::kMaxRunsInFlight,
                                                      " runs are in flight, from run ",
                                                      history_.all_over_up_to() + 1, " on"));
  }
  if (history_.last() >= kRunMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the session has made all its ", kRunMax, " runs"));
  }
  if (compiled == nullptr) {
    return absl::InvalidArgumentError("Start of a transfer that is not this session's");
  }
  if (!options.stream) return absl::OkStatus();
  if (options_->accelerator == nullptr) {
    return absl::FailedPreconditionError(
        "Start in a stream, but the session was made without an accelerator");
  }
  return options_->accelerator->CheckStream(*options.stream);
}

absl::StatusOr<RunId> Transfers::Start(Transfer* transfer, absl::Span<const TensorView> src,
                                       absl::Span<const TensorView> dst, int64_t binding,
                                       const StartOptions& options) {
  CompiledTransfer* const compiled = Find(transfer);
  if (absl::Status status = CheckStart(compiled, options); !status.ok()) return status;
  std::unique_ptr<TransferRun> run = TakeRun(*compiled);
  run->Reset(history_.last() + 1, options);
  const absl::Status bound = options.refusal.ok() ? run->Bind(src, dst, binding) : options.refusal;
  // The others have begun this run, so it cannot be refused any more.
  if (compiled->agreed && !bound.ok()) return peers_->Poison(bound);
  if (run->in_stream() && bound.ok()) {
    if (absl::Status status = runner_->BeginInStream(run.get()); !status.ok()) {
      return peers_->Poison(status);
    }
  }
  history_.Begin();
  runner_->Add(run.get());
  if (compiled->agreed) {
    Release(run.get());
  } else {
    collectives_.push_back({Collective::Kind::kCompareViews, history_.last(), bound});
  }
  runs_.push_back(std::move(run));
  KeepStep();
  while (!events_.empty() && events_.front().run <= history_.last() - kEventRuns) {
    events_.pop_front();
  }
  NoteMove();
  // The others need not wait for this rank's next call to hear of this one.
  AdvanceCollectives().IgnoreError();
  return history_.last();
}

absl::Status Transfers::Supply(RunId id, int tensor, const TensorView& dst) {
  if (absl::Status status = history_.Check(id); !status.ok()) return status;
  TransferRun* const run = FindRun(id);
  if (run == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("run ", id, " is over"));
  }
  absl::Status status = run->Supply(tensor, dst);
  if (status.ok()) NoteMove();
  return status;
}

absl::Status Transfers::Cancel(RunId id) {
  if (absl::Status status = history_.Check(id); !status.ok()) return status;
  if (!history_.BeginCancel(id)) {
    return absl::FailedPreconditionError(absl::StrCat("run ", id, " has been cancelled before"));
  }
  Collective cancel{Collective::Kind::kCancel, id};
  // By the time that the others ask, it may be forgotten which transfer the run was of.
  if (FindRun(id) == nullptr) cancel.over_after = LastBucketOf(id);
  collectives_.push_back(std::move(cancel));
  NoteMove();
  // The others need not wait for this rank's next call to hear of this one. An error is that of the
  // next call.
  AdvanceCollectives().IgnoreError();
  return absl::OkStatus();
}

bool Transfers::PollEvent(Event* event, RunId* run) {
  while (!events_.empty()) {
    RunEvent next = std::move(events_.front());
    events_.pop_front();
    if (!HoldBackFor(next)) continue;
    *event = std::move(next.event);
    *run = next.run;
    return true;
  }
  return false;
}

// Only now: what the run's stream has got by now is not to wait for the run.
bool Transfers::HoldBackFor(const RunEvent& next) {
  if (next.mark == 0) return true;
  TransferRun* const run = FindRun(next.run);
  if (run == nullptr) return true;  // its stream comes after all of it
  // The device may have come past what has failed.
  if (!peers_->poison().ok()) return false;
  const absl::Status status = run->HoldBack(next.mark);
  if (!status.ok()) peers_->Poison(status).IgnoreError();
  return status.ok();
}

// By what all ranks' plans need, which they have just told each other.
absl::Status Transfers::Cut(CompiledTransfer* transfer) {
  GroupNeed most;
  for (int other = 0; other < peers_->size(); ++other) {
    const absl::StatusOr<GroupNeed> need = NeedFrom(peers_->payload(other), other);
    if (!need.ok()) return peers_->Poison(need.status());
    most = Most(most, *need);
  }
  const absl::Span<const int> nodes = peers_->fabric()->node_of_rank();
  const bool one_node = std::count(nodes.begin(), nodes.end(), nodes[0]) == peers_->size();
  transfer->cut = CutFor(
      most, {.slots = plan_options_.slots,
             .max_in_flight = transfer->plan().max_in_flight,
             .operations = OperationsOfKernel(peers_->size(), one_node, most.operation_bytes)});
  return absl::OkStatus();
}

absl::Status Transfers::Plan(const TransferSpec& spec, const PlanHash& hash,
                             std::unique_ptr<CompiledTransfer>* transfer) {
  if (absl::Status status = ValidateSpec(spec, peers_->size()); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<CompiledTransfer>> made =
      CompiledTransfer::Make(spec, plan_options_, peers_->rank(), hash.all);
  if (!made.ok()) return made.status();
  (*made)->memory = runner_->MemoryRulesFor(options_->accelerator.get());
  if (absl::Status status = runner_->Prepare(made->get()); !status.ok()) return status;
  *transfer = *std::move(made);
  return absl::OkStatus();
}

CompiledTransfer* Transfers::Find(const Transfer* transfer) const {
  for (const auto& [number, owned] : transfers_) {
    if (owned.get() == transfer) return owned.get();
  }
  return nullptr;
}

TransferRun* Transfers::FindRun(RunId id) const {
  for (const auto& run : runs_) {
    if (run->id() == id) return run.get();
  }
  return nullptr;
}

absl::Status Transfers::CheckIdle(absl::string_view call) const {
  if (runs_.empty()) return absl::OkStatus();
  std::vector<std::string> runs;
  for (const auto& run : runs_) runs.push_back(absl::StrCat(run->id()));
  return absl::FailedPreconditionError(
      absl::StrCat(call, " while runs are in flight: ", absl::StrJoin(runs, ", ")));
}

std::unique_ptr<TransferRun> Transfers::TakeRun(const CompiledTransfer& transfer) {
  for (std::unique_ptr<TransferRun>& run : spare_runs_) {
    if (&run->transfer() != &transfer) continue;
    std::swap(run, spare_runs_.back());
    std::unique_ptr<TransferRun> taken = std::move(spare_runs_.back());
    spare_runs_.pop_back();
    return taken;
  }
  return std::make_unique<TransferRun>(&transfer, &events_);
}

}  // namespace sluice
