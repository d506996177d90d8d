// Devices and transports over the fakes.
#include "cuda/fake_world.h"

#include <utility>
#include <vector>

#include "cuda/cuda_pool_accelerator.h"
#include "fakes/fake_cuda.h"
#include "gtest/gtest.h"
#include "sluice/cuda.h"
#include "sluice/nccl.h"
#include "transport/loopback/loopback.h"

namespace sluice::session_test {
namespace {

absl::StatusOr<std::shared_ptr<TransportMaker>> MakeTransport(
    FakeTransport transport, const std::shared_ptr<Accelerator>& accelerator) {
  switch (transport) {
    case FakeTransport::kMessages:
      break;
    case FakeTransport::kNccl:
      return MakeNcclTransport(accelerator);
    case FakeTransport::kNcclRegistered:
      return MakeNcclTransport(accelerator, {.register_staging = true});
    case FakeTransport::kCudaIpc:
    case FakeTransport::kCudaIpcOfPools:
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
    case FakeTransport::kNcclRegistered:
      return "NcclRegistered";
    case FakeTransport::kCudaIpc:
      return "CudaIpc";
    case FakeTransport::kCudaIpcOfPools:
      return "CudaIpcOfPools";
  }
  return "";
}

void RunRanksOnFakeGpus(int size, int gpus, FakeTransport transport, const RankBody& body,
                        int others) {
  FakeCudaConfig config = FakeCudaConfiguration();
  config.devices = others + gpus;
  config.same_process_ipc = true;
  // Ranks end one after the other, and close what they have open of others when they do.
  config.free_while_open = true;
  FakeCudaConfigure(config);
  RunRanksOn(MakeLoopbackFabrics(std::vector<int>(static_cast<size_t>(size), 0)), [&](Rank& self) {
    const auto accelerator = MakeCudaAccelerator({.ordinal = others + self.rank % gpus});
    ASSERT_TRUE(accelerator.ok()) << accelerator.status();
    const auto made = MakeTransport(transport, *accelerator);
    ASSERT_TRUE(made.ok()) << made.status();
    self.accelerator = *accelerator;
    if (transport == FakeTransport::kCudaIpcOfPools) self.accelerator = WithPools(*accelerator);
    self.transport = *made;
    body(self);
  });
}

}  // namespace sluice::session_test
