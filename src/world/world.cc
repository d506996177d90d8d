// Joining, and fabrics of all members.
#include "sluice/world.h"

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "world/epochs.h"
#include "world/fabric_maker.h"
#include "world/meeting.h"
#include "world/registration.h"
#include "world/roster.h"
#include "world/store/store_proof.h"
#include "world/store_door.h"
#include "world/time_limit.h"
#include "world/waiting_call.h"
#include "world/world_options.h"

namespace sluice {
namespace {

constexpr size_t kSecretBytes = 32;

// So often one call of NextEpoch sees a member unreachable that the store has not lost.
constexpr int kUnexplainedMax = 3;

uint64_t Hash(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Fabrics that some members have tried to make. They are counted by the list of members: whoever
// joins later has counted none of an older list.
struct Tries {
  int count = 0;
  std::vector<std::string> keys;  // that this member has left at the store
};

class JoinedWorld final : public World {
 public:
  JoinedWorld(WorldOptions options, StoreDoor door, std::string secret,
              std::unique_ptr<Registration> registration)
      : options_(std::move(options)),
        door_(std::move(door)),
        secret_(std::move(secret)),
        roster_(door_.store, options_.name, std::move(registration)),
        epochs_(door_.store, options_.name, &roster_) {}

  ~JoinedWorld() override {
    // A store that is gone would be waited for.
    if (!roster_.is_held()) return;
    for (auto& [list, tries] : tries_) Remove(&tries);
    Remove(&epoch_tries_);
  }

  absl::StatusOr<std::vector<WorldMember>> members() override {
    if (absl::Status status = roster_.Look(absl::ZeroDuration()); !status.ok()) return status;
    return WhoHasCome(roster_.attendance());
  }

  absl::StatusOr<std::vector<std::string>> missing() override {
    if (absl::Status status = roster_.Look(absl::ZeroDuration()); !status.ok()) return status;
    return roster_.attendance().missing;
  }

  absl::Status WaitForAll(absl::Duration timeout) override {
    return roster_.WaitForAll(TimeLimit(timeout));
  }

  absl::StatusOr<std::unique_ptr<Fabric>> MakeFabric(const MakeFabricOptions& options) override {
    const TimeLimit limit(options.timeout.value_or(options_.timeout));
    if (absl::Status status = roster_.WaitForAll(limit); !status.ok()) return status;
    const std::vector<StoredMember> members = roster_.attendance().present;
    const std::string list = ListName(members);
    Tries& tries = tries_[list];
    while (true) {
      const std::string name = absl::StrCat(list, "-", tries.count);
      Meeting meeting(door_.store, MeetingPrefix(options_.name, name), members,
                      FabricRank(options_.role, options_.rank));
      // A call that has not come so far is none: the others have not heard of it.
      const absl::StatusOr<bool> is_over = meeting.IsOver();
      if (!is_over.ok()) return is_over.status();
      ++tries.count;
      if (*is_over) {
        Keep(meeting, &tries);
        continue;
      }
      return Make(&meeting, name, limit, &tries,
                  [&](NeedsStore needs_store) { return roster_.Check(members, needs_store); });
    }
  }

  absl::StatusOr<std::unique_ptr<Fabric>> NextEpoch(const EpochOptions& options) override {
    const TimeLimit limit(options.timeout.value_or(options_.timeout));
    int unexplained = 0;
    while (true) {
      absl::StatusOr<Epoch> epoch = epochs_.Agree(options.at_least, limit);
      if (!epoch.ok()) return epoch.status();
      const std::string name = EpochName(epoch->number);
      Meeting meeting(door_.store, MeetingPrefix(options_.name, name), epoch->members, epoch->rank);
      const absl::StatusOr<bool> is_over = meeting.IsOver();
      if (!is_over.ok()) return is_over.status();
      epochs_.Pass(*epoch);
      if (*is_over) {
        Keep(meeting, &epoch_tries_);
        continue;
      }
      if (!epoch->is_whole && meeting.Fail(absl::UnavailableError("a member is gone"))) {
        Keep(meeting, &epoch_tries_);
        continue;
      }
      absl::StatusOr<std::unique_ptr<Fabric>> fabric =
          Make(&meeting, name, limit, &epoch_tries_,
               [&](NeedsStore needs_store) { return CheckEpoch(*epoch, needs_store); });
      if (fabric.ok()) {
        epochs_.Begin(*epoch);
        epoch_ = *std::move(epoch);
        return fabric;
      }
      // The others may have taken this member for lost, and gone on.
      if (epochs_.HasBegunAfter(epoch->number).value_or(false)) continue;
      // Without those that are gone it may work. The links may have noticed before the store.
      bool all_are_there = roster_.Check(epoch->members, NeedsStore::kYes).ok();
      if (all_are_there && absl::IsUnavailable(fabric.status())) {
        static_cast<void>(roster_.Look(Roster::kLook));
        all_are_there = roster_.Check(epoch->members, NeedsStore::kYes).ok();
      }
      if (!all_are_there) continue;
      // A member that was stopped for longer than its lease is there again, and was lost meanwhile.
      if (!absl::IsUnavailable(fabric.status()) || ++unexplained == kUnexplainedMax) return fabric;
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
    return epochs_.End(epoch_.number, after_version);
  }

  absl::StatusOr<absl::optional<int64_t>> EpochEndsAfter() override {
    if (epoch_.number == 0) return NoEpoch();
    return epochs_.EndsAfter(epoch_.number);
  }

  absl::StatusOr<std::vector<WorldMember>> Joiners() override {
    if (absl::Status status = roster_.Look(absl::ZeroDuration()); !status.ok()) return status;
    std::set<std::string> known = {roster_.own().id};
    for (const StoredMember& member : epoch_.members) known.insert(member.id);
    std::vector<WorldMember> joiners;
    for (const StoredMember& member : roster_.attendance().present) {
      if (known.count(member.id) == 0) joiners.push_back(member.ToWorldMember(true));
    }
    return joiners;
  }

  int FabricRank(const std::string& role, int rank) const override {
    return FabricRankIn(roster_.attendance().roles, role, rank);
  }

  std::string store_address() const override { return door_.address; }

 private:
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
    if (number > 0) return epochs_.IsAwaited(number);
    const std::pair<std::string, std::string> parts = absl::StrSplit(name, absl::MaxSplits('-', 1));
    int count = 0;
    if (parts.first != ListName(roster_.attendance().present)) return false;
    return absl::SimpleAtoi(parts.second, &count) && tries_[parts.first].count <= count;
  }

  // FailedPrecondition: a member of the meeting waits in another call for this one, as this one
  // waits for it.
  absl::Status CheckCalls(const Meeting& meeting, const std::string& name, WaitingCall* waiting) {
    const absl::StatusOr<std::map<std::string, std::string>> others = waiting->Others();
    if (!others.ok()) return others.status();
    for (const StoredMember& member : meeting.members()) {
      const auto other = others->find(member.id);
      if (other == others->end()) continue;
      const absl::StatusOr<bool> is_awaited = IsAwaitedElsewhere(name, other->second);
      if (!is_awaited.ok()) return is_awaited.status();
      if (!*is_awaited) continue;
      const bool is_epoch = EpochNumber(name) > 0;
      absl::Status status = absl::FailedPreconditionError(absl::StrCat(
          member.Describe(), " waits in ", is_epoch ? "MakeFabric" : "NextEpoch", ", and ",
          roster_.own().Describe(), " in ", is_epoch ? "NextEpoch" : "MakeFabric",
          ": all members make the same calls in the same order"));
      EndOther(other->second, status);
      return status;
    }
    return absl::OkStatus();
  }

  // This member is about to leave its own call, and would not be seen in it any more.
  void EndOther(const std::string& name, const absl::Status& status) {
    const std::string prefix = MeetingPrefix(options_.name, name);
    const auto word = SayFailed(*door_.store, prefix, roster_.own(), status);
    if (!word.ok()) return;
    Tries& tries = EpochNumber(name) > 0 ? epoch_tries_ : tries_[name.substr(0, name.find('-'))];
    tries.keys.push_back(WordKey(prefix));
  }

  static absl::Status NoEpoch() {
    return absl::FailedPreconditionError("this member has had no epoch: NextEpoch makes one");
  }

  // Whether there is still somebody to wait for.
  absl::Status CheckEpoch(const Epoch& epoch, NeedsStore needs_store) {
    absl::Status status = roster_.Check(epoch.members, needs_store);
    if (!status.ok() || needs_store == NeedsStore::kNo) return status;
    const absl::StatusOr<bool> begun = epochs_.HasBegunAfter(epoch.number);
    if (!begun.ok()) return begun.status();
    return *begun ? absl::AbortedError("the others have begun a later epoch") : absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Fabric>> Make(Meeting* meeting, const std::string& name,
                                               const TimeLimit& limit, Tries* tries,
                                               MembersCheck check) {
    FabricMakerOptions options;
    options.wires = options_.wires;
    options.bind = options_.bind;
    options.first_host = door_.own_host;
    options.secret = absl::StrCat(secret_, " ", name);
    options.id = Hash(options.secret);
    WaitingCall waiting(door_.store, options_.name, roster_.own().id, name, options_.lease);
    absl::StatusOr<std::unique_ptr<Fabric>> fabric =
        MakeMembersFabric(meeting, options, limit, [&](NeedsStore needs_store) {
          absl::Status status = check(needs_store);
          if (!status.ok() || needs_store == NeedsStore::kNo) return status;
          return CheckCalls(*meeting, name, &waiting);
        });
    Keep(*meeting, tries);
    // All members have come to the end of this try, so nobody needs what was left by older ones.
    if (fabric.ok()) Remove(tries);
    return fabric;
  }

  // What this member has left there is to go one day, and what others have that it is to clear.
  static void Keep(const Meeting& meeting, Tries* tries) {
    const std::vector<std::string> keys = meeting.OwnKeys();
    tries->keys.insert(tries->keys.end(), keys.begin(), keys.end());
  }

  void Remove(Tries* tries) {
    for (const std::string& key : tries->keys) static_cast<void>(door_.store->Set(key, ""));
    tries->keys.clear();
  }

  const WorldOptions options_;
  const StoreDoor door_;
  const std::string secret_;
  Roster roster_;
  Epochs epochs_;
  Epoch epoch_;  // the last one that has begun
  Tries epoch_tries_;
  std::map<std::string, Tries> tries_;  // by the name of the list of members
};

}  // namespace

absl::StatusOr<std::unique_ptr<World>> World::Join(const WorldOptions& options) {
  if (absl::Status status = CheckWorldOptions(options); !status.ok()) return status;
  absl::StatusOr<StoreDoor> door = OpenStoreDoor(options);
  if (!door.ok()) return door.status();
  absl::StatusOr<StoredMember> own = OwnMember(options);
  if (!own.ok()) return own.status();
  absl::StatusOr<std::unique_ptr<Registration>> registration =
      Registration::Make(door->store, options.name, *std::move(own), options.lease);
  if (!registration.ok()) return registration.status();
  const absl::StatusOr<std::string> random = RandomHex(kSecretBytes);
  if (!random.ok()) return random.status();
  const absl::StatusOr<std::string> secret =
      door->store->CompareSet(absl::StrCat(options.name, "/secret"), "", *random);
  if (!secret.ok()) return secret.status();
  // The store tells the secret in the clear: alone it is not enough to be a rank.
  const absl::StatusOr<std::string> key = MakeStoreProof(door->token, "links", *secret);
  if (!key.ok()) return key.status();
  auto world =
      std::make_unique<JoinedWorld>(options, *std::move(door), *key, *std::move(registration));
  // Roles or sizes in conflict: an error, which gives the place back.
  const absl::StatusOr<std::vector<std::string>> missing = world->missing();
  if (!missing.ok()) return missing.status();
  return std::unique_ptr<World>(std::move(world));
}

}  // namespace sluice
