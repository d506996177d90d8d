// Coming to a store, and leaving nothing there.
#include "world/seat.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "world/member.h"
#include "world/store/store_greeting.h"
#include "world/time_limit.h"

namespace sluice {
namespace {

constexpr size_t kSecretBytes = 32;

// A value below this key: all members of the world have come once.
std::string MetKey(absl::string_view world) { return absl::StrCat(world, "/met"); }

}  // namespace

void Tries::Keep(const Meeting& meeting) {
  const std::vector<std::string> own = meeting.OwnKeys();
  keys.insert(keys.end(), own.begin(), own.end());
}

void Tries::Clear(Store& store) {
  for (const std::string& key : keys) static_cast<void>(store.Set(key, ""));
  keys.clear();
}

bool IsStoreGone(Store& store) {
  const absl::Status status = store.Get("any", absl::ZeroDuration()).status();
  return !status.ok() && !absl::IsDeadlineExceeded(status);
}

Seat::Seat(const std::string& name, StoreDoor opened, std::string key,
           std::unique_ptr<Registration> registration, bool is_later)
    : door(std::move(opened)),
      secret(std::move(key)),
      roster(door.store, name, std::move(registration)),
      epochs(door.store, name, &roster),
      follows(is_later),
      name_(name) {}

absl::StatusOr<std::unique_ptr<Seat>> Seat::Take(WorldOptions options) {
  const TimeLimit limit(options.store_timeout);
  while (true) {
    absl::StatusOr<StoreDoor> door = OpenStoreDoor(options);
    if (!door.ok()) return door.status();
    const std::shared_ptr<Store> store = door->store;
    absl::StatusOr<std::unique_ptr<Seat>> seat = TakeAt(options, *std::move(door));
    const bool may_try = options.own_store == nullptr && !limit.Passed();
    if (seat.ok() || !may_try || !IsStoreGone(*store)) return seat;
    options.store_timeout = std::max(limit.Left(), absl::Milliseconds(1));
  }
}

absl::StatusOr<std::unique_ptr<Seat>> Seat::TakeAt(const WorldOptions& options, StoreDoor door) {
  // Before the others can see this member: they may all have come then.
  const absl::Status met = door.store->Get(MetKey(options.name), absl::ZeroDuration()).status();
  if (!met.ok() && !absl::IsDeadlineExceeded(met)) return met;
  absl::StatusOr<StoredMember> own = OwnMember(options);
  if (!own.ok()) return own.status();
  absl::StatusOr<std::unique_ptr<Registration>> registration =
      Registration::Make(door.store, options.name, *std::move(own), options.lease);
  if (!registration.ok()) return registration.status();
  const absl::StatusOr<std::string> random = RandomHex(kSecretBytes);
  if (!random.ok()) return random.status();
  const absl::StatusOr<std::string> secret =
      door.store->CompareSet(absl::StrCat(options.name, "/secret"), "", *random);
  if (!secret.ok()) return secret.status();
  // The store tells the secret in the clear: alone it is not enough to be a rank.
  const absl::StatusOr<std::string> key = MakeStoreProof(door.token, "links", *secret);
  if (!key.ok()) return key.status();
  auto seat = std::make_unique<Seat>(options.name, std::move(door), *key, *std::move(registration),
                                     met.ok());
  // Roles or sizes in conflict: an error, which gives the place back.
  if (absl::Status status = seat->roster.Look(absl::ZeroDuration()); !status.ok()) return status;
  return seat;
}

absl::Status Seat::NoteMet() { return door.store->Set(MetKey(name_), "1"); }

void Seat::Clear() {
  for (auto& [list, each] : tries) each.Clear(*door.store);
  epoch_tries.Clear(*door.store);
}

}  // namespace sluice
