// Lists of members, by number.
#include "world/epochs.h"

#include <algorithm>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tensor/error_text.h"
#include "transport/say_once.h"
#include "world/meeting.h"
#include "world/store/store_check.h"

namespace sluice {
namespace {

// So many older epochs keep their lists and words, for members that are about to look at one.
constexpr int64_t kEpochsKept = 16;
constexpr absl::string_view kEpochName = "epoch-";

std::string IdsText(absl::Span<const StoredMember> members) {
  std::string text;
  for (const StoredMember& member : members) {
    absl::StrAppend(&text, text.empty() ? "" : ",", member.id);
  }
  return text;
}

// The members of a list, as far as they are present.
Epoch Recognize(absl::string_view ids, const Roster& roster) {
  std::map<absl::string_view, const StoredMember*> present;
  for (const StoredMember& member : roster.attendance().present)
    present.emplace(member.id, &member);
  Epoch epoch;
  for (const absl::string_view id : absl::StrSplit(ids, ',')) {
    if (id == roster.own().id) epoch.rank = static_cast<int>(epoch.members.size());
    const auto found = present.find(id);
    if (found == present.end()) {
      epoch.is_whole = false;
      epoch.members.emplace_back();
      epoch.members.back().id = static_cast<std::string>(id);
    } else {
      epoch.members.push_back(*found->second);
    }
  }
  return epoch;
}

// Members that are wanted and not there.
struct Lack {
  std::vector<std::string> by_role;  // "2 of role server"
  size_t members = 0;
};
absl::StatusOr<Lack> FindLack(const Attendance& attendance, absl::Span<const RoleSize> at_least) {
  std::map<std::string, int> wanted;
  for (const RoleSize& role : attendance.roles) wanted[role.role] = std::max(role.size, 1);
  for (const RoleSize& role : at_least) {
    const auto known = wanted.find(role.role);
    if (known == wanted.end() || role.size < 0 || role.size > known->second) {
      return absl::InvalidArgumentError(
          absl::StrCat("an epoch cannot have at least ", role.size, " members of role \"",
                       role.role, "\": ", known == wanted.end() ? 0 : known->second, " declared"));
    }
    known->second = role.size;
  }
  for (const StoredMember& member : attendance.present) --wanted[member.role];
  Lack lack;
  for (const auto& [role, count] : wanted) {
    if (count <= 0) continue;
    lack.by_role.push_back(absl::StrCat(count, " of role ", role));
    lack.members += static_cast<size_t>(count);
  }
  return lack;
}

}  // namespace

void RaiseBegun(Store& store, absl::string_view world, int64_t number) {
  const std::string own = absl::StrCat(number);
  std::string before;
  while (true) {
    absl::StatusOr<std::string> now = store.CompareSet(EpochBegunKey(world), before, own);
    if (!now.ok() || *now == own) return;
    int64_t known = 0;
    if (absl::SimpleAtoi(*now, &known) && known >= number) return;
    before = *std::move(now);
  }
}

std::string EpochName(int64_t number) { return absl::StrCat(kEpochName, number); }

int64_t EpochNumber(absl::string_view name) {
  int64_t number = 0;
  const bool is_epoch = absl::ConsumePrefix(&name, kEpochName) && absl::SimpleAtoi(name, &number);
  return is_epoch ? number : 0;
}

std::string EpochBegunKey(absl::string_view world) { return absl::StrCat(world, "/epoch/begun"); }

std::string EpochListKey(absl::string_view world, int64_t number) {
  return absl::StrCat(world, "/epoch/", number, "/members");
}

std::string Epochs::EndKey(int64_t number) const {
  return absl::StrCat(world_, "/epoch/", number, "/end");
}

absl::Status Epochs::WaitForEnough(absl::Span<const RoleSize> at_least, const Deadline& limit) {
  absl::Duration wait = absl::ZeroDuration();
  LongWait long_wait;
  while (true) {
    SLUICE_RETURN_IF_ERROR(roster_->Look(wait));
    SLUICE_ASSIGN_OR_RETURN(const Lack lack, FindLack(roster_->attendance(), at_least));
    if (lack.members == 0) return absl::OkStatus();
    if (limit.Passed()) {
      const std::vector<std::string>& missing = roster_->attendance().missing;
      // Names help where each of the absent is wanted, and not where more may come than have to.
      const bool names_help = missing.size() == lack.members;
      return absl::DeadlineExceededError(
          absl::StrCat("the next epoch lacks ", NamesText(lack.by_role), " after ",
                       DurationText(limit.timeout()),
                       names_help ? absl::StrCat("; not there: ", NamesText(missing)) : "",
                       " in the ", roster_->WorldInWords()));
    }
    long_wait.Look([this] { return roster_->WaitedFor(); });
    roster_->Pause(limit);
    wait = std::clamp(limit.Left(), absl::Milliseconds(1), Roster::kLook);
  }
}

absl::StatusOr<int64_t> Epochs::Begun() {
  const absl::StatusOr<std::string> begun =
      store_->Get(EpochBegunKey(world_), absl::ZeroDuration());
  if (absl::IsDeadlineExceeded(begun.status())) return 0;
  if (!begun.ok()) return begun.status();
  int64_t number = 0;
  if (absl::SimpleAtoi(*begun, &number) && number >= 0) return number;
  return absl::DataLossError("what the store says of epochs is garbage");
}

absl::StatusOr<bool> Epochs::HasBegunAfter(int64_t number) {
  SLUICE_ASSIGN_OR_RETURN(const int64_t begun, Begun());
  return begun > number;
}

absl::StatusOr<bool> Epochs::IsAwaited(int64_t number) {
  if (number <= passed_) return false;
  const absl::StatusOr<std::string> list = store_->Get(ListKey(number), absl::ZeroDuration());
  if (absl::IsDeadlineExceeded(list.status())) return false;
  if (!list.ok()) return list.status();
  return Recognize(*list, *roster_).rank >= 0;
}

absl::StatusOr<Epoch> Epochs::Agree(absl::Span<const RoleSize> at_least, const Deadline& limit) {
  while (true) {
    SLUICE_RETURN_IF_ERROR(WaitForEnough(at_least, limit));
    // After a lost lease this member may not be seen yet. It would write a list without itself.
    if (!roster_->is_present() && !limit.Passed()) {
      roster_->Pause(limit);
      continue;
    }
    SLUICE_ASSIGN_OR_RETURN(const int64_t begun, Begun());
    const int64_t number = std::max(passed_ + 1, begun);
    SLUICE_ASSIGN_OR_RETURN(
        const std::string list,
        store_->CompareSet(ListKey(number), "", IdsText(roster_->attendance().present)));
    Epoch epoch = Recognize(list, *roster_);
    if (epoch.rank >= 0 && !epoch.is_whole) {
      // It may have come since the last look.
      SLUICE_RETURN_IF_ERROR(roster_->Look(absl::ZeroDuration()));
      epoch = Recognize(list, *roster_);
    }
    epoch.number = number;
    if (epoch.rank >= 0) return epoch;
    Pass(epoch);
  }
}

void Epochs::Begin(const Epoch& epoch) {
  Pass(epoch);
  // Each member says it: one that says it alone may be lost before it does.
  RaiseBegun(*store_, world_, epoch.number);
  if (epoch.rank == 0) RemoveUpTo(epoch.number - kEpochsKept);
}

// Numbers may have gaps, and members that were lost have left what they had said.
void Epochs::RemoveUpTo(int64_t number) {
  if (number <= 0) return;
  const std::string prefix = absl::StrCat(world_, "/epoch/");
  const absl::StatusOr<StoreEntries> kept = store_->List(prefix);
  if (!kept.ok()) return;
  for (const auto& [key, value] : *kept) {
    const absl::string_view rest = absl::StripPrefix(key, prefix);
    int64_t old = 0;
    if (!absl::SimpleAtoi(rest.substr(0, rest.find('/')), &old) || old > number) continue;
    const absl::StatusOr<StoreEntries> cards = store_->List(MeetingPrefix(world_, EpochName(old)));
    if (!cards.ok()) return;
    for (const auto& [card, bytes] : *cards) static_cast<void>(store_->Set(card, ""));
    static_cast<void>(store_->Set(key, ""));
  }
}

absl::Status Epochs::End(int64_t number, int64_t after_version) {
  return store_->CompareSet(EndKey(number), "", absl::StrCat(after_version)).status();
}

absl::StatusOr<absl::optional<int64_t>> Epochs::EndsAfter(int64_t number) {
  const absl::StatusOr<std::string> word = store_->Get(EndKey(number), absl::ZeroDuration());
  if (absl::IsDeadlineExceeded(word.status())) return absl::optional<int64_t>();
  if (!word.ok()) return word.status();
  int64_t version = 0;
  if (absl::SimpleAtoi(*word, &version)) return absl::optional<int64_t>(version);
  return absl::DataLossError("what the store says of the end of an epoch is garbage");
}

}  // namespace sluice
