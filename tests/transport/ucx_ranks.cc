// Fabrics for tests of transports over UCX.
#include "transport/ucx_ranks.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "transport/all_ok.h"
#include "transport/passing_fabric.h"
#include "transport/thread_ranks.h"

namespace sluice {
namespace {

class UcxTestFabric final : public PassingFabric {
 public:
  UcxTestFabric(std::unique_ptr<Fabric> control, std::shared_ptr<UcxWorker> worker)
      : PassingFabric(std::move(control)), worker_(std::move(worker)) {}

  absl::StatusOr<bool> PollAllGather(std::vector<std::byte>* all,
                                     std::vector<int>* missing) override {
    worker_->Progress();
    return PassingFabric::PollAllGather(all, missing);
  }
  bool PollPost(int* src, std::vector<std::byte>* record) override {
    worker_->Progress();
    return PassingFabric::PollPost(src, record);
  }
  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport() override {
    return worker_->OpenTransport(opened_++);
  }
  absl::Status CheckOtherThread() const override { return absl::OkStatus(); }

 private:
  const std::shared_ptr<UcxWorker> worker_;
  int opened_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Fabric>> MakeUcxTestFabric(std::unique_ptr<Fabric> control) {
  auto worker = UcxWorker::Create(UcxTcp::kIfNamed);
  if (!worker.ok()) return worker.status();
  const auto addresses =
      GatherIfAllOk(control.get(), absl::OkStatus(), (*worker)->address(), absl::Minutes(2));
  if (!addresses.ok()) return addresses.status();
  if (absl::Status status = (*worker)->SetPeers(control->rank(), *addresses); !status.ok()) {
    return status;
  }
  return std::make_unique<UcxTestFabric>(std::move(control), *std::move(worker));
}

ContractWorld UcxThreads(std::string name, int size, UcxSettings settings) {
  const auto run = [size, settings](const ContractScript& script) {
    ApplyUcxSettings(settings);
    if (const std::string why = WhyNoUcx(); !why.empty()) GTEST_SKIP() << why;
    const auto make = [](std::unique_ptr<Fabric> control) {
      auto fabric = MakeUcxTestFabric(std::move(control));
      EXPECT_TRUE(fabric.ok()) << fabric.status();
      return std::make_unique<ContractRank>(*std::move(fabric));
    };
    std::vector<int> nodes;
    for (int rank = 0; rank < size; ++rank) nodes.push_back(rank);
    RunOnThreads(nodes, make, script);
  };
  return {std::move(name), run};
}

}  // namespace sluice
