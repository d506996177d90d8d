// Host memory and the `direct` transport, with the fabric's messages between nodes, for contract
// scripts.
#ifndef SLUICE_TESTS_TRANSPORT_DIRECT_CONTRACT_H_
#define SLUICE_TESTS_TRANSPORT_DIRECT_CONTRACT_H_

#include <cstddef>
#include <memory>

#include "transport/contract_rank.h"
#include "transport/direct/direct_node.h"

namespace sluice {

// Buffers are private memory; or, up to `shared_bytes` of each transport, memory that the node
// shares. Ranks may give different numbers.
std::unique_ptr<ContractMemory> DirectContractMemory(
    size_t shared_bytes, KernelCopies copies = KernelCopies::kWhereAllowed,
    PrivateCopies private_copies = PrivateCopies::kMeasured);

// FailedPrecondition, on all ranks, where the system does not allow it; or, for those that `fold`,
// where the kernel does not copy. Collective.
absl::Status CheckDirect(Fabric* fabric, bool fold);

}  // namespace sluice

#endif  // SLUICE_TESTS_TRANSPORT_DIRECT_CONTRACT_H_
