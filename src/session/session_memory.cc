// What carries a session's transfers, and the memory that it carries them to in one copy.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/host_memory.h"
#include "session/session_impl.h"
#include "transport/direct_transport.h"
#include "transport/node_transport.h"
#include "transport/say_once.h"

namespace sluice {

absl::StatusOr<std::unique_ptr<Transport>> SessionImpl::OpenTransport(Device* device) {
  if (options_.transport != nullptr) return options_.transport->Open(fabric_.get(), device);
  absl::StatusOr<std::unique_ptr<Transport>> messages = fabric_->OpenTransport();
  if (!messages.ok() || !options_.direct || options_.accelerator != nullptr) return messages;
  // Groups have an order that only one transport can keep.
  if ((*messages)->traits().in_groups) return messages;
  return AddDirect(*std::move(messages));
}

absl::StatusOr<std::vector<std::string>> SessionImpl::Exchange(const absl::Status& own,
                                                               const std::string& record,
                                                               const char* call) {
  Proposal proposal;
  proposal.call = call;
  proposal.status = own;
  proposal.payload = record;
  if (absl::Status status = Agree(std::move(proposal)); !status.ok()) return status;
  std::vector<std::string> records;
  records.reserve(static_cast<size_t>(size()));
  for (int other = 0; other < size(); ++other) records.push_back(agreement_.payload(other));
  return records;
}

absl::StatusOr<std::unique_ptr<Transport>> SessionImpl::AddDirect(
    std::unique_ptr<Transport> messages) {
  absl::StatusOr<DirectNode> node = DirectNode::Connect(
      rank(), fabric_->node_of_rank(), [this](const absl::Status& own, const std::string& record) {
        return Exchange(own, record, "Create: direct");
      });
  if (!poison_.ok()) return poison_;
  if (!node.ok()) {
    if (rank() == 0) {
      SayOnce(
          absl::StrCat("transfers within a node are sent as messages: ", node.status().message()));
    }
    return messages;
  }
  if (rank() == 0 && node->is_limited()) {
    SayOnce(absl::StrCat(DescribeLimit(node->limit()),
                         ". Between such ranks memory from AllocateShared is copied in one copy, "
                         "and other memory is sent as messages"));
  }
  auto direct = std::make_unique<DirectTransport>(*std::move(node));
  direct_ = direct.get();
  return MakeNodeTransport(rank(), fabric_->node_of_rank(), std::move(direct), std::move(messages));
}

absl::StatusOr<std::shared_ptr<std::byte>> SessionImpl::AllocateShared(int64_t bytes) {
  if (absl::Status status = FinishCollectives(); !status.ok()) return status;
  if (absl::Status status = CheckIdle("AllocateShared"); !status.ok()) return status;
  Proposal proposal;
  proposal.call = "AllocateShared";
  if (bytes < 0) {
    proposal.status = absl::InvalidArgumentError(absl::StrCat(bytes, " bytes cannot be shared"));
  }
  std::shared_ptr<std::byte> memory;
  if (direct_ == nullptr && bytes > 0) {
    auto mapped = MapHostMemory(static_cast<size_t>(bytes), "memory for tensors");
    proposal.status.Update(mapped.status());
    if (mapped.ok()) {
      auto owner = std::make_shared<DeviceMemory>(*std::move(mapped));
      memory = std::shared_ptr<std::byte>(owner, owner->data());
    }
  }
  if (absl::Status status = Agree(std::move(proposal)); !status.ok()) return status;
  if (direct_ == nullptr) return memory;
  return direct_->node().Share(static_cast<size_t>(bytes),
                               [this](const absl::Status& own, const std::string& record) {
                                 return Exchange(own, record, "AllocateShared");
                               });
}

}  // namespace sluice
