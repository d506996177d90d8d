// Messages, and direct copies beside them.
#include "session/run_transport.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/host_memory.h"
#include "transport/direct/available_memory.h"
#include "transport/node_transport.h"
#include "transport/say_once.h"

namespace sluice {
namespace {

// How direct copies meet: by records of all ranks. A DirectExchange.
auto ExchangeFor(Peers* peers, const char* call) {
  return [peers, call](const absl::Status& own, const std::string& record) {
    return peers->Exchange(own, record, call);
  };
}

absl::StatusOr<RunTransport> AddDirect(Peers* peers, std::unique_ptr<Transport> messages) {
  const absl::Span<const int> nodes = peers->fabric()->node_of_rank();
  absl::StatusOr<DirectNode> node =
      DirectNode::Connect(peers->rank(), nodes, ExchangeFor(peers, "Create: direct"));
  if (!peers->poison().ok()) return peers->poison();
  if (!node.ok()) {
    if (peers->rank() == 0) {
      SayOnce(
          absl::StrCat("transfers within a node are sent as messages: ", node.status().message()));
    }
    return RunTransport{std::move(messages), nullptr, std::string(node.status().message())};
  }
  if (peers->rank() == 0 && node->is_limited()) {
    SayOnce(absl::StrCat(DescribeLimit(node->limit()),
                         ". Between such ranks memory from AllocateShared is copied in one copy, "
                         "and other memory is sent as messages"));
  }
  auto direct = std::make_unique<DirectTransport>(*std::move(node));
  DirectTransport* const part = direct.get();
  return RunTransport{
      MakeNodeTransport(peers->rank(), nodes, std::move(direct), std::move(messages)), part, ""};
}

// A rank's record of the memory that it asks for.
struct Asked {
  int64_t bytes = 0;
  uint64_t available = 0;  // to the rank, before anybody has taken any
};

// Whether each node has what its ranks ask for together. A mapping alone takes no memory, so that
// the kernel makes larger ones than it can ever fill, and ends a process that tries to.
absl::Status CheckAvailable(const Peers& peers) {
  const absl::Span<const int> nodes = peers.fabric()->node_of_rank();
  struct OfNode {
    uint64_t bytes = 0;
    uint64_t available = UINT64_MAX;
    int ranks = 0;
  };
  std::map<int, OfNode> by_node;
  for (int rank = 0; rank < peers.size(); ++rank) {
    const std::string payload = peers.payload(rank);
    Asked asked;
    if (payload.size() == sizeof(asked)) std::memcpy(&asked, payload.data(), sizeof(asked));
    OfNode& node = by_node[nodes[static_cast<size_t>(rank)]];
    node.bytes += std::min(static_cast<uint64_t>(asked.bytes), UINT64_MAX - node.bytes);
    node.available = std::min(node.available, asked.available);
    ++node.ranks;
  }
  for (const auto& [number, node] : by_node) {
    if (node.bytes <= node.available) continue;
    return absl::ResourceExhaustedError(absl::StrCat(
        "AllocateShared: the ", node.ranks, " ranks of node ", number, " ask to share ", node.bytes,
        " bytes of memory, and ", node.available, " are available"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunTransport> OpenRunTransport(Peers* peers, const SessionOptions& options,
                                              Device* device) {
  absl::StatusOr<std::unique_ptr<Transport>> transport =
      options.transport != nullptr ? options.transport->Open(peers->fabric(), device)
                                   : peers->fabric()->OpenTransport();
  if (!transport.ok()) return transport.status();
  const bool may_be_direct =
      options.transport == nullptr && options.direct && options.accelerator == nullptr;
  // Groups have an order that only one transport can keep.
  if (!may_be_direct || (*transport)->traits().in_groups) {
    return RunTransport{*std::move(transport), nullptr, ""};
  }
  return AddDirect(peers, *std::move(transport));
}

absl::StatusOr<std::shared_ptr<std::byte>> AllocateSharedMemory(Peers* peers,
                                                                DirectTransport* direct,
                                                                int64_t bytes) {
  Proposal proposal;
  proposal.call = "AllocateShared";
  if (bytes < 0) {
    proposal.status = absl::InvalidArgumentError(absl::StrCat(bytes, " bytes cannot be shared"));
  }
  const Asked asked = {std::max<int64_t>(bytes, 0), AvailableMemory()};
  proposal.payload.assign(reinterpret_cast<const char*>(&asked), sizeof(asked));
  if (absl::Status status = peers->Agree(std::move(proposal)); !status.ok()) return status;
  // All ranks look at the same numbers, and come to the same.
  if (absl::Status status = CheckAvailable(*peers); !status.ok()) return status;
  if (direct != nullptr) {
    return direct->node().Share(static_cast<size_t>(bytes), ExchangeFor(peers, "AllocateShared"));
  }
  absl::StatusOr<DeviceMemory> mapped =
      MapHostMemory(static_cast<size_t>(bytes), "memory for tensors");
  if (absl::Status status = peers->AgreeOn(mapped.status(), "AllocateShared"); !status.ok()) {
    return status;
  }
  if (bytes == 0) return nullptr;
  auto owner = std::make_shared<DeviceMemory>(*std::move(mapped));
  return std::shared_ptr<std::byte>(owner, owner->data());
}

}  // namespace sluice
