// Private and shared buffers of a rank that copies directly.
#include "transport/direct_contract.h"

#include <string>
#include <utility>
#include <vector>

#include "transport/all_ok.h"
#include "transport/direct/direct_transport.h"
#include "transport/node_transport.h"

namespace sluice {
namespace {

constexpr size_t kAlignment = 16;

// A DirectExchange over the fabric alone.
auto ExchangeOver(Fabric* fabric) {
  return [fabric](const absl::Status& status, const std::string& record) {
    return GatherIfAllOk(fabric, status, record, absl::Minutes(2));
  };
}

absl::StatusOr<DirectNode> ConnectOver(Fabric* fabric, KernelCopies copies) {
  return DirectNode::Connect(fabric->rank(), fabric->node_of_rank(), ExchangeOver(fabric), copies);
}

// What does not fit shared memory is private.
class DirectMemory final : public HostContractMemory {
 public:
  DirectMemory(size_t shared_bytes, KernelCopies copies, PrivateCopies private_copies)
      : shared_bytes_(shared_bytes), copies_(copies), private_copies_(private_copies) {}

  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport(Fabric* fabric) override {
    absl::StatusOr<DirectNode> node = ConnectOver(fabric, copies_);
    if (!node.ok()) return node.status();
    auto direct = std::make_unique<DirectTransport>(*std::move(node), private_copies_);
    auto shared = direct->node().Share(shared_bytes_, ExchangeOver(fabric));
    if (!shared.ok()) return shared.status();
    shared_.push_back(*std::move(shared));
    used_ = 0;
    absl::StatusOr<std::unique_ptr<Transport>> messages = fabric->OpenTransport();
    if (!messages.ok()) return messages.status();
    return MakeNodeTransport(fabric->rank(), fabric->node_of_rank(), std::move(direct),
                             *std::move(messages));
  }
  std::byte* Allocate(size_t bytes) override {
    const size_t begin = (used_ + kAlignment - 1) / kAlignment * kAlignment;
    if (begin + bytes > shared_bytes_) return HostContractMemory::Allocate(bytes);
    used_ = begin + bytes;
    return shared_.back().get() + begin;
  }
  bool must_stay() const override { return true; }

 private:
  const size_t shared_bytes_;
  const KernelCopies copies_;
  const PrivateCopies private_copies_;
  std::vector<std::shared_ptr<std::byte>> shared_;  // by transport; the last one is in use
  size_t used_ = 0;
};

}  // namespace

std::unique_ptr<ContractMemory> DirectContractMemory(size_t shared_bytes, KernelCopies copies,
                                                     PrivateCopies private_copies) {
  return std::make_unique<DirectMemory>(shared_bytes, copies, private_copies);
}

absl::Status CheckDirect(Fabric* fabric, bool fold) {
  const absl::StatusOr<DirectNode> node = ConnectOver(fabric, KernelCopies::kWhereAllowed);
  if (!node.ok()) return node.status();
  if (!fold || !node->is_limited()) return absl::OkStatus();
  return absl::FailedPreconditionError(DescribeLimit(node->limit()));
}

}  // namespace sluice
