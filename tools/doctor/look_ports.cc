// Ports of this process, and what the environment says of who may connect.
#include <algorithm>
#include <string>

#include "doctor/look_system.h"
#include "sluice/world.h"
#include "transport/environment_variable.h"
#include "transport/ucx/ucx_networks.h"
#include "world/store/socket_owner.h"

namespace sluice::bench {

PortFacts LookAtPorts() {
  PortFacts facts;
  for (const SocketAddress& at : OwnListeners()) {
    if (at.IsLoopback()) {
      facts.loopback.push_back(at.port());
    } else {
      facts.others.push_back(at.Text());
    }
  }
  std::sort(facts.loopback.begin(), facts.loopback.end());
  std::sort(facts.others.begin(), facts.others.end());
  const absl::StatusOr<WorldOptions> world = WorldOptionsFromEnvironment();
  if (!world.ok()) return facts;
  facts.has_token = !world->token.empty() || !world->token_file.empty();
  const auto networks =
      ChooseUcxNetworks(EnvironmentVariable("UCX_TLS"), EnvironmentVariable("UCX_NET_DEVICES"),
                        world->wires == "ucx" ? UcxTcp::kIfNamed : UcxTcp::kNever);
  // Without devices that the user names it is loopback's alone.
  const std::string devices = EnvironmentVariable("UCX_NET_DEVICES");
  facts.asks_ucx_tcp = networks.ok() && networks->tcp && !devices.empty() && devices != "lo";
  return facts;
}

}  // namespace sluice::bench
