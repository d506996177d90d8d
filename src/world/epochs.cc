// Lists of members, by number.
#include "world/epochs.h"

#include <algorithm>
#include <map>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sluice {
namespace {

// How many lists of older epochs stay, for members that are about to look at one.
constexpr int64_t kListsKept = 16;

std::string IdsText(absl::Span<const Member> members) {
  std::string text;
  for (const Member& member : members) {
    absl::StrAppend(&text, text.empty() ? "" : ",", member.id);
  }
  return text;
}

// The members of a list, as far as they are present.
Epoch Recognize(absl::string_view ids, const Roster& roster) {
  std::map<absl::string_view, const Member*> present;
  for (const Member& member : roster.attendance().present) present.emplace(member.id, &member);
  Epoch epoch;
  for (const absl::string_view id : absl::StrSplit(ids, ',')) {
    if (id == roster.own().id) epoch.rank = static_cast<int>(epoch.members.size());
    const auto found = present.find(id);
    if (found == present.end()) {
      epoch.is_whole = false;
      epoch.members.emplace_back();
      epoch.members.back().id = std::string(id);
    } else {
      epoch.members.push_back(*found->second);
    }
  }
  return epoch;
}

// What each role lacks.
absl::StatusOr<std::vector<std::string>> Lacks(const Attendance& attendance,
                                               absl::Span<const RoleSize> at_least) {
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
  for (const Member& member : attendance.present) --wanted[member.role];
  std::vector<std::string> lacks;
  for (const auto& [role, count] : wanted) {
    if (count > 0) lacks.push_back(absl::StrCat(count, " of role ", role));
  }
  return lacks;
}

}  // namespace

std::string Epochs::ListKey(int64_t number) const {
  return absl::StrCat(world_, "/epoch/", number, "/members");
}
std::string Epochs::BegunKey() const { return absl::StrCat(world_, "/epoch/begun"); }

absl::Status Epochs::WaitForEnough(absl::Span<const RoleSize> at_least, const TimeLimit& limit) {
  absl::Duration wait = absl::ZeroDuration();
  while (true) {
    if (absl::Status status = roster_->Look(wait); !status.ok()) return status;
    const absl::StatusOr<std::vector<std::string>> lacks = Lacks(roster_->attendance(), at_least);
    if (!lacks.ok()) return lacks.status();
    if (lacks->empty()) return absl::OkStatus();
    if (limit.Passed()) {
      return absl::DeadlineExceededError(absl::StrCat("the next epoch lacks ", NamesText(*lacks),
                                                      " after ",
                                                      absl::FormatDuration(limit.length())));
    }
    wait = std::clamp(limit.Left(), absl::Milliseconds(1), Roster::kLook);
  }
}

absl::StatusOr<int64_t> Epochs::NextNumber() {
  const absl::StatusOr<std::string> begun = store_->Get(BegunKey(), absl::ZeroDuration());
  if (!begun.ok() && !absl::IsDeadlineExceeded(begun.status())) return begun.status();
  int64_t number = 0;
  if (begun.ok() && (!absl::SimpleAtoi(*begun, &number) || number < 0)) {
    return absl::DataLossError("what the store says of epochs is garbage");
  }
  return std::max(passed_ + 1, number);
}

absl::StatusOr<Epoch> Epochs::Agree(absl::Span<const RoleSize> at_least, const TimeLimit& limit) {
  while (true) {
    if (absl::Status status = WaitForEnough(at_least, limit); !status.ok()) return status;
    const absl::StatusOr<int64_t> number = NextNumber();
    if (!number.ok()) return number.status();
    const absl::StatusOr<std::string> list =
        store_->CompareSet(ListKey(*number), "", IdsText(roster_->attendance().present));
    if (!list.ok()) return list.status();
    Epoch epoch = Recognize(*list, *roster_);
    if (epoch.rank >= 0 && !epoch.is_whole) {
      // It may have come since the last look.
      if (absl::Status status = roster_->Look(absl::ZeroDuration()); !status.ok()) return status;
      epoch = Recognize(*list, *roster_);
    }
    epoch.number = *number;
    if (epoch.rank >= 0) return epoch;
    Pass(epoch);
  }
}

void Epochs::Begin(const Epoch& epoch) {
  Pass(epoch);
  if (epoch.rank != 0) return;
  static_cast<void>(store_->Set(BegunKey(), absl::StrCat(epoch.number)));
  if (epoch.number > kListsKept) {
    static_cast<void>(store_->Set(ListKey(epoch.number - kListsKept), ""));
  }
}

}  // namespace sluice
