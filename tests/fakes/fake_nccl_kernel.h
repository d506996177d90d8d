// Kernels of the fake NCCL: all sends and receives of one group of one communicator.
#ifndef SLUICE_TESTS_FAKES_FAKE_NCCL_KERNEL_H_
#define SLUICE_TESTS_FAKES_FAKE_NCCL_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fakes/fake_nccl_comm.h"

namespace sluice::fake_nccl {

struct Transfer {
  bool is_send;
  int peer;
  std::byte* data;  // as the host sees it
  size_t bytes;
  size_t count;
  ncclDataType_t type;
  bool is_registered;
  uint64_t message = 0;  // the how-manieth to or from the peer
  size_t moved = 0;
};

struct Kernel {
  std::shared_ptr<Comm> comm;
  uint64_t number = 0;  // of its communicator, from 1
  std::vector<Transfer> transfers;
};

// Returns when all is sent and received, or the communicator has failed or was aborted.
void Run(Kernel& kernel);

}  // namespace sluice::fake_nccl

#endif  // SLUICE_TESTS_FAKES_FAKE_NCCL_KERNEL_H_
