// Sorts operations by the node of their peer, and starts again as messages what comes back.
#include "transport/node_transport.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "tensor/check.h"
#include "tensor/error_text.h"
#include "transport/op_check.h"

namespace sluice {
namespace {

class NodeTransport final : public Transport {
 public:
  NodeTransport(int rank, absl::Span<const int> node_of_rank, std::unique_ptr<NearTransport> within,
                std::unique_ptr<Transport> between)
      : Transport({.name = within->traits().name, .takes_folds = within->traits().takes_folds}),
        rank_(rank),
        within_(std::move(within)),
        between_(std::move(between)) {
    for (const int node : node_of_rank) {
      is_near_.push_back(node == node_of_rank[static_cast<size_t>(rank)] ? 1 : 0);
    }
  }

  absl::Status Reserve(int capacity) override {
    absl::Status status = within_->Reserve(capacity);
    if (status.ok()) status = between_->Reserve(capacity);
    if (!status.ok()) return status;
    capacity_ = std::max(capacity_, capacity);
    near_.reserve(static_cast<size_t>(capacity_));
    far_.reserve(static_cast<size_t>(capacity_));
    handed_over_.reserve(static_cast<size_t>(capacity_));
    return status;
  }

  absl::Status UseStaging(absl::Span<std::byte> staging) override {
    absl::Status status = within_->UseStaging(staging);
    return status.ok() ? between_->UseStaging(staging) : status;
  }

  absl::Status Start(absl::Span<const TransportOp> ops) override {
    const int size = static_cast<int>(is_near_.size());
    CheckOps(ops, rank_, size, traits());
    SLUICE_RETURN_IF_ERROR(CheckCapacity(CountOperations(ops), outstanding(), capacity_));
    near_.clear();
    far_.clear();
    for (const TransportOp& op : ops) {
      CheckFoldIsNear(op);
      (is_near_[static_cast<size_t>(op.peer)] != 0 ? near_ : far_).push_back(op);
    }
    // Only the network can refuse a batch now.
    if (!far_.empty()) {
      SLUICE_RETURN_IF_ERROR(between_->Start(far_));
    }
    if (near_.empty()) return absl::OkStatus();
    SLUICE_RETURN_IF_ERROR(within_->Start(near_));
    StartHandedOver();
    return absl::OkStatus();
  }

  absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) override {
    if (!broken_.ok()) return broken_;
    int count = 0;
    for (Transport* const transport :
         std::initializer_list<Transport*>{between_.get(), within_.get()}) {
      if (transport->outstanding() == 0) continue;
      SLUICE_ASSIGN_OR_RETURN(const int polled,
                              transport->Poll(events.subspan(static_cast<size_t>(count))));
      count += polled;
    }
    StartHandedOver();
    return count;
  }

  void Withdraw() override {
    within_->Withdraw();
    between_->Withdraw();
  }

  // Messages are not parted from while some may still be handed over to them: who has parted from
  // others starts nothing.
  bool Part() override {
    const bool within = within_->Part();
    StartHandedOver();
    if (!within && within_->may_hand_over()) {
      between_->Withdraw();
      return false;
    }
    return between_->Part() && within;
  }

  int outstanding() const override { return within_->outstanding() + between_->outstanding(); }

 private:
  // There is room for them: they were outstanding before.
  void StartHandedOver() {
    handed_over_.clear();
    within_->TakeHandedOver(&handed_over_);
    if (handed_over_.empty() || !broken_.ok()) return;
    broken_ = between_->Start(handed_over_);
  }
  void CheckFoldIsNear(const TransportOp& op) const {
    if (op.fold == nullptr) return;
    for (const FoldSource& source : op.fold->sources) {
      const bool is_near = source.peer < 0 || is_near_[static_cast<size_t>(source.peer)] != 0;
      SLUICE_CHECK(is_near, "a fold has a message from another node");
    }
  }

  const int rank_;
  std::vector<uint8_t> is_near_;  // by rank
  const std::unique_ptr<NearTransport> within_;
  const std::unique_ptr<Transport> between_;
  std::vector<TransportOp> near_;  // of one Start
  std::vector<TransportOp> far_;
  std::vector<TransportOp> handed_over_;
  absl::Status broken_;  // messages have refused what was handed over
  int capacity_ = 0;
};

}  // namespace

std::unique_ptr<Transport> MakeNodeTransport(int rank, absl::Span<const int> node_of_rank,
                                             std::unique_ptr<NearTransport> within,
                                             std::unique_ptr<Transport> between) {
  return std::make_unique<NodeTransport>(rank, node_of_rank, std::move(within), std::move(between));
}

}  // namespace sluice
