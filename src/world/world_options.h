// Checks options of a world, whoever wrote them.
#ifndef SLUICE_SRC_WORLD_WORLD_OPTIONS_H_
#define SLUICE_SRC_WORLD_WORLD_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "sluice/world.h"

namespace sluice {

inline constexpr int kWorldMembersMax = 1 << 16;
inline constexpr size_t kWorldRolesMax = 64;
inline constexpr size_t kWorldNameBytesMax = 64;

// InvalidArgument, unless it is 1 .. kWorldNameBytesMax letters, digits, '_', '-' and '.'. Names
// are parts of keys.
absl::Status CheckWorldName(absl::string_view what, absl::string_view name);

// All but the store and the token: InvalidArgument names the option.
absl::Status CheckWorldOptions(const WorldOptions& options);

// The declared roles, with the member's own size filled in.
std::vector<RoleSize> DeclaredRoles(const WorldOptions& options);

// "trainer:2,server": sizes that are not declared are left out. ParseRoles gives InvalidArgument
// for any other text, for bad names and for a role that comes twice.
std::string RolesText(absl::Span<const RoleSize> roles);
absl::StatusOr<std::vector<RoleSize>> ParseRoles(absl::string_view text);

// The token of the options, or of their file, without blanks and line ends behind it. May be empty.
absl::StatusOr<std::string> TokenOf(const WorldOptions& options);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_WORLD_OPTIONS_H_
