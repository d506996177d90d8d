// Looks at the store, and what has changed between them.
#include "world/roster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tensor/error_text.h"
#include "transport/say_once.h"
#include "world/store/store_check.h"

namespace sluice {
namespace {

std::string Describe(absl::Span<const StoredMember> members) {
  std::vector<std::string> names;
  names.reserve(members.size());
  for (const StoredMember& member : members) names.push_back(member.Describe());
  return NamesText(names);
}

bool Has(absl::Span<const StoredMember> members, const std::string& id) {
  return std::any_of(members.begin(), members.end(),
                     [&](const StoredMember& member) { return member.id == id; });
}

absl::Status LostError(absl::Span<const StoredMember> lost) {
  return absl::UnavailableError(absl::StrCat(Describe(lost), lost.size() == 1 ? " was" : " were",
                                             " lost: the process has ended, or the "
                                             "store hears nothing of it"));
}

}  // namespace

Roster::Roster(std::shared_ptr<Store> store, std::string world,
               std::unique_ptr<Registration> registration, std::string address)
    : store_(std::move(store)),
      world_(std::move(world)),
      address_(std::move(address)),
      registration_(std::move(registration)) {}

absl::Status Roster::Look(absl::Duration wait) {
  SLUICE_RETURN_IF_ERROR(registration_->Keep());
  SLUICE_ASSIGN_OR_RETURN(
      const StoreView view,
      store_->Watch(MembersPrefix(world_), wait > absl::ZeroDuration() ? version_ : 0, wait));
  version_ = view.version;
  attendance_ = TakeAttendance(own(), view.entries);
  if (attendance_.conflict.ok()) NoteLosses();
  return attendance_.conflict;
}

bool Roster::is_present() const { return Has(attendance_.present, own().id); }

void Roster::NoteLosses() {
  for (const auto& [name, member] : seen_) {
    if (Has(attendance_.lost, member.id)) untold_.emplace(name, member);
  }
  seen_.clear();
  for (const StoredMember& member : attendance_.present) {
    seen_.emplace(member.Name(), member);
    untold_.erase(member.Name());
  }
}

absl::Status Roster::TellLosses() {
  std::vector<StoredMember> lost;
  for (const auto& [name, member] : std::exchange(untold_, {})) lost.push_back(member);
  return lost.empty() ? absl::OkStatus() : LostError(lost);
}

std::string Roster::WorldInWords() const {
  return absl::StrCat("world \"", world_, "\"", address_.empty() ? "" : " at ", address_);
}

std::string Roster::WaitedFor() const {
  const auto first =
      std::find_if(attendance_.present.begin(), attendance_.present.end(),
                   [this](const StoredMember& member) { return member.role == own().role; });
  if (first != attendance_.present.end() && first->id != own().id) return "";
  if (attendance_.missing.empty()) return "";
  return absl::StrCat(NamesText(attendance_.missing), " to join the ", WorldInWords());
}

void Roster::Pause(const Deadline& limit) const {
  const auto members = static_cast<int64_t>(attendance_.present.size());
  const absl::Duration pause = std::min(absl::Microseconds(500) * members, absl::Seconds(1));
  absl::SleepFor(std::min(pause, limit.Left()));
}

absl::Status Roster::WaitForAll(const Deadline& limit) {
  absl::Duration wait = absl::ZeroDuration();
  LongWait long_wait;
  while (true) {
    SLUICE_RETURN_IF_ERROR(Look(wait));
    SLUICE_RETURN_IF_ERROR(TellLosses());
    if (attendance_.complete()) return absl::OkStatus();
    long_wait.Look([this] { return WaitedFor(); });
    if (limit.Passed()) {
      return absl::DeadlineExceededError(absl::StrCat(
          "after ", DurationText(limit.timeout()), " ", NamesText(attendance_.missing),
          attendance_.missing.size() == 1 ? " has" : " have", " not come to the ", WorldInWords()));
    }
    Pause(limit);
    wait = std::clamp(limit.Left(), absl::Milliseconds(1), kLook);
  }
}

absl::Status Roster::Check(absl::Span<const StoredMember> members, NeedsStore needs_store) {
  if (needs_store == NeedsStore::kNo && store_is_gone_) return absl::OkStatus();
  if (absl::Status status = Look(absl::ZeroDuration()); !status.ok()) {
    if (needs_store == NeedsStore::kYes || !absl::IsUnavailable(status)) return status;
    store_is_gone_ = true;
    return absl::OkStatus();
  }
  store_is_gone_ = false;
  std::vector<StoredMember> lost;
  std::vector<StoredMember> left;
  for (const StoredMember& member : members) {
    if (Has(attendance_.present, member.id)) continue;
    (Has(attendance_.lost, member.id) ? lost : left).push_back(member);
  }
  if (!lost.empty()) return LostError(lost);
  if (left.empty()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(Describe(left), " left, or joined anew"));
}

}  // namespace sluice
