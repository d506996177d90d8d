// Ranks of a contract test whose buffers are in device memory.
#ifndef SLUICE_TESTS_TRANSPORT_CUDA_CONTRACT_H_
#define SLUICE_TESTS_TRANSPORT_CUDA_CONTRACT_H_

#include <memory>

#include "sluice/accelerator.h"
#include "transport/contract_rank.h"

namespace sluice {

// Nothing but a stream, on which nobody but its transport, and who has it, puts anything.
std::unique_ptr<Device> MakeStreamOnlyDevice(int ordinal);

// Memory of the device `ordinal`, with transports that `maker` opens. Fills and reads buffers in
// the order of the device's stream, as packing and unpacking do.
std::unique_ptr<ContractMemory> CudaContractMemory(int ordinal,
                                                   std::shared_ptr<TransportMaker> maker);

}  // namespace sluice

#endif  // SLUICE_TESTS_TRANSPORT_CUDA_CONTRACT_H_
