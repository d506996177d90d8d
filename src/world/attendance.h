// Decides who of a world is there, by what lies at the store. No store and no clock of its own.
#ifndef SLUICE_SRC_WORLD_ATTENDANCE_H_
#define SLUICE_SRC_WORLD_ATTENDANCE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "world/member.h"

namespace sluice {

// Keys of the members of a world below its prefix. `here` is held by the member's process. `said`
// stays when the process dies, and goes when it leaves: so a death can be told from a farewell.
std::string MembersPrefix(absl::string_view world);
std::string HereKey(absl::string_view world, absl::string_view role, int rank);
std::string SaidKey(absl::string_view world, absl::string_view role, int rank);

struct Attendance {
  // Not OK: another member, who came before this one, declares other roles or sizes.
  absl::Status conflict;
  std::vector<RoleSize> roles;  // in declared order; sizes as far as anybody has said them
  // In the order of fabric ranks: roles in declared order, then ranks.
  std::vector<StoredMember> present;
  std::vector<StoredMember>
      lost;  // likewise: they came, and their processes are gone without farewell
  std::vector<std::string> missing;  // names, likewise

  bool complete() const { return conflict.ok() && missing.empty(); }
};

// Reads all keys below MembersPrefix, as `own` sees them. The first to come is right about roles
// and sizes: later members that say otherwise do not count, for they fail by themselves.
Attendance TakeAttendance(const StoredMember& own,
                          absl::Span<const StoreEntries::value_type> entries);
// The same as one sees them who is no member.
Attendance TakeAttendance(absl::Span<const StoreEntries::value_type> entries);

// A member's place among all: roles in declared order, then ranks. -1: there is none, or sizes are
// not known.
int FabricRankIn(absl::Span<const RoleSize> roles, absl::string_view role, int rank);

// Present members, then lost ones.
std::vector<WorldMember> WhoHasCome(const Attendance& attendance);

// "server 1, server 3 and 12 more".
std::string NamesText(absl::Span<const std::string> names);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_ATTENDANCE_H_
