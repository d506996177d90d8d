// Checks of options, and roles as text.
#include "world/world_options.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tensor/error_text.h"
#include "world/store/store_check.h"

namespace sluice {
namespace {

absl::Status BadOption(absl::string_view what) { return absl::InvalidArgumentError(what); }

absl::Status CheckSize(absl::string_view role, int size) {
  if (size >= 0 && size <= kWorldMembersMax) return absl::OkStatus();
  return BadOption(
      absl::StrCat("role \"", role, "\" has ", size, " members; 1 .. ", kWorldMembersMax));
}

absl::Status CheckRoles(absl::Span<const RoleSize> roles) {
  if (roles.size() > kWorldRolesMax) {
    return BadOption(absl::StrCat(roles.size(), " roles are more than ", kWorldRolesMax));
  }
  std::set<absl::string_view> seen;
  int64_t members = 0;
  for (const RoleSize& each : roles) {
    SLUICE_RETURN_IF_ERROR(CheckWorldName("a role", each.role));
    SLUICE_RETURN_IF_ERROR(CheckSize(each.role, each.size));
    if (!seen.insert(each.role).second) {
      return BadOption(absl::StrCat("role \"", each.role, "\" is declared twice"));
    }
    members += each.size;
  }
  if (members <= kWorldMembersMax) return absl::OkStatus();
  return BadOption(absl::StrCat(members, " members are more than ", kWorldMembersMax));
}

// That the roles have the member's own one, with its size.
absl::Status CheckOwnRole(const WorldOptions& options) {
  if (options.roles.empty()) return absl::OkStatus();
  for (const RoleSize& each : options.roles) {
    if (each.role != options.role) continue;
    if (each.size == 0 || each.size == options.size) return absl::OkStatus();
    return BadOption(absl::StrCat("this member says that role \"", options.role, "\" has ",
                                  options.size, " members, and its list of roles says ",
                                  each.size));
  }
  return BadOption(absl::StrCat("the roles \"", RolesText(options.roles),
                                "\" lack this member's, \"", options.role, "\""));
}

}  // namespace

absl::Status CheckWorldName(absl::string_view what, absl::string_view name) {
  const bool good = !name.empty() && name.size() <= kWorldNameBytesMax &&
                    std::all_of(name.begin(), name.end(), [](char c) {
                      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
                             c == '-' || c == '.';
                    });
  if (good) return absl::OkStatus();
  return BadOption(absl::StrCat("the name of ", what, " is \"", name, "\": it must be 1 .. ",
                                kWorldNameBytesMax, " letters, digits, '_', '-' and '.'"));
}

absl::Status CheckWorldOptions(const WorldOptions& options) {
  SLUICE_RETURN_IF_ERROR(CheckWorldName("the world", options.name));
  SLUICE_RETURN_IF_ERROR(CheckWorldName("the role", options.role));
  if (options.size < 1) {
    return BadOption(absl::StrCat("role \"", options.role, "\" has ", options.size,
                                  " members; 1 .. ", kWorldMembersMax));
  }
  SLUICE_RETURN_IF_ERROR(CheckSize(options.role, options.size));
  if (options.rank != kAnyRank && (options.rank < 0 || options.rank >= options.size)) {
    return BadOption(absl::StrCat("rank ", options.rank, " of role \"", options.role,
                                  "\" is not one of its ", options.size, ": 0 .. ",
                                  options.size - 1));
  }
  SLUICE_RETURN_IF_ERROR(CheckOwnRole(options));
  SLUICE_RETURN_IF_ERROR(CheckRoles(DeclaredRoles(options)));
  if (options.wires != "auto" && options.wires != "ucx" && options.wires != "tcp") {
    return BadOption(absl::StrCat("wires are \"", options.wires,
                                  "\", but must be \"auto\", \"ucx\" or "
                                  "\"tcp\""));
  }
  if (options.timeout <= absl::ZeroDuration() || options.store_timeout <= absl::ZeroDuration()) {
    return BadOption("a timeout must be above 0");
  }
  if (options.lease < absl::Seconds(1) || options.lease > absl::Hours(1)) {
    return BadOption(
        absl::StrCat("the lease is ", DurationText(options.lease), ", but must be 1s .. 1h"));
  }
  if (!options.token.empty() && !options.token_file.empty()) {
    return BadOption("there is a token and a file with a token; one of them is enough");
  }
  return absl::OkStatus();
}

std::vector<RoleSize> DeclaredRoles(const WorldOptions& options) {
  if (options.roles.empty()) return {{options.role, options.size}};
  std::vector<RoleSize> roles = options.roles;
  for (RoleSize& each : roles) {
    if (each.role == options.role) each.size = options.size;
  }
  return roles;
}

std::string RolesText(absl::Span<const RoleSize> roles) {
  std::string text;
  for (const RoleSize& each : roles) {
    absl::StrAppend(&text, text.empty() ? "" : ",", each.role);
    if (each.size != 0) absl::StrAppend(&text, ":", each.size);
  }
  return text;
}

absl::StatusOr<std::vector<RoleSize>> ParseRoles(absl::string_view text) {
  std::vector<RoleSize> roles;
  for (const absl::string_view each : absl::StrSplit(text, ',')) {
    const size_t colon = each.find(':');
    RoleSize role = {std::string(absl::StripAsciiWhitespace(each.substr(0, colon)))};
    if (colon != each.npos &&
        (!absl::SimpleAtoi(each.substr(colon + 1), &role.size) || role.size < 1)) {
      return BadOption(absl::StrCat("\"", each, "\" is not ROLE or ROLE:SIZE, with a size of 1 .. ",
                                    kWorldMembersMax));
    }
    roles.push_back(std::move(role));
  }
  SLUICE_RETURN_IF_ERROR(CheckRoles(roles));
  return roles;
}

absl::StatusOr<std::string> TokenOf(const WorldOptions& options) {
  if (!options.token_file.empty()) return ReadTokenFile(options.token_file);
  SLUICE_RETURN_IF_ERROR(CheckStoreToken(options.token));
  return options.token;
}

}  // namespace sluice
