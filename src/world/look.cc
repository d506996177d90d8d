// One look at all keys of a world.
#include "world/look.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "tensor/error_text.h"
#include "world/attendance.h"
#include "world/epochs.h"
#include "world/waiting_call.h"

namespace sluice {
namespace {

constexpr absl::string_view kSays = "/says/";

// The value, or an empty text where there is none.
absl::StatusOr<std::string> ValueOf(Store& store, const std::string& key) {
  absl::StatusOr<std::string> value = store.Get(key, absl::ZeroDuration());
  return absl::IsDeadlineExceeded(value.status()) ? std::string() : value;
}

}  // namespace

std::string SaysKey(absl::string_view world, absl::string_view role, int rank) {
  return absl::StrCat(world, kSays, role, "/", absl::StrFormat("%06d", rank));
}

absl::StatusOr<WorldLook> LookAtWorld(Store& store, absl::string_view world) {
  SLUICE_ASSIGN_OR_RETURN(const StoreEntries members, store.List(MembersPrefix(world)));
  SLUICE_ASSIGN_OR_RETURN(const StoreEntries said, store.List(absl::StrCat(world, kSays)));
  SLUICE_ASSIGN_OR_RETURN(const StoreEntries waits, store.List(WaitsPrefix(world)));
  SLUICE_ASSIGN_OR_RETURN(const std::string begun, ValueOf(store, EpochBegunKey(world)));
  WorldLook look;
  if (!absl::SimpleAtoi(begun, &look.epoch)) look.epoch = 0;
  SLUICE_ASSIGN_OR_RETURN(const std::string list, ValueOf(store, EpochListKey(world, look.epoch)));
  const std::set<std::string> in_epoch = absl::StrSplit(list, ',');
  const std::map<std::string, std::string> says(said.begin(), said.end());
  std::map<std::string, std::string> waits_of;
  for (const auto& [key, meeting] : waits) {
    waits_of.emplace(absl::StripPrefix(key, WaitsPrefix(world)), meeting);
  }

  const Attendance attendance = TakeAttendance(members);
  look.missing = attendance.missing;
  const auto add = [&](const StoredMember& member, bool alive) {
    MemberLook one;
    one.member = member.ToWorldMember(alive);
    one.in_epoch = in_epoch.count(member.id) > 0;
    if (const auto waits_in = waits_of.find(member.id); waits_in != waits_of.end()) {
      one.waits_in = waits_in->second;
    }
    const auto words = says.find(SaysKey(world, member.role, member.rank));
    // A member that was here before may have left words of its own.
    absl::string_view rest = words == says.end() ? absl::string_view() : words->second;
    if (absl::ConsumePrefix(&rest, member.id + "\n")) one.says = static_cast<std::string>(rest);
    look.members.push_back(std::move(one));
  };
  for (const StoredMember& member : attendance.present) add(member, true);
  for (const StoredMember& member : attendance.lost) add(member, false);
  return look;
}

}  // namespace sluice
