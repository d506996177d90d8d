// The beginning of a session, one round of its progress, and its end.
#include "session/session_impl.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "device/cache_share.h"
#include "session/base/backoff.h"
#include "session/base/open_device.h"
#include "session/limits.h"
#include "session/progress_thread.h"
#include "session/run_transport.h"
#include "session/session_report.h"
#include "tensor/error_text.h"
#include "tensor/stable_hash.h"
#include "transport/deadline.h"

namespace sluice {
namespace {

// How long Close stays for ranks that have not parted from this one, when nothing is under way
// here. Operations of those ranks with this rank may end only meanwhile.
constexpr absl::Duration kFarewellTime = absl::Seconds(5);

// How long a caller sleeps at once, and how soon it is to wait again to be in the same wait.
constexpr absl::Duration kSleep = absl::Seconds(1);
constexpr int64_t kSameWaitNs = 3'000'000'000;

int64_t AsSigned(uint64_t hash) { return static_cast<int64_t>(hash); }

// A limit as ranks compare and print it.
int64_t Shown(int64_t limit) { return limit == kNoLimit ? -1 : limit; }

// Ranks tell each other what is wrong with their options, also where that is the timeout.
absl::Duration TimeoutOfPeers(const SessionOptions& options) {
  return options.timeout > absl::ZeroDuration() ? options.timeout : SessionOptions().timeout;
}

int64_t HashOfName(const TransportMaker* maker) {
  StableHash hash;
  hash.AddText(maker == nullptr ? "" : maker->name());
  return AsSigned(hash.value());
}

// Whether this rank can have the options: its own limits, device and thread.
absl::Status CheckOptions(const SessionOptions& options, const Fabric& fabric) {
  if (options.transport != nullptr && options.accelerator == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the transport ", options.transport->name(), " needs an accelerator"));
  }
  if (!options.progress_thread) return absl::OkStatus();
  const absl::Status fits = fabric.CheckOtherThread();
  return fits.ok() ? fits : MakeError(fits.code(), "progress_thread: ", fits);
}

}  // namespace

SessionImpl::SessionImpl(std::unique_ptr<Fabric> fabric, const SessionOptions& options,
                         PlanKind kind)
    : options_(options),
      kind_(kind),
      lock_(options.progress_thread ? std::make_unique<FairLock>() : nullptr),
      peers_(std::move(fabric), TimeoutOfPeers(options), this, options.patience),
      trace_(options.trace_events > 0 ? std::make_unique<JoinedTraceLog>(peers_.rank(), lock_.get())
                                      : nullptr),
      max_in_flight_(MaxInFlightOf(options, peers_.size())),
      streams_({.peers = &peers_,
                .options = &options_,
                .trace = trace_.get(),
                .idle_wait = &idle_wait_,
                .lock = lock_.get(),
                .pump = [this] { return Pump(); }}),
      checkpoints_(&peers_, &options_) {}

SessionImpl::~SessionImpl() = default;

absl::Status SessionImpl::Open() {
  const absl::StatusOr<Budget> budget = ResolveBudget(options_);
  Proposal proposal;
  proposal.call = "Create";
  proposal.status = budget.status();
  // Bytes that are staged on a device pass no cache.
  proposal.payload = absl::StrCat(options_.accelerator == nullptr ? CacheShareBytes() : 0);
  absl::StatusOr<std::unique_ptr<Device>> device = OpenDevice(options_);
  proposal.status.Update(device.status());
  proposal.status.Update(CheckOptions(options_, *peers_.fabric()));
  proposal.values = {
      {"bucket_bytes (0: automatic)", options_.bucket_bytes.value_or(0)},
      {"max_in_flight (0: automatic)", options_.max_in_flight.value_or(0)},
      {"budget_buckets (-1: no limit)", Shown(options_.budget_buckets)},
      {"budget_bytes (0: automatic, -1: no limit)", Shown(options_.budget_bytes.value_or(0))},
      {"timeout (ns)", absl::ToInt64Nanoseconds(options_.timeout)},
      {"relay", kind_ == PlanKind::kRelay ? 1 : 0},
      {"coalesce", options_.coalesce ? 1 : 0},
      {"the ranks' nodes", AsSigned(HashPlan({}, PlanOptionsNow()).options), false},
      {"the transport", HashOfName(options_.transport.get()), false},
      {"direct", options_.direct ? 1 : 0}};
  if (absl::Status status = peers_.Agree(std::move(proposal)); !status.ok()) return status;
  SLUICE_ASSIGN_OR_RETURN(const int64_t cache_bytes, SmallestCacheShare());
  budget_ = *budget;
  cache_bytes_ = cache_bytes;
  if (absl::Status status = OpenTransfers(*std::move(device)); !status.ok()) return status;
  if (lock_ == nullptr) return absl::OkStatus();
  thread_ = std::make_unique<ProgressThread>(this, lock_.get());
  absl::Status started = thread_->Start();
  return started.ok() ? started : Poison(started);
}

absl::Status SessionImpl::OpenTransfers(std::unique_ptr<Device> device) {
  absl::StatusOr<RunTransport> carrier = OpenRunTransport(&peers_, options_, device.get());
  if (!carrier.ok()) return Poison(carrier.status());
  report_ = MakeSessionReport(*peers_.fabric(), options_, *carrier);
  Transfers::Parts parts;
  parts.device = std::move(device);
  parts.transport = std::move(carrier->transport);
  parts.plan = PlanOptionsNow();
  if (trace_ != nullptr) {
    parts.trace.recorder = trace_->AddRecorder(options_.trace_events);
    parts.trace.log = trace_.get();
    if (options_.accelerator != nullptr) {
      parts.trace.device_track = trace_->AddTrack("device");
      trace_->AddTrack("device, drains");
    }
  }
  transfers_ = std::make_unique<Transfers>(&peers_, &options_, std::move(parts));
  direct_ = carrier->direct;
  return absl::OkStatus();
}

PlanOptions SessionImpl::PlanOptionsNow() const {
  PlanOptions options;
  options.bucket_bytes = options_.bucket_bytes.value_or(0);
  options.max_in_flight = max_in_flight_;
  options.node_of_rank = peers_.fabric()->node_of_rank();
  options.slots = budget_.slots;
  options.slot_bytes = budget_.slot_bytes;
  options.cache_bytes = cache_bytes_;
  options.relay = kind_ == PlanKind::kRelay;
  options.coalesce = options_.coalesce;
  return options;
}

// All ranks have to plan alike, also where their hosts are not.
absl::StatusOr<int64_t> SessionImpl::SmallestCacheShare() {
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (int other = 0; other < peers_.size(); ++other) {
    int64_t share = 0;
    if (!absl::SimpleAtoi(peers_.payload(other), &share)) {
      return Poison(DisagreementError(
          RankInWords(other), " runs another build of Sluice: it does not say what cache it has"));
    }
    smallest = std::min(smallest, share);
  }
  return smallest;
}

// ---- Calls.

absl::StatusOr<Run> SessionImpl::Start(Session* session, Transfer* transfer,
                                       absl::Span<const TensorView> src,
                                       absl::Span<const TensorView> dst, int64_t binding,
                                       const StartOptions& options) {
  SessionImpl* const impl = Of(session);
  SLUICE_ASSIGN_OR_RETURN(const RunId run, impl->UseRuns([&] {
    return impl->transfers_->Start(transfer, src, dst, binding, options);
  }));
  return Run(session, run);
}

absl::StatusOr<bool> SessionImpl::WaitForRun(RunId run, absl::Duration limit) {
  const Deadline deadline(limit);
  SLUICE_RETURN_IF_ERROR(Use([&] { return transfers_->history().Check(run); }));
  while (thread_ != nullptr && !thread_->SleepUntilDone(run, std::min(deadline.Left(), kSleep))) {
    if (limit <= absl::ZeroDuration()) return false;
    const std::unique_lock<FairLock> lock = Lock();
    SayWait(run);
    if (deadline.Passed()) return false;
  }
  const std::unique_lock<FairLock> lock = Lock();
  const RunHistory& history = transfers_->history();
  for (bool first = true;; first = false) {
    // A run that this rank has finished stays finished, whatever happened afterwards. But the other
    // ranks need this one for a Cancel of it.
    if (history.IsOver(run) && (is_poisoned() || !history.IsCancelPending(run))) {
      if (absl::Status status = history.OutcomeOf(run); !status.ok()) return status;
      return true;
    }
    if (is_poisoned()) return Poll();
    // A caller that asks without waiting helps the run on, too.
    if (!first && deadline.Passed()) return false;
    const absl::StatusOr<bool> moved = Advance();
    if (!moved.ok()) continue;
    if (*moved || first) {
      idle_wait_.Reset();
    } else {
      SayWait(run);
      idle_wait_.Pause(awaited(), absl::ToInt64Nanoseconds(deadline.Left()));
    }
  }
}

void SessionImpl::SayWait(RunId run) {
  const int64_t now_ns = MonotonicNs();
  const int64_t gap_ns = now_ns - std::exchange(wait_.looked_ns, now_ns);
  const int64_t moves = transfers_->moves();
  if (run != wait_.run || moves != wait_.moves || gap_ns > kSameWaitNs) {
    wait_.run = run;
    wait_.moves = moves;
    wait_.since_ns = now_ns;
  }
  wait_.line.Look(wait_.since_ns, now_ns, [&]() -> std::string {
    const std::string answers = peers_.watch()->Describe(now_ns).text();
    return answers.empty() ? "" : absl::StrCat("run ", run, " (", answers, ")");
  });
}

absl::StatusOr<std::unique_ptr<Stream>> SessionImpl::OpenStream(const StreamOptions& options,
                                                                const InjectedDelay& delay) {
  if (is_closed_) return absl::FailedPreconditionError("OpenStream after Close");
  auto stream = CallAll("OpenStream", [&] { return streams_.Open(options, delay); });
  WakeThread();
  return stream;
}

// ---- Progress.

absl::Status SessionImpl::BeginCall(absl::string_view call) {
  absl::Status status = AdvanceWhile([this] { return transfers_->HasCollectives(); });
  return status.ok() ? transfers_->CheckIdle(call) : status;
}

absl::Status SessionImpl::AdvanceWhile(const std::function<bool()>& is_owed) {
  Backoff backoff;
  while (!is_poisoned() && is_owed()) {
    transfers_->AwaitCollectives(true);
    if (Advance().value_or(false)) {
      backoff.Reset();
    } else {
      backoff.Pause();
    }
  }
  transfers_->AwaitCollectives(false);
  return peers_.poison();
}

absl::Status SessionImpl::FinishDeviceWork() {
  Backoff backoff;
  const Deadline deadline(options_.timeout);
  while (!is_poisoned() && transfers_->is_device_busy()) {
    if (deadline.Passed()) {
      return Poison(MakeError(absl::StatusCode::kDeadlineExceeded, "the device of ",
                              RankInWords(peers_.rank()),
                              " is still at work for runs that have ended after ",
                              absl::FormatDuration(options_.timeout)));
    }
    if (absl::Status status = Advance().status(); !status.ok()) return status;
    backoff.Pause();
  }
  return peers_.poison();
}

absl::Status SessionImpl::Poll() {
  if (!is_poisoned()) return Advance().status();
  Settle();
  return peers_.poison();
}

// For a consumer that waits for its stream.
absl::Status SessionImpl::Pump() {
  if (is_poisoned()) return Poll();
  SLUICE_ASSIGN_OR_RETURN(const bool moved, Advance());
  if (moved) {
    idle_wait_.Reset();
  } else {
    idle_wait_.Pause(awaited(), next_due_ns() - MonotonicNs());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> SessionImpl::Advance() {
  if (absl::Status status = peers_.CheckAlarm(); !status.ok()) return status;
  const bool streamed = has_streams() && streams_.Advance();
  if (!transfers_->is_active()) return streamed;
  const absl::StatusOr<bool> moved = transfers_->Advance();
  return moved.ok() ? *moved || streamed : moved;
}

Awaited SessionImpl::awaited() const {
  return transfers_->AwaitsRanks() ? Awaited::kRanks : streams_.awaited();
}

// ---- The end.

void SessionImpl::Fail(const absl::Status& status) {
  if (transfers_ != nullptr) transfers_->Fail(status);
  streams_.Fail(status);
}

bool SessionImpl::Settle() {
  streams_.Settle();
  return transfers_ == nullptr || transfers_->Settle();
}

absl::Status SessionImpl::Close() {
  absl::Status status = Use([&] { return EndAll(); });
  if (thread_ != nullptr && (status.ok() || is_poisoned())) thread_->Join();
  return status;
}

absl::Status SessionImpl::EndAll() {
  if (has_streams()) {
    return absl::FailedPreconditionError(
        absl::StrCat("Close while ", streams_.open(), " streams are open"));
  }
  if (AdvanceWhile([this] { return transfers_->HasCancels(); }).ok()) {
    if (absl::Status status = transfers_->CheckIdle("Close"); !status.ok()) return status;
    absl::Status status = FinishDeviceWork();
    is_closed_ = is_closed_ || status.ok();
    return status;
  }
  Backoff backoff;
  const Deadline deadline(options_.timeout);
  const Deadline farewell(std::min(options_.timeout, kFarewellTime));
  while (!Settle()) {
    if (farewell.Passed() && !transfers_->has_operations()) break;
    if (deadline.Passed()) {
      return MakeError(absl::StatusCode::kDeadlineExceeded,
                       "operations of the failed runs are still under way on ",
                       RankInWords(peers_.rank()), " after ",
                       absl::FormatDuration(options_.timeout));
    }
    backoff.Pause();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Session>> SessionImpl::Create(std::unique_ptr<Fabric> fabric,
                                                             const SessionOptions& options,
                                                             PlanKind kind) {
  if (fabric == nullptr) return absl::InvalidArgumentError("no fabric");
  auto impl = std::make_unique<SessionImpl>(std::move(fabric), options, kind);
  if (absl::Status status = impl->Open(); !status.ok()) return status;
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

}  // namespace sluice
