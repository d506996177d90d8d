// Private and shared buffers of a rank that copies directly.
#include "transport/direct_contract.h"

#include <algorithm>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "transport/direct_transport.h"
#include "transport/node_transport.h"

namespace sluice {
namespace {

constexpr size_t kAlignment = 16;

absl::StatusOr<DirectNode> ConnectOver(Fabric* fabric) {
  return DirectNode::Connect(fabric->rank(), fabric->node_of_rank(),
                             [fabric](const absl::Status& status, const std::string& record) {
                               return ExchangeOver(fabric, status, record, absl::Seconds(60));
                             });
}

class DirectMemory final : public ContractMemory {
 public:
  explicit DirectMemory(size_t shared_bytes) : shared_bytes_(shared_bytes) {}

  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport(Fabric* fabric) override {
    const auto exchange = [fabric](const absl::Status& status, const std::string& record) {
      return ExchangeOver(fabric, status, record, absl::Seconds(60));
    };
    absl::StatusOr<DirectNode> node = ConnectOver(fabric);
    if (!node.ok()) return node.status();
    auto direct = std::make_unique<DirectTransport>(*std::move(node));
    auto shared = direct->node().Share(shared_bytes_, exchange);
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
    if (begin + bytes > shared_bytes_) {
      return buffers_.emplace_back(bytes).data();
    }
    used_ = begin + bytes;
    return shared_.back().get() + begin;
  }
  void Free(std::byte* data) override {
    std::erase_if(buffers_, [data](const auto& buffer) { return buffer.data() == data; });
  }
  void Write(std::byte* to, absl::Span<const std::byte> bytes) override {
    std::copy(bytes.begin(), bytes.end(), to);
  }
  std::vector<std::byte> Read(const std::byte* from, size_t bytes) override {
    return {from, from + bytes};
  }
  bool IsBusy() override { return false; }
  bool must_stay() const override { return true; }

 private:
  const size_t shared_bytes_;
  std::list<std::vector<std::byte>> buffers_;
  std::vector<std::shared_ptr<std::byte>> shared_;  // by transport; the last one is in use
  size_t used_ = 0;
};

}  // namespace

std::unique_ptr<ContractMemory> DirectContractMemory(size_t shared_bytes) {
  return std::make_unique<DirectMemory>(shared_bytes);
}

absl::Status CheckDirect(Fabric* fabric) { return ConnectOver(fabric).status(); }

}  // namespace sluice
