// Host memory and the `direct` transport, with the fabric's messages between nodes, for contract
// scripts.
#ifndef SLUICE_TESTS_TRANSPORT_DIRECT_CONTRACT_H_
#define SLUICE_TESTS_TRANSPORT_DIRECT_CONTRACT_H_

#include <cstddef>
#include <memory>

#include "transport/contract_rank.h"

namespace sluice {

// Buffers are private memory; or, up to `shared_bytes` of each transport, memory that the node
// shares.
std::unique_ptr<ContractMemory> DirectContractMemory(size_t shared_bytes);

// FailedPrecondition, on all ranks, where the kernel does not allow it. Collective.
absl::Status CheckDirect(Fabric* fabric);

}  // namespace sluice

#endif  // SLUICE_TESTS_TRANSPORT_DIRECT_CONTRACT_H_
