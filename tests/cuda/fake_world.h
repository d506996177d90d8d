// Ranks as threads of one process, each with a GPU of the fake CUDA runtime.
#ifndef SLUICE_TESTS_CUDA_FAKE_WORLD_H_
#define SLUICE_TESTS_CUDA_FAKE_WORLD_H_

#include <string>

#include "session/world.h"

namespace sluice::session_test {

// What carries buckets.
enum class FakeTransport {
  kMessages,  // the loopback's messages, through pinned staging
  kNccl,      // the fake NCCL
  kCudaIpc,
};

std::string NameOf(FakeTransport transport);

// As RunRanks. All ranks are on one node, which has a fake GPU for each of `gpus` of them.
void RunRanksOnFakeGpus(int size, int gpus, FakeTransport transport, const RankBody& body);

}  // namespace sluice::session_test

#endif  // SLUICE_TESTS_CUDA_FAKE_WORLD_H_
