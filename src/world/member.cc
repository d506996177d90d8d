// Members as lines of text.
#include "world/member.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "net/hmac.h"
#include "tensor/error_text.h"
#include "world/world_options.h"

namespace sluice {
namespace {

// Members of one world may run different builds.
constexpr absl::string_view kMemberFormat = "sluice-member-1";
constexpr size_t kLines = 9;
constexpr size_t kIdBytes = 8;
constexpr size_t kHostBytesMax = 255;
constexpr size_t kRolesBytesMax = kWorldRolesMax * (kWorldNameBytesMax + 8);

std::string HostName() {
  std::array<char, kHostBytesMax + 1> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  std::string host(name.data());
  // It is shown in messages, and a line of its own at the store.
  for (char& c : host) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(c))) c = '?';
  }
  return host.empty() ? "unknown" : host;
}

bool IsShort(absl::string_view text, size_t bytes_max) {
  return !text.empty() && text.size() <= bytes_max &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
}

}  // namespace

std::string MemberName(absl::string_view role, int rank) { return absl::StrCat(role, " ", rank); }

std::string StoredMember::Name() const { return MemberName(role, rank); }

std::string StoredMember::Describe() const { return ToWorldMember(true).Describe(); }

WorldMember StoredMember::ToWorldMember(bool alive) const { return {role, rank, host, pid, alive}; }

std::string WorldMember::Describe() const {
  return absl::StrCat(role, " ", rank, " (process ", pid, " on ", host, ")");
}

absl::StatusOr<std::string> RandomHex(size_t bytes) {
  SLUICE_ASSIGN_OR_RETURN(const std::string random, MakeRandom(bytes));
  return absl::BytesToHexString(random);
}

absl::StatusOr<StoredMember> OwnMember(const WorldOptions& options) {
  SLUICE_ASSIGN_OR_RETURN(std::string id, RandomHex(kIdBytes));
  StoredMember member;
  member.id = std::move(id);
  member.role = options.role;
  member.rank = options.rank;
  member.size = options.size;
  member.roles = RolesText(DeclaredRoles(options));
  member.host = HostName();
  member.pid = getpid();
  return member;
}

std::string MemberText(const StoredMember& member) {
  return absl::StrJoin(
      std::make_tuple(kMemberFormat, member.id, member.number, member.role, member.rank,
                      member.size, member.roles, member.host, member.pid),
      "\n");
}

absl::StatusOr<StoredMember> ParseMember(absl::string_view text) {
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  StoredMember member;
  const bool good =
      lines.size() == kLines && lines[0] == kMemberFormat && IsShort(lines[1], 2 * kIdBytes) &&
      absl::SimpleAtoi(lines[2], &member.number) && IsShort(lines[3], kWorldNameBytesMax) &&
      absl::SimpleAtoi(lines[4], &member.rank) && absl::SimpleAtoi(lines[5], &member.size) &&
      IsShort(lines[6], kRolesBytesMax) && IsShort(lines[7], kHostBytesMax) &&
      absl::SimpleAtoi(lines[8], &member.pid) && member.rank >= 0 && member.rank < member.size &&
      member.size <= kWorldMembersMax && ParseRoles(lines[6]).ok();
  if (!good) {
    const bool is_other = lines[0] != kMemberFormat && absl::StartsWith(lines[0], "sluice-member-");
    return absl::InvalidArgumentError(is_other ? "it is of another version of Sluice"
                                               : "it is no member's");
  }
  member.id = std::string(lines[1]);
  member.role = std::string(lines[3]);
  member.roles = std::string(lines[6]);
  member.host = std::string(lines[7]);
  return member;
}

}  // namespace sluice
