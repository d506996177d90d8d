// Memory that the fake NCCL gives out, and what is registered with its communicators.
#ifndef SLUICE_TESTS_FAKES_FAKE_NCCL_MEMORY_H_
#define SLUICE_TESTS_FAKES_FAKE_NCCL_MEMORY_H_

#include <cstddef>

#include "fakes/fake_nccl_comm.h"

namespace sluice::fake_nccl {

// Whether NCCL reaches all of it without buffers of its own.
bool IsRegistered(const Comm& comm, const std::byte* data, size_t bytes);

// How many registrations the communicator has.
size_t Registrations(const Comm& comm);

// Memory and counts, for FakeCudaCheckClean().
void ForgetMemory();

}  // namespace sluice::fake_nccl

#endif  // SLUICE_TESTS_FAKES_FAKE_NCCL_MEMORY_H_
