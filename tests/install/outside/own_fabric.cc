// A fabric and a transport that are written outside of Sluice, against the installed headers alone:
// they count what passes through them to a local fabric.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/fabric.h"
#include "sluice/session.h"
#include "sluice/transport.h"

namespace {

std::atomic<int64_t> sent_bytes = 0;

class CountingTransport final : public sluice::Transport {
 public:
  explicit CountingTransport(std::unique_ptr<sluice::Transport> below)
      : Transport(below->traits()), below_(std::move(below)) {}

  absl::Status Reserve(int capacity) override { return below_->Reserve(capacity); }
  absl::Status UseStaging(absl::Span<std::byte> staging) override {
    return below_->UseStaging(staging);
  }
  absl::Status Start(absl::Span<const sluice::TransportOp> ops) override {
    for (const sluice::TransportOp& op : ops) {
      if (op.kind == sluice::TransportOp::Kind::kSend) {
        sent_bytes += static_cast<int64_t>(op.bytes);
      }
    }
    return below_->Start(ops);
  }
  absl::StatusOr<int> Poll(absl::Span<sluice::TransportEvent> events) override {
    return below_->Poll(events);
  }
  void Withdraw() override { below_->Withdraw(); }
  bool Part() override { return below_->Part(); }
  int outstanding() const override { return below_->outstanding(); }

 private:
  const std::unique_ptr<sluice::Transport> below_;
};

class OwnFabric final : public sluice::Fabric {
 public:
  explicit OwnFabric(std::unique_ptr<sluice::Fabric> below)
      : Fabric(below->rank(), {below->node_of_rank().begin(), below->node_of_rank().end()}),
        below_(std::move(below)) {}

  absl::Status StartAllGather(absl::Span<const std::byte> record) override {
    return below_->StartAllGather(record);
  }
  absl::StatusOr<bool> PollAllGather(std::vector<std::byte>* all,
                                     std::vector<int>* missing) override {
    return below_->PollAllGather(all, missing);
  }
  absl::Status Post(int dst, absl::Span<const std::byte> record) override {
    return below_->Post(dst, record);
  }
  bool PollPost(int* src, std::vector<std::byte>* record) override {
    return below_->PollPost(src, record);
  }
  absl::StatusOr<std::unique_ptr<sluice::Transport>> OpenTransport() override {
    absl::StatusOr<std::unique_ptr<sluice::Transport>> opened = below_->OpenTransport();
    if (!opened.ok()) return opened.status();
    return std::make_unique<CountingTransport>(*std::move(opened));
  }
  absl::Status CheckOtherThread() const override { return below_->CheckOtherThread(); }

 private:
  const std::unique_ptr<sluice::Fabric> below_;
};

// Rank 0 has a vector, rank 1 gets it.
absl::Status MoveAndCheck(std::unique_ptr<sluice::Fabric> fabric) {
  constexpr int64_t kElements = 100'000;
  sluice::SessionOptions options;
  options.direct = false;  // all of it as messages
  absl::StatusOr<std::unique_ptr<sluice::Session>> session =
      sluice::Session::Create(std::move(fabric), options);
  if (!session.ok()) return session.status();
  const int rank = (*session)->rank();
  const absl::StatusOr<sluice::Mesh> from = sluice::Mesh::Create({1}, {0});
  const absl::StatusOr<sluice::Mesh> to = sluice::Mesh::Create({1}, {1});
  if (!from.ok() || !to.ok()) return absl::InternalError("no mesh");
  sluice::TensorTransfer tensor;
  tensor.name = "vector";
  tensor.shape = {kElements};
  tensor.src = {*from, {sluice::Placement::Replicate()}};
  tensor.dst = {*to, {sluice::Placement::Replicate()}};
  const absl::StatusOr<sluice::Transfer*> transfer = (*session)->Compile({{tensor}});
  if (!transfer.ok()) return transfer.status();
  std::vector<float> memory(kElements, rank == 0 ? 17.0F : 0.0F);
  const std::vector<sluice::TensorView> views = {
      sluice::DenseView(memory.data(), {kElements}, sluice::DType::kF32)};
  const auto run = (*session)->Start(*transfer, views, views);
  if (!run.ok()) return run.status();
  if (absl::Status status = run->Wait(); !status.ok()) return status;
  for (const float element : memory) {
    if (element != 17.0F) return absl::DataLossError("a wrong element");
  }
  return (*session)->Close();
}

}  // namespace

int main() {
  auto fabrics = sluice::MakeLocalFabric(2);
  if (!fabrics.ok()) return 1;
  std::atomic<bool> failed = false;
  std::vector<std::thread> ranks;
  for (std::unique_ptr<sluice::Fabric>& fabric : *fabrics) {
    ranks.emplace_back([&fabric, &failed] {
      const absl::Status status = MoveAndCheck(std::make_unique<OwnFabric>(std::move(fabric)));
      if (status.ok()) return;
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      failed = true;
    });
  }
  for (std::thread& rank : ranks) rank.join();
  std::printf("%lld bytes passed through\n", static_cast<long long>(sent_bytes));
  return failed || sent_bytes < 400'000 ? 1 : 0;
}
