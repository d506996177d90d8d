// Devices and transports over the fakes.
#include "cuda/fake_world.h"

#include <utility>
#include <vector>

#include "fakes/fake_cuda.h"
#include "gtest/gtest.h"
#include "sluice/cuda.h"
#include "sluice/nccl.h"
#include "transport/loopback.h"

namespace sluice::session_test {
namespace {

absl::StatusOr<std::shared_ptr<TransportMaker>> MakeTransport(
    FakeTransport transport, const std::shared_ptr<Accelerator>& accelerator) {
  switch (transport) {
    case FakeTransport::kMessages:
      break;
    case FakeTransport::kNccl:
      return MakeNcclTransport(accelerator);
    case FakeTransport::kCudaIpc:
      return MakeCudaIpcTransport(accelerator);
  }
  return std::shared_ptr<TransportMaker>();
}

}  // namespace

std::string NameOf(FakeTransport transport) {
  switch (transport) {
    case FakeTransport::kMessages:
      return "Messages";
    case FakeTransport::kNccl:
      return "Nccl";
    case FakeTransport::kCudaIpc:
      return "CudaIpc";
  }
  return "";
}

void RunRanksOnFakeGpus(int size, int gpus, FakeTransport transport, const RankBody& body) {
  FakeCudaConfig config = FakeCudaConfiguration();
  config.devices = gpus;
  config.same_process_ipc = true;
  FakeCudaConfigure(config);
  RunRanksOn(MakeLoopbackFabrics(std::vector<int>(static_cast<size_t>(size), 0)), [&](Rank& self) {
    const auto accelerator = MakeCudaAccelerator({.ordinal = self.rank % gpus});
    ASSERT_TRUE(accelerator.ok()) << accelerator.status();
    const auto made = MakeTransport(transport, *accelerator);
    ASSERT_TRUE(made.ok()) << made.status();
    self.accelerator = *accelerator;
    self.transport = *made;
    body(self);
  });
}

}  // namespace sluice::session_test
