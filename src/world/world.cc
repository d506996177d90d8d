// Joining, and fabrics of all members.
#include "sluice/world.h"

#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "world/epochs.h"
#include "world/fabric_maker.h"
#include "world/meeting.h"
#include "world/registration.h"
#include "world/roster.h"
#include "world/store_door.h"
#include "world/time_limit.h"
#include "world/world_options.h"

namespace sluice {
namespace {

constexpr size_t kSecretBytes = 32;

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
    std::vector<WorldMember> members;
    auto lost = roster_.attendance().lost.begin();
    const auto end = roster_.attendance().lost.end();
    for (const Member& member : roster_.attendance().present) {
      while (lost != end &&
             FabricRank(lost->role, lost->rank) < FabricRank(member.role, member.rank)) {
        members.push_back((lost++)->ToWorldMember(false));
      }
      members.push_back(member.ToWorldMember(true));
    }
    while (lost != end) members.push_back((lost++)->ToWorldMember(false));
    return members;
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
    const std::vector<Member> members = roster_.attendance().present;
    std::string list;
    for (const Member& member : members) absl::StrAppend(&list, member.id, ",");
    Tries& tries = tries_[Hash(list)];
    while (true) {
      const std::string name =
          absl::StrCat(absl::Hex(Hash(list), absl::kZeroPad16), "-", tries.count++);
      Meeting meeting(door_.store, absl::StrCat(options_.name, "/fabric/", name, "/"), members,
                      FabricRank(options_.role, options_.rank));
      const absl::StatusOr<bool> is_over = meeting.IsOver();
      if (!is_over.ok()) return is_over.status();
      if (*is_over) continue;
      return Make(&meeting, name, limit, &tries);
    }
  }

  absl::StatusOr<std::unique_ptr<Fabric>> NextEpoch(const EpochOptions& options) override {
    const TimeLimit limit(options.timeout.value_or(options_.timeout));
    while (true) {
      absl::StatusOr<Epoch> epoch = epochs_.Agree(options.at_least, limit);
      if (!epoch.ok()) return epoch.status();
      const std::string name = absl::StrCat("epoch-", epoch->number);
      Meeting meeting(door_.store, absl::StrCat(options_.name, "/fabric/", name, "/"),
                      epoch->members, epoch->rank);
      const absl::StatusOr<bool> is_over = meeting.IsOver();
      if (!is_over.ok()) return is_over.status();
      epochs_.Pass(*epoch);
      if (*is_over) continue;
      if (!epoch->is_whole && meeting.Fail(absl::UnavailableError("a member is gone"))) continue;
      absl::StatusOr<std::unique_ptr<Fabric>> fabric = Make(&meeting, name, limit, &epoch_tries_);
      if (fabric.ok()) {
        epochs_.Begin(*epoch);
        epoch_ = *std::move(epoch);
        return fabric;
      }
      // Without those that are gone it may work. The links may have noticed before the store.
      if (absl::IsUnavailable(fabric.status())) static_cast<void>(roster_.Look(Roster::kLook));
      if (roster_.Check(epoch->members, NeedsStore::kYes).ok()) return fabric;
    }
  }

  int64_t epoch() const override { return epoch_.number; }

  std::vector<WorldMember> epoch_members() const override {
    std::vector<WorldMember> members;
    for (const Member& member : epoch_.members) members.push_back(member.ToWorldMember(true));
    return members;
  }

  int FabricRank(const std::string& role, int rank) const override {
    int first = 0;
    for (const RoleSize& each : roster_.attendance().roles) {
      if (each.role == role) {
        const bool is_known = rank >= 0 && (each.size == 0 ? rank == 0 : rank < each.size);
        return is_known ? first + rank : -1;
      }
      if (each.size == 0) return -1;
      first += each.size;
    }
    return -1;
  }

  std::string store_address() const override { return door_.address; }

 private:
  absl::StatusOr<std::unique_ptr<Fabric>> Make(Meeting* meeting, const std::string& name,
                                               const TimeLimit& limit, Tries* tries) {
    FabricMakerOptions options;
    options.wires = options_.wires;
    options.bind = options_.bind;
    options.secret = absl::StrCat(secret_, " ", name);
    options.id = Hash(options.secret);
    const std::vector<Member>& members = meeting->members();
    absl::StatusOr<std::unique_ptr<Fabric>> fabric = MakeMembersFabric(
        meeting, options, limit,
        [&](NeedsStore needs_store) { return roster_.Check(members, needs_store); });
    const std::vector<std::string> keys = meeting->OwnKeys();
    tries->keys.insert(tries->keys.end(), keys.begin(), keys.end());
    // All members have come to the end of this try, so nobody needs what was left by older ones.
    if (fabric.ok()) Remove(tries);
    return fabric;
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
  std::map<uint64_t, Tries> tries_;  // by the hash of the members' ids
};

}  // namespace

absl::StatusOr<std::unique_ptr<World>> World::Join(const WorldOptions& options) {
  if (absl::Status status = CheckWorldOptions(options); !status.ok()) return status;
  absl::StatusOr<StoreDoor> door = OpenStoreDoor(options);
  if (!door.ok()) return door.status();
  absl::StatusOr<Member> own = OwnMember(options);
  if (!own.ok()) return own.status();
  absl::StatusOr<std::unique_ptr<Registration>> registration =
      Registration::Make(door->store, options.name, *std::move(own), options.lease);
  if (!registration.ok()) return registration.status();
  const absl::StatusOr<std::string> random = RandomHex(kSecretBytes);
  if (!random.ok()) return random.status();
  const absl::StatusOr<std::string> secret =
      door->store->CompareSet(absl::StrCat(options.name, "/secret"), "", *random);
  if (!secret.ok()) return secret.status();
  auto world =
      std::make_unique<JoinedWorld>(options, *std::move(door), *secret, *std::move(registration));
  // Roles or sizes in conflict: an error, which gives the place back.
  const absl::StatusOr<std::vector<std::string>> missing = world->missing();
  if (!missing.ok()) return missing.status();
  return std::unique_ptr<World>(std::move(world));
}

}  // namespace sluice
