// A fabric from a meeting: links, nodes and wires, once all members have come.
#ifndef SLUICE_SRC_WORLD_FABRIC_MAKER_H_
#define SLUICE_SRC_WORLD_FABRIC_MAKER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "sluice/fabric.h"
#include "transport/deadline.h"
#include "world/meeting.h"
#include "world/roster.h"

namespace sluice {

struct FabricMakerOptions {
  std::string wires;       // WorldOptions::wires
  std::string bind;        // WorldOptions::bind
  std::string first_host;  // TcpLinksOptions::first_host
  std::string secret;      // of this fabric
  uint64_t id = 0;         // of this fabric
};

// Collective over the meeting's members.
absl::StatusOr<std::unique_ptr<Fabric>> MakeMembersFabric(Meeting* meeting,
                                                          const FabricMakerOptions& options,
                                                          const Deadline& limit,
                                                          MembersCheck check);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_FABRIC_MAKER_H_
