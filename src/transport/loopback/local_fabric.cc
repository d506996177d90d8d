// Fabrics of one node, for users.
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/local.h"
#include "transport/loopback/loopback.h"

namespace sluice {

absl::StatusOr<std::vector<std::unique_ptr<Fabric>>> MakeLocalFabric(int ranks) {
  constexpr int kRanksMax = 4096;
  if (ranks < 1 || ranks > kRanksMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a local fabric of ", ranks, " ranks; 1 .. ", kRanksMax));
  }
  return MakeLoopbackFabrics(std::vector<int>(static_cast<size_t>(ranks), 0));
}

}  // namespace sluice
