// Messages, and direct copies beside them.
#include "session/run_transport.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/host_memory.h"
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
    return RunTransport{std::move(messages)};
  }
  if (peers->rank() == 0 && node->is_limited()) {
    SayOnce(absl::StrCat(DescribeLimit(node->limit()),
                         ". Between such ranks memory from AllocateShared is copied in one copy, "
                         "and other memory is sent as messages"));
  }
  auto direct = std::make_unique<DirectTransport>(*std::move(node));
  DirectTransport* const part = direct.get();
  return RunTransport{
      MakeNodeTransport(peers->rank(), nodes, std::move(direct), std::move(messages)), part};
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
    return RunTransport{*std::move(transport)};
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
  std::shared_ptr<std::byte> memory;
  if (direct == nullptr && bytes > 0) {
    auto mapped = MapHostMemory(static_cast<size_t>(bytes), "memory for tensors");
    proposal.status.Update(mapped.status());
    if (mapped.ok()) {
      auto owner = std::make_shared<DeviceMemory>(*std::move(mapped));
      memory = std::shared_ptr<std::byte>(owner, owner->data());
    }
  }
  if (absl::Status status = peers->Agree(std::move(proposal)); !status.ok()) return status;
  if (direct == nullptr) return memory;
  return direct->node().Share(static_cast<size_t>(bytes), ExchangeFor(peers, "AllocateShared"));
}

}  // namespace sluice
