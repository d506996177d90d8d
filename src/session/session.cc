// The session: one rank's agreement with the others, its transfers, and what happens on failure.
#include "sluice/session.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/device.h"
#include "session/agreement.h"
#include "session/backoff.h"
#include "session/clock.h"
#include "session/compiled_transfer.h"
#include "session/limits.h"
#include "session/runner.h"
#include "session/watch.h"
#include "transport/deadline.h"
#include "transport/transport.h"

namespace sluice {
namespace {

// Run numbers are part of bucket ids.
constexpr int64_t kRunMax = (int64_t{1} << kRunBits) - 1;

int64_t AsSigned(uint64_t hash) { return static_cast<int64_t>(hash); }

class SessionImpl : public Session, private Witness {
 public:
  SessionImpl(std::unique_ptr<Fabric> fabric, const SessionOptions& options)
      : fabric_(std::move(fabric)),
        options_(options),
        agreement_(fabric_.get()),
        watch_(fabric_.get(), options.timeout) {
    watch_.set_witness(this);
  }

  // Compares the options on all ranks, then opens what runs need.
  absl::Status Open() {
    absl::StatusOr<int64_t> slots = ResolveSlots(options_);
    Proposal proposal;
    proposal.call = "Create";
    proposal.status = slots.status();
    proposal.values = {
        {"bucket_bytes", options_.bucket_bytes},
        {"max_in_flight", options_.max_in_flight},
        {"budget_buckets", options_.budget_buckets},
        {"budget_bytes", options_.budget_bytes},
        {"timeout (ns)", absl::ToInt64Nanoseconds(options_.timeout)},
        {"the ranks' nodes", AsSigned(HashPlan({}, PlanOptionsNow()).options), false}};
    if (absl::Status status = Agree(std::move(proposal)); !status.ok()) return status;
    absl::StatusOr<std::unique_ptr<Transport>> transport = fabric_->OpenTransport();
    if (!transport.ok()) return Poison(transport.status());
    slots_ = *slots;
    runner_ = std::make_unique<Runner>(MakeHostDevice(), *std::move(transport), slots_,
                                       options_.max_in_flight);
    return absl::OkStatus();
  }

  int rank() const override { return fabric_->rank(); }
  int size() const override { return fabric_->size(); }
  const SessionOptions& options() const override { return options_; }
  int64_t slots() const override { return slots_; }

  absl::StatusOr<Transfer*> Compile(const TransferSpec& spec) override {
    if (absl::Status status = CheckUsable(); !status.ok()) return status;
    if (run_ != done_run_) return absl::FailedPreconditionError("Compile while a run is in flight");
    std::unique_ptr<CompiledTransfer> transfer;
    Proposal proposal;
    proposal.call = "Compile";
    const PlanHash hash = HashPlan(spec, PlanOptionsNow());
    proposal.status = Plan(spec, hash, &transfer);
    proposal.values = {{"the number of tensors", static_cast<int64_t>(spec.tensors.size())},
                       {"the tensors' names", AsSigned(hash.names), false},
                       {"the tensors' shapes or dtypes", AsSigned(hash.tensors), false},
                       {"the tensors' meshes, ranks or placements", AsSigned(hash.layouts), false},
                       {"the planning options", AsSigned(hash.options), false}};
    if (absl::Status status = Agree(std::move(proposal)); !status.ok()) return status;
    transfer->number = static_cast<int>(transfers_.size());
    transfers_.push_back(std::move(transfer));
    return transfers_.back().get();
  }

  absl::StatusOr<RunId> Start(Transfer* transfer, absl::Span<const TensorView> src,
                              absl::Span<const TensorView> dst) override {
    if (absl::Status status = CheckUsable(); !status.ok()) return status;
    if (run_ != done_run_) {
      return absl::FailedPreconditionError(absl::StrCat("Start while run ", run_, " is in flight"));
    }
    if (run_ >= kRunMax) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the session has made all its ", kRunMax, " runs"));
    }
    CompiledTransfer* compiled = Find(transfer);
    if (compiled == nullptr) {
      return absl::InvalidArgumentError("Start of a transfer that is not this session's");
    }
    const absl::Status bound = compiled->Bind(src, dst);
    if (compiled->agreed) {
      // The others have begun this run, so it cannot be refused any more.
      if (!bound.ok()) return Poison(bound);
      runner_->Begin(compiled, static_cast<uint64_t>(run_ + 1));
    } else {
      Proposal proposal;
      proposal.call = "Start";
      proposal.status = bound;
      proposal.values = {{"the transfer to start", compiled->number}};
      absl::Status status = agreement_.Start(std::move(proposal), options_.timeout);
      if (!status.ok()) return Poison(status);
      agreeing_on_ = compiled;
    }
    NoteMove();
    return ++run_;
  }

  absl::Status Poll() override {
    if (absl::Status status = CheckUsable(); !status.ok()) return status;
    return Advance().status();
  }

  absl::Status Wait(RunId run) override {
    if (run < 1 || run > run_) {
      return absl::InvalidArgumentError(absl::StrCat("there is no run ", run));
    }
    Backoff backoff;
    while (true) {
      // A run that this rank has finished stays finished, whatever happened afterwards.
      if (run <= done_run_) return run == refused_run_ ? refusal_ : absl::OkStatus();
      if (absl::Status status = CheckUsable(); !status.ok()) return status;
      const absl::StatusOr<bool> moved = Advance();
      if (!moved.ok()) return moved.status();
      if (*moved) {
        backoff.Reset();
      } else {
        backoff.Pause();
      }
    }
  }

  bool IsDone(RunId run) const override {
    return poisoned_.load(std::memory_order_acquire) ||
           run <= done_run_.load(std::memory_order_acquire);
  }

  absl::Status Close() override {
    if (poison_.ok()) {
      if (run_ != done_run_) return absl::FailedPreconditionError("Close while a run is in flight");
      return absl::OkStatus();
    }
    Backoff backoff;
    const Deadline deadline(options_.timeout);
    while (!runner_->Settle()) {
      if (deadline.Passed()) {
        return absl::DeadlineExceededError(
            absl::StrCat("operations of the failed run are still under way after ",
                         absl::FormatDuration(options_.timeout)));
      }
      backoff.Pause();
    }
    return absl::OkStatus();
  }

  SessionCounters counters() const override { return runner_->counters(); }
  void ResetCounters() override { runner_->ResetCounters(); }

 private:
  PlanOptions PlanOptionsNow() const {
    return {options_.bucket_bytes, options_.max_in_flight, fabric_->node_of_rank()};
  }

  absl::Status Plan(const TransferSpec& spec, const PlanHash& hash,
                    std::unique_ptr<CompiledTransfer>* transfer) {
    if (absl::Status status = ValidateSpec(spec, size()); !status.ok()) return status;
    absl::StatusOr<std::unique_ptr<CompiledTransfer>> made =
        CompiledTransfer::Make(spec, PlanOptionsNow(), rank(), hash.all);
    if (!made.ok()) return made.status();
    *transfer = *std::move(made);
    return runner_->Prepare(**transfer);
  }

  CompiledTransfer* Find(const Transfer* transfer) const {
    for (const auto& owned : transfers_) {
      if (owned.get() == transfer) return owned.get();
    }
    return nullptr;
  }

  // Compares across ranks, waiting for them. Poisons only if the ranks are out of step then.
  absl::Status Agree(Proposal proposal) {
    if (absl::Status status = agreement_.Start(std::move(proposal), options_.timeout);
        !status.ok()) {
      return Poison(status);
    }
    Backoff backoff;
    while (!agreement_.Poll()) {
      if (absl::Status status = CheckAlarm(); !status.ok()) return status;
      backoff.Pause();
    }
    if (agreement_.out_of_step()) return Poison(agreement_.outcome());
    return agreement_.outcome();
  }

  absl::Status CheckUsable() const { return poison_; }

  // The first error wins, reaches every rank, and stays.
  absl::Status Poison(const absl::Status& status) {
    if (!poison_.ok()) return poison_;
    watch_.RaiseAlarm(status);
    return TakePoison(status);
  }

  absl::Status TakePoison(const absl::Status& status) {
    poison_ = status;
    if (runner_ != nullptr) runner_->Poison(status);
    poisoned_.store(true, std::memory_order_release);
    return poison_;
  }

  absl::Status CheckAlarm() {
    if (absl::Status status = watch_.Poll(MonotonicNs()); !status.ok()) return Poison(status);
    if (watch_.alarm().ok()) return absl::OkStatus();
    return TakePoison(watch_.alarm());
  }

  // One round of progress; true if anything moved.
  absl::StatusOr<bool> Advance() {
    if (absl::Status status = CheckAlarm(); !status.ok()) return status;
    if (agreeing_on_ != nullptr) return AdvanceAgreement();
    if (!runner_->in_flight()) return false;
    absl::StatusOr<bool> moved = runner_->Poll();
    if (!moved.ok()) return Poison(moved.status());
    if (*moved) {
      NoteMove();
      if (!runner_->in_flight()) done_run_.store(run_, std::memory_order_release);
      return true;
    }
    return CheckStall();
  }

  absl::StatusOr<bool> AdvanceAgreement() {
    if (!agreement_.Poll()) return false;
    CompiledTransfer* transfer = std::exchange(agreeing_on_, nullptr);
    if (agreement_.out_of_step()) return Poison(agreement_.outcome());
    if (!agreement_.outcome().ok()) {
      refusal_ = agreement_.outcome();
      refused_run_ = run_;
      done_run_.store(run_, std::memory_order_release);
      return true;
    }
    transfer->agreed = true;
    runner_->Begin(transfer, static_cast<uint64_t>(run_));
    NoteMove();
    return true;
  }

  void NoteMove() {
    last_look_ns_ = MonotonicNs();
    idle_ns_ = 0;
    watch_.StopAsking();
  }

  BucketReport Report(const BucketQuestion& question) const override {
    const int64_t run = static_cast<int64_t>(question.id.fields().run);
    BucketReport report;
    report.last_run = run_;
    if (run > run_) {
      report.state = BucketState::kRunNotStarted;
    } else if (run <= done_run_) {
      report.state = BucketState::kInStage;
      report.stage = Stage::kDone;
    } else if (runner_->in_flight()) {
      return runner_->Report(question);
    } else {
      report.state = BucketState::kNotFed;
    }
    return report;
  }

  // While nothing moves, asks the members of the oldest bucket why.
  void AskWhy(int64_t now_ns) {
    BucketQuestion question;
    if (runner_->AskAboutOldest(&question, &members_)) watch_.Ask(question, members_, now_ns);
  }

  absl::StatusOr<bool> CheckStall() {
    // A caller that stays away for long has not looked: of such a time little counts, so that one
    // look after it cannot find a stall.
    const int64_t timeout_ns = absl::ToInt64Nanoseconds(options_.timeout);
    const int64_t now_ns = MonotonicNs();
    idle_ns_ += std::min(now_ns - std::exchange(last_look_ns_, now_ns), timeout_ns / 8);
    if (idle_ns_ > timeout_ns / 8) AskWhy(now_ns);
    if (idle_ns_ <= timeout_ns) return false;
    return Poison(absl::DeadlineExceededError(absl::StrCat(
        "rank ", rank(), " saw no progress for ", absl::FormatDuration(options_.timeout), "; ",
        watch_.Describe(now_ns), "; ", runner_->DescribeStall())));
  }

  // Destroyed in reverse order: the runner's transport before its fabric.
  std::unique_ptr<Fabric> fabric_;
  const SessionOptions options_;
  int64_t slots_ = 0;
  Agreement agreement_;
  Watch watch_;
  std::vector<std::unique_ptr<CompiledTransfer>> transfers_;
  std::unique_ptr<Runner> runner_;

  RunId run_ = 0;  // the last one started
  std::atomic<RunId> done_run_ = 0;
  CompiledTransfer* agreeing_on_ = nullptr;
  RunId refused_run_ = 0;  // the last one that was
  absl::Status refusal_;
  int64_t last_look_ns_ = 0;
  int64_t idle_ns_ = 0;       // without progress, as far as this rank has looked
  std::vector<int> members_;  // scratch
  absl::Status poison_;
  std::atomic<bool> poisoned_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Create(std::unique_ptr<Fabric> fabric,
                                                         const SessionOptions& options) {
  if (fabric == nullptr) return absl::InvalidArgumentError("no fabric");
  auto session = std::make_unique<SessionImpl>(std::move(fabric), options);
  if (absl::Status status = session->Open(); !status.ok()) return status;
  return session;
}

}  // namespace sluice
