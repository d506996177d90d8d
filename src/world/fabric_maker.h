// A fabric from a meeting: links, nodes and wires, once all members have come.
#ifndef SLUICE_SRC_WORLD_FABRIC_MAKER_H_
#define SLUICE_SRC_WORLD_FABRIC_MAKER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/fabric.h"
#include "world/meeting.h"
#include "world/roster.h"
#include "world/time_limit.h"

namespace sluice {

struct FabricMakerOptions {
  std::string wires;   // WorldOptions::wires
  std::string bind;    // WorldOptions::bind
  std::string secret;  // of this fabric
  uint64_t id = 0;     // of this fabric
};

// Whether the members are still there. With kNo, the store may be gone.
using MembersCheck = absl::FunctionRef<absl::Status(NeedsStore needs_store)>;

// Collective over the meeting's members.
absl::StatusOr<std::unique_ptr<Fabric>> MakeMembersFabric(Meeting* meeting,
                                                          const FabricMakerOptions& options,
                                                          const TimeLimit& limit,
                                                          MembersCheck check);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_FABRIC_MAKER_H_
