// Joining, and fabrics of all members.
#include "sluice/world.h"

#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "sluice/error.h"
#include "tensor/error_text.h"
#include "tensor/stable_hash.h"
#include "transport/deadline.h"
#include "transport/say_once.h"
#include "world/epochs.h"
#include "world/fabric_maker.h"
#include "world/meeting.h"
#include "world/roster.h"
#include "world/seat.h"
#include "world/waiting_call.h"
#include "world/world_options.h"

namespace sluice {
namespace {

// So often one call of NextEpoch sees a member unreachable that the store has not lost.
constexpr int kUnexplainedMax = 3;

// Between two looks whether a store that is gone is there again.
constexpr absl::Duration kStorePause = absl::Milliseconds(100);
constexpr size_t kSaidBytesMax = 1024;

uint64_t Hash(absl::string_view text) {
  StableHash hash;
  hash.AddText(text);
  return hash.value();
}

class JoinedWorld final : public World {
 public:
  JoinedWorld(WorldOptions options, std::unique_ptr<Seat> seat)
      : options_(std::move(options)), seat_(std::move(seat)) {}

  ~JoinedWorld() override {
    // A store that is gone would be waited for.
    if (!roster().is_held()) return;
    if (!has_met_) TellWhoWaits();
    seat_->Clear();
  }

  int rank() const override { return roster().own().rank; }

  absl::StatusOr<std::vector<WorldMember>> members() override {
    SLUICE_RETURN_IF_ERROR(LookNow());
    return WhoHasCome(roster().attendance());
  }

  absl::StatusOr<std::vector<std::string>> missing() override {
    SLUICE_RETURN_IF_ERROR(LookNow());
    return roster().attendance().missing;
  }

  absl::Status WaitForAll(absl::Duration timeout) override {
    const Deadline limit(timeout);
    absl::Status status;
    do {
      status = roster().WaitForAll(limit);
    } while (!status.ok() && IsToGoOn(&status, limit));
    return status;
  }

  absl::StatusOr<std::unique_ptr<Fabric>> MakeFabric(const MakeFabricOptions& options) override {
    const Deadline limit(options.timeout.value_or(options_.timeout));
    while (true) {
      absl::StatusOr<std::unique_ptr<Fabric>> fabric = TryFabric(limit);
      if (fabric.ok()) return fabric;
      // A member of an earlier world has left. All that wait have heard so.
      if (absl::IsAborted(fabric.status()) && !limit.Passed()) continue;
      absl::Status status = fabric.status();
      if (!IsToGoOn(&status, limit)) return status;
    }
  }

  absl::StatusOr<std::unique_ptr<Fabric>> NextEpoch(const EpochOptions& options) override {
    const Deadline limit(options.timeout.value_or(options_.timeout));
    while (true) {
      absl::StatusOr<std::unique_ptr<Fabric>> fabric = TryEpoch(options, limit);
      if (fabric.ok()) return fabric;
      absl::Status status = fabric.status();
      if (!IsToGoOn(&status, limit) && !HasStoreAgain(&status, limit)) return status;
    }
  }

  int64_t epoch() const override { return epoch_.number; }

  std::vector<WorldMember> epoch_members() const override {
    std::vector<WorldMember> members;
    for (const StoredMember& member : epoch_.members) members.push_back(member.ToWorldMember(true));
    return members;
  }

  absl::Status EndEpoch(int64_t after_version) override {
    if (epoch_.number == 0) return NoEpoch();
    return Lost(epochs().End(epoch_.number, after_version));
  }

  absl::StatusOr<absl::optional<int64_t>> EpochEndsAfter() override {
    if (epoch_.number == 0) return NoEpoch();
    auto version = epochs().EndsAfter(epoch_.number);
    if (!version.ok()) return Lost(version.status());
    return version;
  }

  absl::StatusOr<std::vector<WorldMember>> Joiners() override {
    SLUICE_RETURN_IF_ERROR(LookNow());
    std::set<std::string> known = {roster().own().id};
    for (const StoredMember& member : epoch_.members) known.insert(member.id);
    std::vector<WorldMember> joiners;
    for (const StoredMember& member : roster().attendance().present) {
      if (known.count(member.id) == 0) joiners.push_back(member.ToWorldMember(true));
    }
    return joiners;
  }

  absl::Status Say(absl::string_view text) override {
    if (text.empty() || text.size() > kSaidBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("a member says ", text.size(), " bytes; it may say 1 to ", kSaidBytesMax));
    }
    seat_->Say(text);
    return absl::OkStatus();
  }

  int FabricRank(const std::string& role, int rank) const override {
    return FabricRankIn(roster().attendance().roles, role, rank);
  }

  std::string store_address() const override { return seat_->door.address; }

 private:
  Roster& roster() const { return seat_->roster; }
  Epochs& epochs() const { return seat_->epochs; }
  Store& store() const { return *seat_->door.store; }

  // Before the first member can have done with a fabric, and comes to make the next world.
  absl::Status NoteMet(int rank) { return rank == 0 ? seat_->NoteMet() : absl::OkStatus(); }

  // Whether the call goes on at another store: the world at whose store this member waits was an
  // earlier one, and has ended. Nothing has been agreed with anybody yet. May change the error.
  bool IsToGoOn(absl::Status* status, const Deadline& limit) {
    if (has_met_ || !seat_->follows || options_.own_store != nullptr) return false;
    if (limit.Passed() || !IsStoreGone(store())) return false;
    WorldOptions options = options_;
    options.store_timeout = std::min(options.store_timeout, limit.Left());
    return TakeSeat(std::move(options), status);
  }

  bool TakeSeat(WorldOptions options, absl::Status* status) {
    FormerRanks former = {.own = rank(), .others = {}};
    for (const StoredMember& member : epoch_.members) {
      if (member.role == options_.role && member.rank != former.own) {
        former.others.insert(member.rank);
      }
    }
    absl::StatusOr<std::unique_ptr<Seat>> seat =
        Seat::Take(std::move(options), epochs().passed(), former);
    *status = seat.status();
    if (seat.ok()) seat_ = *std::move(seat);
    return status->ok();
  }

  // Whether a call goes on that has failed because this member's store was gone. Waits for the
  // store, and registers anew at one that was started anew. The members then agree on another
  // epoch. May change the error.
  bool HasStoreAgain(absl::Status* status, const Deadline& limit) {
    if (options_.own_store != nullptr || !IsStoreGone(store())) return false;
    LongWait long_wait;
    while (!limit.Passed()) {
      const absl::Status answer = store().Get("any", absl::ZeroDuration()).status();
      if (answer.ok() || absl::IsDeadlineExceeded(answer)) return true;
      if (absl::IsFailedPrecondition(answer)) {
        WorldOptions options = options_;
        options.store_timeout = limit.Left();
        return TakeSeat(std::move(options), status);
      }
      if (!absl::IsUnavailable(answer)) {
        *status = answer;
        return false;
      }
      long_wait.Look([&] { return absl::StrCat("the store: ", answer.message()); });
      absl::SleepFor(std::min(limit.Left(), kStorePause));
    }
    return false;
  }

  absl::Status LookNow() { return Lost(roster().Look(absl::ZeroDuration())); }

  // The error of a call that does not go to another store.
  absl::Status Lost(const absl::Status& status) {
    if (!absl::IsFailedPrecondition(status) || !IsStoreGone(store())) return status;
    return absl::UnavailableError(
        absl::StrCat(status.message(), "; the next epoch joins the new one"));
  }

  // This member leaves, and has made no fabric. Members that wait for this one hear so.
  void TellWhoWaits() {
    if (!roster().Look(absl::ZeroDuration()).ok()) return;
    const std::string list = ListName(roster().attendance().present);
    const std::string prefix =
        MeetingPrefix(options_.name, absl::StrCat(list, "-", seat_->tries[list].count));
    if (!store().Get(CountKey(prefix), absl::ZeroDuration()).ok()) return;
    static_cast<void>(SayFailed(store(), prefix, roster().own(),
                                absl::UnavailableError("it has left, and has made no fabric")));
  }

  absl::StatusOr<std::unique_ptr<Fabric>> TryFabric(const Deadline& limit) {
    SLUICE_RETURN_IF_ERROR(roster().WaitForAll(limit));
    const std::vector<StoredMember> members = roster().attendance().present;
    const std::string list = ListName(members);
    const int rank = FabricRank(options_.role, this->rank());
    SLUICE_RETURN_IF_ERROR(NoteMet(rank));
    Tries& tries = seat_->tries[list];
    while (true) {
      const std::string name = absl::StrCat(list, "-", tries.count);
      Meeting meeting(seat_->door.store, MeetingPrefix(options_.name, name), members, rank);
      // A call that has not come so far is none: the others have not heard of it.
      SLUICE_ASSIGN_OR_RETURN(const bool is_over, meeting.IsOver());
      ++tries.count;
      if (is_over) {
        tries.Keep(meeting);
        continue;
      }
      return Make(&meeting, name, limit, &tries, [&](NeedsStore needs_store) {
        absl::Status status = roster().Check(members, needs_store);
        // A member that has given its card is not of an earlier world.
        const bool has_come = absl::IsAborted(status) && needs_store == NeedsStore::kNo;
        return has_come ? absl::UnavailableError(status.message()) : status;
      });
    }
  }

  absl::StatusOr<std::unique_ptr<Fabric>> TryEpoch(const EpochOptions& options,
                                                   const Deadline& limit) {
    int unexplained = 0;
    while (true) {
      SLUICE_ASSIGN_OR_RETURN(Epoch epoch, epochs().Agree(options.at_least, limit));
      SLUICE_RETURN_IF_ERROR(NoteMet(epoch.rank));
      const std::string name = EpochName(epoch.number);
      Meeting meeting(seat_->door.store, MeetingPrefix(options_.name, name), epoch.members,
                      epoch.rank);
      SLUICE_ASSIGN_OR_RETURN(const bool is_over, meeting.IsOver());
      epochs().Pass(epoch);
      if (is_over) {
        seat_->epoch_tries.Keep(meeting);
        continue;
      }
      if (!epoch.is_whole && meeting.Fail(absl::UnavailableError("a member is gone"))) {
        seat_->epoch_tries.Keep(meeting);
        continue;
      }
      absl::StatusOr<std::unique_ptr<Fabric>> fabric =
          Make(&meeting, name, limit, &seat_->epoch_tries,
               [&](NeedsStore needs_store) { return CheckEpoch(epoch, needs_store); });
      if (fabric.ok()) {
        epochs().Begin(epoch);
        epoch_ = std::move(epoch);
        return fabric;
      }
      // The others may have taken this member for lost, and gone on.
      if (epochs().HasBegunAfter(epoch.number).value_or(false)) continue;
      // Without those that are gone it may work. The links may have noticed before the store.
      bool all_are_there = roster().Check(epoch.members, NeedsStore::kYes).ok();
      if (all_are_there && absl::IsUnavailable(fabric.status())) {
        static_cast<void>(roster().Look(Roster::kLook));
        all_are_there = roster().Check(epoch.members, NeedsStore::kYes).ok();
      }
      if (!all_are_there) continue;
      // A member that was stopped for longer than its lease is there again, and was lost meanwhile.
      if (!absl::IsUnavailable(fabric.status()) || ++unexplained == kUnexplainedMax) {
        ErrorFields fields = FieldsOf(fabric.status());
        fields.epoch = epoch.number;
        return WithFields(fabric.status(), fields);
      }
    }
  }

  // The list of members that a meeting of MakeFabric is named after.
  static std::string ListName(absl::Span<const StoredMember> members) {
    std::string list;
    for (const StoredMember& member : members) absl::StrAppend(&list, member.id, ",");
    return absl::StrCat(absl::Hex(Hash(list), absl::kZeroPad16));
  }

  // Whether another member waits for this one in a meeting of this name, to which this one has yet
  // to come. `own` is the meeting that this one waits in.
  absl::StatusOr<bool> IsAwaitedElsewhere(const std::string& own, const std::string& name) {
    const int64_t number = EpochNumber(name);
    const bool is_same_call = (number > 0) == (EpochNumber(own) > 0);
    if (is_same_call) return false;
    if (number > 0) return epochs().IsAwaited(number);
    const std::pair<std::string, std::string> parts = absl::StrSplit(name, absl::MaxSplits('-', 1));
    int count = 0;
    if (parts.first != ListName(roster().attendance().present)) return false;
    return absl::SimpleAtoi(parts.second, &count) && seat_->tries[parts.first].count <= count;
  }

  // FailedPrecondition: a member of the meeting waits in another call for this one, as this one
  // waits for it.
  absl::Status CheckCalls(const Meeting& meeting, const std::string& name, WaitingCall* waiting) {
    SLUICE_ASSIGN_OR_RETURN(const auto others, waiting->Others());
    for (const StoredMember& member : meeting.members()) {
      const auto other = others.find(member.id);
      if (other == others.end()) continue;
      SLUICE_ASSIGN_OR_RETURN(const bool is_awaited, IsAwaitedElsewhere(name, other->second));
      if (!is_awaited) continue;
      const bool is_epoch = EpochNumber(name) > 0;
      absl::Status status = absl::FailedPreconditionError(absl::StrCat(
          member.Describe(), " waits in ", is_epoch ? "MakeFabric" : "NextEpoch", ", and ",
          roster().own().Describe(), " in ", is_epoch ? "NextEpoch" : "MakeFabric",
          ": all members make the same calls in the same order"));
      EndOther(other->second, status);
      return status;
    }
    return absl::OkStatus();
  }

  // This member is about to leave its own call, and would not be seen in it any more.
  void EndOther(const std::string& name, const absl::Status& status) {
    const std::string prefix = MeetingPrefix(options_.name, name);
    const auto word = SayFailed(store(), prefix, roster().own(), status);
    if (!word.ok()) return;
    Tries& tries =
        EpochNumber(name) > 0 ? seat_->epoch_tries : seat_->tries[name.substr(0, name.find('-'))];
    tries.keys.push_back(WordKey(prefix));
  }

  static absl::Status NoEpoch() {
    return absl::FailedPreconditionError("this member has had no epoch: NextEpoch makes one");
  }

  // Whether there is still somebody to wait for.
  absl::Status CheckEpoch(const Epoch& epoch, NeedsStore needs_store) {
    absl::Status status = roster().Check(epoch.members, needs_store);
    if (!status.ok() || needs_store == NeedsStore::kNo) return status;
    SLUICE_ASSIGN_OR_RETURN(const bool begun, epochs().HasBegunAfter(epoch.number));
    return begun ? absl::AbortedError("the others have begun a later epoch") : absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Fabric>> Make(Meeting* meeting, const std::string& name,
                                               const Deadline& limit, Tries* tries,
                                               MembersCheck check) {
    FabricMakerOptions options;
    options.wires = options_.wires;
    options.bind = options_.bind;
    options.first_host = seat_->door.own_host;
    options.secret = absl::StrCat(seat_->secret, " ", name);
    options.id = Hash(options.secret);
    WaitingCall waiting(seat_->door.store, options_.name, roster().own().id, name, options_.lease);
    absl::StatusOr<std::unique_ptr<Fabric>> fabric =
        MakeMembersFabric(meeting, options, limit, [&](NeedsStore needs_store) {
          absl::Status status = check(needs_store);
          if (!status.ok() || needs_store == NeedsStore::kNo) return status;
          return CheckCalls(*meeting, name, &waiting);
        });
    tries->Keep(*meeting);
    // All members have come to the end of this try, so nobody needs what was left by older ones.
    if (fabric.ok()) tries->Clear(store());
    has_met_ = has_met_ || fabric.ok();
    return fabric;
  }

  const WorldOptions options_;
  std::unique_ptr<Seat> seat_;
  bool has_met_ = false;  // this member has had a fabric
  Epoch epoch_;           // the last one that has begun
};

}  // namespace

absl::StatusOr<std::unique_ptr<World>> World::Join(const WorldOptions& options) {
  SLUICE_RETURN_IF_ERROR(CheckWorldOptions(options));
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Seat> seat, Seat::Take(options, 0));
  return std::make_unique<JoinedWorld>(options, std::move(seat));
}

}  // namespace sluice
