// The record of a member of a world at the store.
#ifndef SLUICE_SRC_WORLD_MEMBER_H_
#define SLUICE_SRC_WORLD_MEMBER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sluice/world.h"

namespace sluice {

struct StoredMember {
  std::string id;      // differs each time a process joins
  int64_t number = 0;  // members count themselves as they come
  std::string role;
  int rank = 0;
  int size = 0;       // of its role, as it says
  std::string roles;  // RolesText of what it declares
  std::string host;
  int pid = 0;

  std::string Name() const;      // "server 3"
  std::string Describe() const;  // "server 3 (process 4711 on node7)"
  WorldMember ToWorldMember(bool alive) const;
};

// This process as a member, with an id of its own, and without a number.
absl::StatusOr<StoredMember> OwnMember(const WorldOptions& options);

// As text and back. InvalidArgument for any text that is none.
std::string MemberText(const StoredMember& member);
absl::StatusOr<StoredMember> ParseMember(absl::string_view text);

// `bytes` random bytes as hexadecimal digits.
absl::StatusOr<std::string> RandomHex(size_t bytes);

// "server 3"; what members are called in messages and keys.
std::string MemberName(absl::string_view role, int rank);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_MEMBER_H_
