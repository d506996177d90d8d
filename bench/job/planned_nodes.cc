// All but the nodes is the fabric's own.
#include "job/planned_nodes.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "sluice/transport.h"

namespace sluice::bench {
namespace {

std::vector<int> NodesOfEach(int ranks, int ranks_per_node) {
  std::vector<int> nodes;
  for (int rank = 0; rank < ranks; ++rank) nodes.push_back(rank / ranks_per_node);
  return nodes;
}

class PlannedNodes final : public Fabric {
 public:
  PlannedNodes(std::unique_ptr<Fabric> fabric, int ranks_per_node)
      : Fabric(fabric->rank(), NodesOfEach(fabric->size(), ranks_per_node)),
        fabric_(std::move(fabric)) {}

  absl::Status StartAllGather(absl::Span<const std::byte> record) override {
    return fabric_->StartAllGather(record);
  }
  absl::StatusOr<bool> PollAllGather(std::vector<std::byte>* all,
                                     std::vector<int>* missing) override {
    return fabric_->PollAllGather(all, missing);
  }
  absl::Status Post(int dst, absl::Span<const std::byte> record) override {
    return fabric_->Post(dst, record);
  }
  bool PollPost(int* src, std::vector<std::byte>* record) override {
    return fabric_->PollPost(src, record);
  }
  absl::Status CheckRanks() override { return fabric_->CheckRanks(); }
  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport() override {
    return fabric_->OpenTransport();
  }
  absl::Status CheckOtherThread() const override { return fabric_->CheckOtherThread(); }

 private:
  const std::unique_ptr<Fabric> fabric_;
};

}  // namespace

std::unique_ptr<Fabric> PlanNodes(std::unique_ptr<Fabric> fabric, int ranks_per_node) {
  if (ranks_per_node <= 0) return fabric;
  return std::make_unique<PlannedNodes>(std::move(fabric), ranks_per_node);
}

}  // namespace sluice::bench
