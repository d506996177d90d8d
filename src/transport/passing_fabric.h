// A fabric that passes every call on to another one: for those that change few of the calls.
#ifndef SLUICE_SRC_TRANSPORT_PASSING_FABRIC_H_
#define SLUICE_SRC_TRANSPORT_PASSING_FABRIC_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sluice/fabric.h"
#include "sluice/transport.h"

namespace sluice {

class PassingFabric : public Fabric {
 public:
  explicit PassingFabric(std::unique_ptr<Fabric> inner)
      : Fabric(inner->rank(), {inner->node_of_rank().begin(), inner->node_of_rank().end()}),
        inner_(std::move(inner)) {}
  // With other nodes than the inner one's.
  PassingFabric(std::unique_ptr<Fabric> inner, std::vector<int> node_of_rank)
      : Fabric(inner->rank(), std::move(node_of_rank)), inner_(std::move(inner)) {}

  absl::Status StartAllGather(absl::Span<const std::byte> record) override {
    return inner_->StartAllGather(record);
  }
  absl::StatusOr<bool> PollAllGather(std::vector<std::byte>* all,
                                     std::vector<int>* missing) override {
    return inner_->PollAllGather(all, missing);
  }
  absl::Status Post(int dst, absl::Span<const std::byte> record) override {
    return inner_->Post(dst, record);
  }
  bool PollPost(int* src, std::vector<std::byte>* record) override {
    return inner_->PollPost(src, record);
  }
  absl::Status CheckRanks() override { return inner_->CheckRanks(); }
  bool HasLeft(int rank) const override { return inner_->HasLeft(rank); }
  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport() override {
    return inner_->OpenTransport();
  }
  WireReport DescribeWire(int peer) const override { return inner_->DescribeWire(peer); }
  absl::Status CheckOtherThread() const override { return inner_->CheckOtherThread(); }

 protected:
  const std::unique_ptr<Fabric> inner_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_PASSING_FABRIC_H_
