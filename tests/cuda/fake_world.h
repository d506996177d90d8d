// Ranks as threads of one process, each with a GPU of the fake CUDA runtime.
#ifndef SLUICE_TESTS_CUDA_FAKE_WORLD_H_
#define SLUICE_TESTS_CUDA_FAKE_WORLD_H_

#include <string>

#include "gtest/gtest.h"
#include "session/world.h"

namespace sluice::session_test {

// What carries buckets.
enum class FakeTransport {
  kMessages,        // the loopback's messages, through pinned staging
  kNccl,            // the fake NCCL
  kNcclRegistered,  // the same, through staging that it registers
  kCudaIpc,
  kCudaIpcOfPools,  // with most tensors in memory that other ranks cannot open
};

std::string NameOf(FakeTransport transport);

// For tests of all ways of carrying buckets.
inline auto FakeTransports() {
  return testing::Values(FakeTransport::kMessages, FakeTransport::kNccl, FakeTransport::kCudaIpc);
}
inline std::string NameOfParam(const testing::TestParamInfo<FakeTransport>& test) {
  return NameOf(test.param);
}

// As RunRanks. All ranks are on one node, which has a fake GPU for each of `gpus` of them, and
// before these `others` that no rank uses.
void RunRanksOnFakeGpus(int size, int gpus, FakeTransport transport, const RankBody& body,
                        int others = 0);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_CUDA_FAKE_WORLD_H_
