// Looks at a world from its store, for those who are no members.
#ifndef SLUICE_SRC_WORLD_LOOK_H_
#define SLUICE_SRC_WORLD_LOOK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sluice/store.h"
#include "sluice/world.h"

namespace sluice {

struct MemberLook {
  WorldMember member;
  bool in_epoch = false;  // it takes part in the newest epoch
  std::string waits_in;   // what it waits for the others in: "epoch-3"; empty: nothing is known
  std::string says;       // what it has given to World::Say last; empty: nothing
};

struct WorldLook {
  int64_t epoch = 0;                 // the newest that has begun; 0: none
  std::vector<MemberLook> members;   // that have come and have not left, lost ones too
  std::vector<std::string> missing;  // as World::missing
};

// Reads and changes nothing. A world without members has nothing. Errors are the store's. Thread:
// any.
absl::StatusOr<WorldLook> LookAtWorld(Store& store, absl::string_view world);

// The key of a member's own words at the store.
std::string SaysKey(absl::string_view world, absl::string_view role, int rank);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_LOOK_H_
