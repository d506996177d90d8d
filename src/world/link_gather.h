// The first gather over the links of a fabric that is being made: it shows that they work.
#ifndef SLUICE_SRC_WORLD_LINK_GATHER_H_
#define SLUICE_SRC_WORLD_LINK_GATHER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/tcp/tcp_links.h"
#include "world/meeting.h"
#include "world/roster.h"
#include "world/time_limit.h"

namespace sluice {

// What each rank of the meeting gives, by rank; all give as many bytes. Collective. `number` is
// that of a fabric over these links, and is used up. `check` is asked every second.
// Errors name members that cannot be reached, have given up, are lost, or are late.
absl::StatusOr<std::vector<std::byte>> GatherOverLinks(const std::shared_ptr<TcpLinks>& links,
                                                       int number, const Meeting& meeting,
                                                       const TimeLimit& limit, MembersCheck check,
                                                       absl::Span<const std::byte> own);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_LINK_GATHER_H_
