// Epochs, and who is lost between them.
#include "sync/member.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "job/ranks.h"
#include "sluice/session.h"
#include "sluice/status.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "sync/epoch.h"
#include "transport/deadline.h"
#include "transport/say_once.h"
#include "workload/json_input.h"

namespace sluice::bench {
namespace {

// How long the store may take to hear that a member is lost, beyond what other members know.
constexpr absl::Duration kNamesWithin = absl::Seconds(2);
// How often the store is asked.
constexpr absl::Duration kStoreLook = absl::Milliseconds(10);
// Failures in a row, without a version between them, of which nobody knows the cause.
constexpr int kFailuresMax = 5;
// How long the last members wait for others before they look whether those have left.
constexpr absl::Duration kLastWait = absl::Seconds(5);
constexpr int64_t kNsOfUs = 1000;
// What it catches up with, while the next one comes, and the one after that.
constexpr int kVersionsOfJoiner = 3;
// A store that does not answer within this time has seen no sync begin.
constexpr absl::Duration kStoreThere = absl::Milliseconds(300);

void SayLine(const std::string& line) {
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

bool IsSameProcess(const WorldMember& a, const WorldMember& b) {
  return a.role == b.role && a.rank == b.rank && a.pid == b.pid && a.host == b.host;
}

// Without line ends behind it. Empty if there is none.
absl::StatusOr<std::string> TokenOf(const WorldOptions& world) {
  if (world.token_file.empty()) return world.token;
  auto token = ReadFile(world.token_file);
  if (token.ok()) token->erase(token->find_last_not_of("\r\n") + 1);
  return token;
}

// How long work on the tensors may take between two looks, beside the timeout: filling and
// verifying are done by slow cores, too.
absl::Duration PatienceFor(const SyncWeights& weights) {
  constexpr int64_t kBytesOfSecond = 256 << 20;
  return absl::Seconds(weights.bytes() / kBytesOfSecond);
}

class SyncMember {
 public:
  SyncMember(const SyncOptions* options, const SyncWeights* weights, SyncReport* report)
      : options_(*options), weights_(*weights), report_(report) {
    state_.options = options;
    state_.weights = weights;
    state_.tell = [this](const SyncVersion& version) { Tell(version); };
    state_.tell_ready = [this](int trainers, int servers) { TellReady(trainers, servers); };
  }

  absl::Status Run(const WorldOptions& world) {
    state_.is_trainer = world.role == kTrainer;
    begun_key_ = absl::StrCat("sluice-bench-sync/", world.name, "/begun");
    if (!state_.is_trainer) StockForJoining(world);
    SLUICE_ASSIGN_OR_RETURN(world_, World::Join(world));
    state_.world = world_.get();
    report_->store = world_->store_address();
    if (report_->rank == 0) {
      SayLine(absl::StrCat("# sync: ", report_->role, " 0 of ", report_->size, ", world at ",
                           report_->store, "\n", VersionHeader()));
    }
    SLUICE_RETURN_IF_ERROR(WaitForBeginning(world));
    while (true) {
      SLUICE_ASSIGN_OR_RETURN(auto session, NextSessionOfAll());
      if (session == nullptr) {
        TellLast();
        break;
      }
      SLUICE_ASSIGN_OR_RETURN(const auto is_over, RunEpoch(std::move(session)));
      if (is_over) break;
    }
    if (!Leads()) return absl::OkStatus();
    // Another sync may meet there. A store that nobody serves any more has forgotten it.
    const auto store = ConnectStore(report_->store, store_options_);
    if (store.ok()) (*store)->Set(begun_key_, "").IgnoreError();
    return absl::OkStatus();
  }

 private:
  // Before the first epoch. Trainer 0 waits until so many servers have come that syncing begins,
  // and then tells the others at the store. Otherwise the first that come would be an epoch by
  // themselves.
  absl::Status WaitForBeginning(const WorldOptions& world) {
    if (Leads()) SLUICE_RETURN_IF_ERROR(WaitForServers());
    SLUICE_ASSIGN_OR_RETURN(store_options_.token, TokenOf(world));
    SLUICE_ASSIGN_OR_RETURN(const auto store, ConnectStore(report_->store, store_options_));
    if (Leads()) return store->Set(begun_key_, "1");
    absl::Status begun = store->Get(begun_key_, options_.wait()).status();
    if (!absl::IsDeadlineExceeded(begun)) return begun;
    return absl::DeadlineExceededError(absl::StrCat("trainer 0 has not begun after --wait-s ",
                                                    options_.wait_s,
                                                    ": it has not come, or waits for others"));
  }

  absl::Status WaitForServers() {
    constexpr absl::Duration kLook = absl::Milliseconds(50);
    const Deadline end(options_.wait());
    LongWait long_wait;
    while (true) {
      SLUICE_ASSIGN_OR_RETURN(const auto has_enough, HasEnough());
      if (has_enough) return absl::OkStatus();
      long_wait.Look([this] {
        const auto missing = world_->missing();
        return missing.ok() ? absl::StrJoin(*missing, ", ") : "";
      });
      if (end.Passed()) {
        const auto missing = world_->missing();
        return absl::DeadlineExceededError(
            absl::StrCat("these members have not come after --wait-s ", options_.wait_s, ": ",
                         missing.ok() ? absl::StrJoin(*missing, ", ") : "nobody knows which"));
      }
      absl::SleepFor(kLook);
    }
  }

  // Of a server that comes to a sync that has begun: takes its memory now. Once it has joined, the
  // others would wait for it.
  // Whatever is wrong, joining says so.
  void StockForJoining(const WorldOptions& world) {
    auto token = TokenOf(world);
    if (!token.ok()) return;
    StoreOptions once;
    once.token = *std::move(token);
    once.connect_timeout = kStoreThere;
    const auto store = ConnectStore(world.store, once);
    if (!store.ok() || !(*store)->Get(begun_key_, absl::ZeroDuration()).ok()) return;
    // How many servers there will be is not known yet. The part of a whole replica is the usual
    // one.
    const auto replica = static_cast<int>(weights_.replica());
    const auto layouts = weights_.OfServers(/*trainers=*/1, replica);
    if (!layouts.ok()) return;
    const auto bytes = Holding::BytesOf(weights_, *layouts, 1 + report_->rank % replica);
    if (bytes.ok()) state_.shelf.Stock(kVersionsOfJoiner, *bytes);
  }

  bool Leads() const { return state_.is_trainer && report_->rank == 0; }
  absl::StatusOr<bool> HasEnough() {
    if (options_.at_least == 0) {
      SLUICE_ASSIGN_OR_RETURN(const auto missing, world_->missing());
      return missing.empty();
    }
    SLUICE_ASSIGN_OR_RETURN(const auto members, world_->members());
    const auto servers = std::count_if(members.begin(), members.end(), [](const WorldMember& m) {
      return m.role == kServer && m.alive;
    });
    return servers >= options_.at_least;
  }

  // Null: the last version has come to all, and the others have left.
  absl::StatusOr<std::unique_ptr<Session>> NextSessionOfAll() {
    SessionOptions session;
    session.timeout = absl::Seconds(options_.timeout_s) + PatienceFor(weights_);
    session.progress_thread = options_.progress_thread;
    EpochOptions epoch;
    epoch.at_least = {{kServer, options_.servers_needed()}};
    const bool is_last = state_.reached == options_.versions;
    const int64_t start_ns = MonotonicNs();
    epoch.timeout = is_last ? std::min(kLastWait, options_.wait()) : options_.wait();
    while (true) {
      if (is_last && HaveOthersLeft()) return nullptr;
      auto next = NextSession(world_.get(), session, epoch);
      if (next.ok() || !is_last || !EndsAll(next.status())) {
        if (!next.ok()) return next.status();
        NoteLost();
        members_ = world_->epoch_members();
        epoch_ = world_->epoch();
        session_ns_ = MonotonicNs();
        session_us_ = (session_ns_ - start_ns) / kNsOfUs;
        return next;
      }
    }
  }

  // Runs one epoch. False: there are more.
  absl::StatusOr<bool> RunEpoch(std::unique_ptr<Session> session) {
    auto epoch = std::make_unique<SyncEpoch>(&state_, std::move(session));
    const absl::Status status = epoch->Run();
    const bool has_lost = !status.ok() && EndsAll(status) && AwaitLost();
    if (!epoch->Close()) kept_.push_back(std::move(epoch));
    if (status.ok()) {
      failures_ = 0;
      return state_.reached == options_.versions;
    }
    if (!EndsAll(status)) return status;
    failures_ = has_lost ? 0 : failures_ + 1;
    if (failures_ > kFailuresMax) return status;
    if (!has_lost) {
      SayLine(absl::StrCat("# ", report_->role, " ", report_->rank, ": epoch ", epoch_,
                           " has failed: ", status.message(), "\n"));
    }
    return false;
  }

  // Names the members of the last epoch that are gone. False: there are none.
  bool NoteLost() {
    const auto there = world_->members();
    if (!there.ok()) return false;
    const auto is_gone = [&](const WorldMember& member) {
      return std::none_of(there->begin(), there->end(), [&](const WorldMember& other) {
        return other.alive && IsSameProcess(member, other);
      });
    };
    const auto gone = std::stable_partition(members_.begin(), members_.end(),
                                            [&](const WorldMember& m) { return !is_gone(m); });
    const bool has_lost = gone != members_.end();
    std::for_each(gone, members_.end(), [this](const WorldMember& m) { AddLost(m); });
    members_.erase(gone, members_.end());
    return has_lost;
  }

  // The same, for a while: the session may know before the store.
  bool AwaitLost() {
    const Deadline end(kNamesWithin);
    while (!NoteLost()) {
      if (end.Passed()) return false;
      absl::SleepFor(kStoreLook);
    }
    return true;
  }

  void AddLost(const WorldMember& member) {
    SyncLost lost;
    lost.member = absl::StrCat(member.role, " ", member.rank);
    lost.process = absl::StrCat("process ", member.pid, " on ", member.host);
    lost.epoch = epoch_;
    lost.version = std::max<int64_t>(state_.reached, 0) + 1;
    lost.noticed_us = UnixUs();
    report_->lost.push_back(lost);
    SayLine(LostLine(*report_, lost));
  }

  // Whether the others have seen the last version come to all members, and have left.
  bool HaveOthersLeft() {
    const auto there = world_->members();
    if (!there.ok()) return true;  // trainer 0 may serve the store
    // Those that have left may have been taken for lost.
    const bool is_alone =
        std::none_of(there->begin(), there->end(), [this](const WorldMember& other) {
          return other.alive && (other.role != report_->role || other.rank != report_->rank);
        });
    if (is_alone) return true;
    return std::any_of(members_.begin(), members_.end(), [&](const WorldMember& member) {
      return std::none_of(there->begin(), there->end(), [&](const WorldMember& other) {
        return other.role == member.role && other.rank == member.rank;
      });
    });
  }

  void Tell(const SyncVersion& version) {
    report_->versions.push_back(version);
    if (report_->rank == 0) SayLine(VersionLine(version));
  }

  // The last version, where no exchange has told that it has come to all.
  // The others have left, so it has come to them. Their times are not known here.
  void TellLast() {
    if (!state_.untold || state_.reached < state_.untold->version) return;
    state_.untold->time_us = std::max(state_.untold->time_us, state_.time_us);
    state_.untold->wrong += state_.wrong;
    state_.tell(*state_.untold);
    state_.untold = std::nullopt;
  }

  void TellReady(int trainers, int servers) {
    const SyncEpochTimes times = {epoch_, trainers, servers, session_us_,
                                  (MonotonicNs() - session_ns_) / kNsOfUs};
    report_->epochs.push_back(times);
    if (report_->rank == 0) SayLine(EpochLine(times));
  }

  const SyncOptions& options_;
  const SyncWeights& weights_;
  SyncReport* const report_;
  std::unique_ptr<World> world_;
  StoreOptions store_options_;
  std::string begun_key_;  // at the store: trainer 0 has told the others
  SyncState state_;
  std::vector<WorldMember> members_;              // of the last epoch, without those that are lost
  int64_t session_ns_ = 0;                        // when its session was there
  int64_t session_us_ = 0;                        // how long that took
  int64_t epoch_ = 0;                             // its number
  int failures_ = 0;                              // in a row, without a known cause
  std::vector<std::unique_ptr<SyncEpoch>> kept_;  // whose memory others may still use
};

}  // namespace

absl::Status RunMember(const SyncOptions& options, const SyncWeights& weights,
                       const WorldOptions& world, SyncReport* report) {
  return SyncMember(&options, &weights, report).Run(world);
}

}  // namespace sluice::bench
