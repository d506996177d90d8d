// Members in the order in which they came, and then by rank.
#include "world/attendance.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tensor/error_text.h"
#include "world/world_options.h"

namespace sluice {
namespace {

constexpr absl::string_view kHere = "/here";
constexpr absl::string_view kSaid = "/said";

std::string MemberKey(absl::string_view world, absl::string_view role, int rank,
                      absl::string_view kind) {
  return absl::StrCat(MembersPrefix(world), role, "/", absl::StrFormat("%06d", rank), kind);
}

// The declarations so far, each with who made it.
class Declarations {
 public:
  // OK, and takes over what is new in it; or what it contradicts.
  absl::Status Take(const StoredMember& member) {
    SLUICE_ASSIGN_OR_RETURN(const std::vector<RoleSize> parsed, ParseRoles(member.roles));
    std::vector<RoleSize> roles = parsed;
    if (roles_.empty()) {
      roles_ = roles;
      said_by_.assign(roles.size(), member);
      return absl::OkStatus();
    }
    if (roles.size() != roles_.size()) return Contradiction(member, said_by_[0]);
    for (size_t i = 0; i < roles.size(); ++i) {
      const bool sizes_differ =
          roles[i].size != 0 && roles_[i].size != 0 && roles[i].size != roles_[i].size;
      if (roles[i].role != roles_[i].role || sizes_differ) {
        return Contradiction(member, said_by_[i]);
      }
    }
    for (size_t i = 0; i < roles.size(); ++i) {
      if (roles_[i].size != 0 || roles[i].size == 0) continue;
      roles_[i].size = roles[i].size;
      said_by_[i] = member;
    }
    return absl::OkStatus();
  }

  const std::vector<RoleSize>& roles() const { return roles_; }

 private:
  static absl::Status Contradiction(const StoredMember& later, const StoredMember& earlier) {
    return DisagreementError(later.Describe(), " declares the roles \"", later.roles, "\", but ",
                             earlier.Describe(), ", which came before, declares \"", earlier.roles,
                             "\"");
  }

  std::vector<RoleSize> roles_;
  std::vector<StoredMember> said_by_;  // by role
};

bool ComesBefore(const StoredMember& a, const StoredMember& b) {
  return std::tie(a.number, a.id) < std::tie(b.number, b.id);
}

// `own`: null for one who is no member.
Attendance Take(const StoredMember* own, absl::Span<const StoreEntries::value_type> entries) {
  std::vector<StoredMember> here;
  if (own != nullptr) here.push_back(*own);
  std::vector<StoredMember> said;
  for (const auto& [key, value] : entries) {
    absl::StatusOr<StoredMember> member = ParseMember(value);
    if (!member.ok()) continue;  // another version's, which does not count
    const bool is_own = own != nullptr && member->role == own->role && member->rank == own->rank;
    if (is_own) continue;
    (absl::EndsWith(key, kHere) ? here : said).push_back(*std::move(member));
  }
  std::sort(here.begin(), here.end(), ComesBefore);

  Attendance attendance;
  Declarations declarations;
  std::map<std::pair<std::string, int>, const StoredMember*> places;
  for (const StoredMember& member : here) {
    const absl::Status status = declarations.Take(member);
    if (status.ok()) {
      places[{member.role, member.rank}] = &member;
    } else if (own != nullptr && member.id == own->id) {
      attendance.conflict = status;
      return attendance;
    }
  }
  attendance.roles = declarations.roles();
  std::map<std::pair<std::string, int>, const StoredMember*> lost;
  for (const StoredMember& member : said) lost[{member.role, member.rank}] = &member;
  for (const RoleSize& role : attendance.roles) {
    for (int rank = 0; rank < std::max(role.size, 1); ++rank) {
      if (const auto place = places.find({role.role, rank}); place != places.end()) {
        attendance.present.push_back(*place->second);
        continue;
      }
      attendance.missing.push_back(MemberName(role.role, rank));
      const auto gone = lost.find({role.role, rank});
      if (gone != lost.end()) attendance.lost.push_back(*gone->second);
    }
  }
  return attendance;
}

}  // namespace

std::string MembersPrefix(absl::string_view world) { return absl::StrCat(world, "/member/"); }

std::string HereKey(absl::string_view world, absl::string_view role, int rank) {
  return MemberKey(world, role, rank, kHere);
}

std::string SaidKey(absl::string_view world, absl::string_view role, int rank) {
  return MemberKey(world, role, rank, kSaid);
}

Attendance TakeAttendance(const StoredMember& own,
                          absl::Span<const StoreEntries::value_type> entries) {
  return Take(&own, entries);
}

Attendance TakeAttendance(absl::Span<const StoreEntries::value_type> entries) {
  return Take(nullptr, entries);
}

int FabricRankIn(absl::Span<const RoleSize> roles, absl::string_view role, int rank) {
  int first = 0;
  for (const RoleSize& each : roles) {
    if (each.role == role) {
      const bool is_known = rank >= 0 && (each.size == 0 ? rank == 0 : rank < each.size);
      return is_known ? first + rank : -1;
    }
    if (each.size == 0) return -1;
    first += each.size;
  }
  return -1;
}

std::vector<WorldMember> WhoHasCome(const Attendance& attendance) {
  const auto at = [&](const StoredMember& member) {
    return FabricRankIn(attendance.roles, member.role, member.rank);
  };
  std::vector<WorldMember> members;
  auto lost = attendance.lost.begin();
  for (const StoredMember& member : attendance.present) {
    while (lost != attendance.lost.end() && at(*lost) < at(member)) {
      members.push_back((lost++)->ToWorldMember(false));
    }
    members.push_back(member.ToWorldMember(true));
  }
  while (lost != attendance.lost.end()) members.push_back((lost++)->ToWorldMember(false));
  return members;
}

std::string NamesText(absl::Span<const std::string> names) {
  constexpr size_t kShown = 8;
  const size_t shown = names.size() <= kShown + 1 ? names.size() : kShown;
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    const bool is_last = i + 1 == names.size();
    absl::StrAppend(&text, i == 0 ? "" : is_last ? " and " : ", ", names[i]);
  }
  if (shown < names.size()) absl::StrAppend(&text, " and ", names.size() - shown, " more");
  return text;
}

}  // namespace sluice
