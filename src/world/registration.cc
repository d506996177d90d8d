// Leases of places.
#include "world/registration.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensor/error_text.h"
#include "transport/deadline.h"
#include "world/attendance.h"

namespace sluice {
namespace {

// How often a place is tried for that was taken and is free again.
constexpr int kHoldTries = 5;

// How long the end of a process may take to reach the store: the system first ends its connections.
constexpr absl::Duration kEndWait = absl::Seconds(3);

// Waits until nobody has the key, or for so long.
absl::Status AwaitFree(Store& store, const std::string& key, const Deadline& limit) {
  uint64_t version = 0;
  while (true) {
    SLUICE_ASSIGN_OR_RETURN(const StoreView view, store.Watch(key, version, limit.Left()));
    const bool is_held =
        std::any_of(view.entries.begin(), view.entries.end(),
                    [&](const StoreEntries::value_type& entry) { return entry.first == key; });
    if (!is_held || limit.Passed()) return absl::OkStatus();
    version = view.version;
  }
}

// A rank of the member's role that nobody holds, as Registration::Make says. Waits for one. After
// `losses`, when other members were quicker, members choose different ones.
absl::StatusOr<int> FreeRank(Store& store, const std::string& world, const StoredMember& member,
                             const FormerRanks& former, int64_t losses) {
  const Deadline limit(kEndWait);
  uint64_t version = 0;
  while (true) {
    SLUICE_ASSIGN_OR_RETURN(const StoreView view,
                            store.Watch(MembersPrefix(world), version, limit.Left()));
    std::set<absl::string_view> held;
    for (const StoreEntries::value_type& entry : view.entries) held.insert(entry.first);
    std::vector<int> free;
    std::vector<int> best;
    for (int rank = 0; rank < member.size; ++rank) {
      if (held.count(HereKey(world, member.role, rank)) > 0) continue;
      if (rank == former.own) return rank;
      free.push_back(rank);
      if (former.others.count(rank) == 0) best.push_back(rank);
    }
    if (best.empty()) best = free;
    if (!best.empty()) {
      const auto count = static_cast<int64_t>(best.size());
      return best[static_cast<size_t>(losses == 0 ? 0 : (member.number + losses) % count)];
    }
    if (limit.Passed()) {
      return absl::AlreadyExistsError(absl::StrCat("role \"", member.role, "\" has ", member.size,
                                                   " members, and all of them are in this world"));
    }
    version = view.version;
  }
}

// The error of `member` where the place's text is another one's.
absl::Status Taken(const absl::StatusOr<std::string>& text, const StoredMember& member) {
  const absl::StatusOr<StoredMember> holder = text.ok() ? ParseMember(*text) : text.status();
  return absl::AlreadyExistsError(absl::StrCat(
      member.Describe(),
      " cannot join: ", holder.ok() ? holder->Describe() : absl::StrCat("another ", member.Name()),
      " is in this world already"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Registration>> Registration::Make(
    const std::shared_ptr<Store>& store, const std::string& world, StoredMember member,
    absl::Duration lease, const FormerRanks& former) {
  SLUICE_ASSIGN_OR_RETURN(member.number, store->Add(absl::StrCat(world, "/count"), 1));
  const bool is_any = member.rank == kAnyRank;
  for (int64_t losses = 0;; ++losses) {
    if (is_any) {
      SLUICE_ASSIGN_OR_RETURN(member.rank, FreeRank(*store, world, member, former, losses));
    }
    std::unique_ptr<Registration> registration(new Registration(store, world, member, lease));
    const absl::Status status = registration->Hold(is_any ? absl::ZeroDuration() : kEndWait);
    if (status.ok()) return registration;
    if (!is_any || !absl::IsAlreadyExists(status)) return status;
  }
}

absl::Status Registration::Hold(absl::Duration wait) {
  const std::string key = HereKey(world_, member_.role, member_.rank);
  const std::string text = MemberText(member_);
  const Deadline limit(wait);
  for (int tries = 1;; ++tries) {
    absl::StatusOr<std::unique_ptr<StoreLease>> lease = store_->Hold(key, text, lease_length_);
    if (lease.ok()) {
      lease_ = *std::move(lease);
      return store_->Set(SaidKey(world_, member_.role, member_.rank), text);
    }
    if (!absl::IsAlreadyExists(lease.status())) return lease.status();
    const absl::StatusOr<std::string> holder = store_->Get(key, absl::ZeroDuration());
    const bool is_own = holder.ok() && *holder == text;
    bool is_free = absl::IsDeadlineExceeded(holder.status());
    // It may be the place of a process that was killed just now, and this one is its successor.
    if (!is_own && !is_free && !limit.Passed()) {
      SLUICE_RETURN_IF_ERROR(AwaitFree(*store_, key, limit));
      is_free = true;
    }
    if (tries == kHoldTries || (!is_own && !is_free)) return Taken(holder, member_);
    // Its own hold of before, over a connection whose end the store has not noticed yet.
    if (is_own) {
      SLUICE_RETURN_IF_ERROR(store_->CompareSet(key, text, "").status());
    }
  }
}

absl::Status Registration::Keep() {
  if (is_held()) return absl::OkStatus();
  lease_.reset();
  return Hold(absl::ZeroDuration());
}

Registration::~Registration() {
  if (!is_held()) return;
  // Only its own word, lest it takes back a successor's.
  static_cast<void>(
      store_->CompareSet(SaidKey(world_, member_.role, member_.rank), MemberText(member_), ""));
  static_cast<void>(lease_->Release());
}

}  // namespace sluice
