// Groups, one after the other, over messages with one tag.
#include "session/grouped_fabric.h"

#include <deque>
#include <utility>
#include <vector>

#include "sluice/transport.h"
#include "transport/loopback/loopback.h"
#include "transport/passing_fabric.h"

namespace sluice::session_test {
namespace {

class GroupedTransport final : public Transport {
 public:
  explicit GroupedTransport(std::unique_ptr<Transport> inner)
      : Transport({.name = "grouped", .in_groups = true, .takes_rows = false}),
        inner_(std::move(inner)) {}

  absl::Status Reserve(int capacity) override { return inner_->Reserve(capacity); }
  absl::Status UseStaging(absl::Span<std::byte> staging) override {
    return inner_->UseStaging(staging);
  }

  absl::Status Start(absl::Span<const TransportOp> ops) override {
    Group& group = waiting_.emplace_back(ops.begin(), ops.end());
    for (TransportOp& op : group) op.tag = 0;
    count_ += static_cast<int>(ops.size());
    return StartNext();
  }

  absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) override {
    absl::StatusOr<int> count = inner_->Poll(events);
    if (!count.ok()) return count;
    count_ -= *count;
    if (absl::Status status = StartNext(); !status.ok()) return status;
    return count;
  }

  void Withdraw() override {
    for (const Group& group : waiting_) count_ -= static_cast<int>(group.size());
    waiting_.clear();
    inner_->Withdraw();
  }
  int outstanding() const override { return count_; }

 private:
  using Group = std::vector<TransportOp>;

  absl::Status StartNext() {
    if (inner_->outstanding() > 0 || waiting_.empty()) return absl::OkStatus();
    const Group group = std::move(waiting_.front());
    waiting_.pop_front();
    return inner_->Start(group);
  }

  std::unique_ptr<Transport> inner_;
  std::deque<Group> waiting_;
  int count_ = 0;
};

class GroupedFabric final : public PassingFabric {
 public:
  using PassingFabric::PassingFabric;

  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport() override {
    absl::StatusOr<std::unique_ptr<Transport>> inner = inner_->OpenTransport();
    if (!inner.ok()) return inner;
    return std::make_unique<GroupedTransport>(*std::move(inner));
  }
};

}  // namespace

std::unique_ptr<Fabric> MakeGroupedFabric(std::unique_ptr<Fabric> inner) {
  return std::make_unique<GroupedFabric>(std::move(inner));
}

void RunRanksInGroups(int size, const RankBody& body) {
  std::vector<int> node_of_rank;
  for (int rank = 0; rank < size; ++rank) node_of_rank.push_back(rank / 2);
  std::vector<std::unique_ptr<Fabric>> fabrics = MakeLoopbackFabrics(node_of_rank);
  for (std::unique_ptr<Fabric>& fabric : fabrics) fabric = MakeGroupedFabric(std::move(fabric));
  RunRanksOn(std::move(fabrics), body);
}

}  // namespace sluice::session_test
