// Fabrics for tests of transports over UCX.
#include "transport/ucx_ranks.h"

#include <cstring>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
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

// Each rank's address, in a record of one length.
absl::StatusOr<std::vector<std::string>> ExchangeAddresses(Fabric* control,
                                                           const std::string& own) {
  constexpr size_t kRecordBytes = Fabric::kMaxRecordBytes;
  std::vector<std::byte> record(kRecordBytes);
  const size_t bytes = own.size();
  if (sizeof(bytes) + bytes > kRecordBytes) {
    return absl::ResourceExhaustedError("the address is too long for this test");
  }
  std::memcpy(record.data(), &bytes, sizeof(bytes));
  std::memcpy(record.data() + sizeof(bytes), own.data(), bytes);
  if (absl::Status status = control->StartAllGather(record); !status.ok()) return status;
  std::vector<std::byte> all;
  while (true) {
    const absl::StatusOr<bool> complete = control->PollAllGather(&all, nullptr);
    if (!complete.ok()) return complete.status();
    if (*complete) break;
    std::this_thread::yield();
  }
  std::vector<std::string> addresses;
  for (size_t at = 0; at < all.size(); at += kRecordBytes) {
    size_t length = 0;
    std::memcpy(&length, all.data() + at, sizeof(length));
    addresses.emplace_back(reinterpret_cast<const char*>(all.data() + at + sizeof(length)), length);
  }
  return addresses;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Fabric>> MakeUcxTestFabric(std::unique_ptr<Fabric> control) {
  auto worker = UcxWorker::Create(UcxTcp::kIfNamed);
  if (!worker.ok()) return worker.status();
  const auto addresses = ExchangeAddresses(control.get(), (*worker)->address());
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
