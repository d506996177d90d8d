// Beginning an epoch, and its versions one after the other.
#include "sync/epoch.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "sluice/status.h"
#include "transport/deadline.h"

namespace sluice::bench {
namespace {

constexpr int64_t kNsOfMicrosecond = 1000;

}  // namespace

SyncEpoch::SyncEpoch(SyncState* state, std::unique_ptr<Session> session)
    : state_(state), session_(std::move(session)) {
  for (const WorldMember& member : state_->world->epoch_members()) {
    ++(member.role == kTrainer ? trainers_ : servers_);
  }
}

Place SyncEpoch::OwnPlace() const { return {servers_, session_->rank() - trainers_}; }

absl::Status SyncEpoch::Run() {
  absl::Status status = Begin();
  if (status.ok()) state_->tell_ready(trainers_, servers_);
  while (status.ok() && next_ <= last_version()) {
    status = Prepare();
    if (status.ok()) status = AwaitBegin();
    if (has_ended_) return status;
    if (status.ok()) status = RunVersion();
    if (status.ok() && EndsHere()) break;
  }
  while (status.ok() && catch_up_ != nullptr && !catch_up_->is_over()) {
    status = Breathe();
    std::this_thread::yield();
  }
  if (!status.ok()) return status;
  // Nobody leaves before all have come to the end.
  const auto rows = Swap(Word::kEnd);
  return rows.status();
}

bool SyncEpoch::Close() {
  if (target_ != nullptr) target_->set_version(0);
  if (!session_->Close().ok()) {
    if (state_->is_trainer) {
      given_ = std::move(state_->newest);
      state_->filled = 0;
    }
    return false;
  }
  catch_up_ = nullptr;
  if (state_->spare == nullptr) state_->spare = std::move(target_);
  return true;
}

absl::Status SyncEpoch::Begin() {
  SLUICE_ASSIGN_OR_RETURN(exchange_, Exchange::Create(session_.get()));
  SLUICE_ASSIGN_OR_RETURN(
      const auto rows,
      exchange_->Swap(OwnRow(Word::kWait), [](const sluice::Run& run) { return run.Wait(); }));
  SLUICE_RETURN_IF_ERROR(CheckAlike(rows));
  int64_t reached = last_version();
  bool is_new = true;
  for (const SyncRow& row : rows) {
    if (row.reached == SyncRow::kNew) continue;
    is_new = false;
    reached = std::min(reached, row.reached);
  }
  next_ = is_new ? 1 : reached + 1;
  is_new_ = is_new;
  // It has not come to all, and comes again.
  if (state_->untold && state_->untold->version >= next_) state_->untold = std::nullopt;
  Tell(rows);
  // On all members, so that all have the error.
  SLUICE_ASSIGN_OR_RETURN(trainer_layouts_, state_->weights->OfTrainers(trainers_));
  SLUICE_ASSIGN_OR_RETURN(server_layouts_, state_->weights->OfServers(trainers_, servers_));
  if (next_ > last_version()) return absl::OkStatus();
  absl::Status status = ConnectWeights();
  return status.ok() ? StartCatchUp(rows) : status;
}

absl::Status SyncEpoch::CheckAlike(absl::Span<const SyncRow> rows) const {
  const std::vector<WorldMember> members = state_->world->epoch_members();
  for (size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].alike == rows[0].alike) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(members[i].Describe(), " was given another --model, --tensors, --system, ",
                     "--versions or --seed than ", members[0].Describe()));
  }
  return absl::OkStatus();
}

absl::Status SyncEpoch::ConnectWeights() {
  SLUICE_RETURN_IF_ERROR(Prepare());
  ConnectSpec own;
  if (state_->is_trainer) state_->newest->Give(trainer_layouts_, session_->rank(), &own.sources);
  for (const Layouts& side : server_layouts_) {
    if (target_ != nullptr) target_->Give(side, session_->rank(), &own.targets);
  }
  bound_ = target_.get();
  SLUICE_ASSIGN_OR_RETURN(weights_, Connect(session_.get(), own));
  return absl::OkStatus();
}

absl::Status SyncEpoch::StartCatchUp(absl::Span<const SyncRow> rows) {
  std::vector<Held> held;
  for (const SyncRow& row : rows.subspan(static_cast<size_t>(trainers_))) {
    held.push_back({row.held_version, {row.held_servers, row.held_index}});
  }
  SLUICE_ASSIGN_OR_RETURN(const auto plan,
                          PlanCatchUp(*state_->weights, trainers_, held, next_ - 1));
  if (!plan.has_value()) return absl::OkStatus();
  catches_up_ = plan->is_target;
  std::shared_ptr<Holding> from;
  std::shared_ptr<Holding> to;
  if (!state_->is_trainer) {
    if (state_->newest != nullptr && state_->newest->version() == next_ - 1) from = state_->newest;
    if (catches_up_[static_cast<size_t>(OwnPlace().index)]) {
      SLUICE_ASSIGN_OR_RETURN(to, Holding::Make(*state_->weights, server_layouts_, session_->rank(),
                                                state_->options->seed, &state_->shelf, OwnPlace()));
    }
  }
  SLUICE_ASSIGN_OR_RETURN(
      catch_up_, CatchUp::Start(session_.get(), *plan, next_ - 1, std::move(from), std::move(to)));
  return absl::OkStatus();
}

absl::Status SyncEpoch::Prepare() {
  if (state_->is_trainer) {
    if (state_->newest == nullptr) {
      SLUICE_ASSIGN_OR_RETURN(
          state_->newest, Holding::Make(*state_->weights, {&trainer_layouts_, 1}, session_->rank(),
                                        state_->options->seed, &state_->shelf));
    }
    if (state_->filled == next_) return absl::OkStatus();
    // An epoch that ends meanwhile leaves some tensors of either version.
    state_->filled = 0;
    for (size_t t = 0; t < state_->newest->tensors(); ++t) {
      state_->newest->Fill(t, next_);
      SLUICE_RETURN_IF_ERROR(Breathe());
    }
    state_->filled = next_;
    return absl::OkStatus();
  }
  if (target_ != nullptr) return absl::OkStatus();
  if (state_->spare != nullptr && state_->spare->place() == OwnPlace()) {
    target_ = std::move(state_->spare);
    target_->Poison();
  } else {
    state_->spare = nullptr;
    SLUICE_ASSIGN_OR_RETURN(target_,
                            Holding::Make(*state_->weights, server_layouts_, session_->rank(),
                                          state_->options->seed, &state_->shelf, OwnPlace()));
  }
  if (weights_ == nullptr || bound_ == target_.get()) return absl::OkStatus();
  bound_ = target_.get();
  return weights_->Rebind({}, target_->Views());
}

absl::Status SyncEpoch::AwaitBegin() {
  Word word = Word::kWait;
  if (is_first()) {
    SLUICE_RETURN_IF_ERROR(PauseFirst());
    word = NextWord();
  }
  auto rows = Swap(word);
  while (rows.ok() && rows->front().word == static_cast<int64_t>(Word::kWait)) rows = Swap(word);
  if (!rows.ok()) return rows.status();
  has_ended_ = rows->front().word == static_cast<int64_t>(Word::kEnd);
  if (has_ended_) return absl::OkStatus();
  state_->begun = next_;
  state_->untold = Totals(*rows, /*catch_up=*/false);
  return absl::OkStatus();
}

// Those that have joined come in after the next version. Before the first one, at once: servers
// that have come together need not wait for each other. Without a store nobody joins.
Word SyncEpoch::NextWord() {
  const auto joiners = state_->world->Joiners();
  if (!joiners.ok() || joiners->empty()) return Word::kBegin;
  if (is_new_) return Word::kEnd;
  state_->world->EndEpoch(next_).IgnoreError();
  return Word::kBegin;
}

// A version that comes again comes at once.
absl::Status SyncEpoch::PauseFirst() {
  const absl::Duration pause = absl::Milliseconds(state_->options->pause_ms);
  const Deadline end(state_->begun < next_ ? pause : absl::ZeroDuration());
  // Sooner than the others take it for silent.
  const absl::Duration silence = absl::Seconds(state_->options->timeout_s) / 4;
  Deadline heard(silence);
  while (!end.Passed()) {
    SLUICE_RETURN_IF_ERROR(Breathe());
    absl::SleepFor(std::min(absl::Milliseconds(2), end.Left()));
    if (!heard.Passed()) continue;
    if (const auto rows = Swap(Word::kWait); !rows.ok()) return rows.status();
    heard = Deadline(silence);
  }
  return absl::OkStatus();
}

absl::Status SyncEpoch::RunVersion() {
  const int64_t start_ns = MonotonicNs();
  SLUICE_ASSIGN_OR_RETURN(const auto run, weights_->Start({.version = next_}));
  is_timed_ = true;
  absl::Status came = Await(run);
  is_timed_ = false;
  if (!came.ok()) return came;
  SyncVersion& version = *state_->untold;
  version.own_us = std::max<int64_t>(1, (MonotonicNs() - start_ns) / kNsOfMicrosecond);
  version.ended_us = UnixUs();
  int64_t wrong = 0;
  SLUICE_RETURN_IF_ERROR(Verify(&wrong));
  state_->reached = next_;
  state_->time_us = version.own_us;
  state_->wrong = wrong;
  if (!state_->is_trainer) {
    target_->set_version(next_);
    std::swap(state_->newest, target_);
    // A catch-up may still come from it.
    if (target_ != nullptr && target_.use_count() == 1) state_->spare = std::move(target_);
    target_ = nullptr;
  }
  ++next_;
  return absl::OkStatus();
}

absl::Status SyncEpoch::Verify(int64_t* wrong) {
  const Holding& holding = state_->is_trainer ? *state_->newest : *target_;
  for (size_t t = 0; t < holding.tensors(); ++t) {
    *wrong += holding.CountWrong(t, next_);
    SLUICE_RETURN_IF_ERROR(Breathe());
  }
  return absl::OkStatus();
}

bool SyncEpoch::EndsHere() const {
  if (next_ > last_version()) return true;
  const auto end = state_->world->EpochEndsAfter();
  // A store that is gone says no more, and the epoch goes on.
  return end.ok() && end->has_value() && **end < next_;
}

// Any wait carries on what is under way. Only who catches up wants to know when it has come.
absl::Status SyncEpoch::Await(const sluice::Run& run) {
  while (catch_up_ != nullptr && catch_up_->to() != nullptr && !catch_up_->is_over() &&
         !run.IsDone()) {
    SLUICE_RETURN_IF_ERROR(Breathe());
    std::this_thread::yield();
  }
  return run.Wait();
}

absl::Status SyncEpoch::Breathe() {
  SLUICE_RETURN_IF_ERROR(session_->Poll());
  if (catch_up_ == nullptr || catch_up_->is_over()) return absl::OkStatus();
  SLUICE_RETURN_IF_ERROR(catch_up_->Step(/*may_verify=*/!is_timed_));
  const std::shared_ptr<Holding>& to = catch_up_->to();
  if (catch_up_->is_over() && to != nullptr &&
      (state_->newest == nullptr || state_->newest->version() < to->version())) {
    state_->newest = to;
  }
  return absl::OkStatus();
}

}  // namespace sluice::bench
