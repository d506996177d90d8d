// Ranks whose payload crosses over UCX, and whose control crosses through memory.
#ifndef SLUICE_TESTS_TRANSPORT_UCX_RANKS_H_
#define SLUICE_TESTS_TRANSPORT_UCX_RANKS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/fabric.h"
#include "transport/transport_contract.h"
#include "transport/ucx/ucx_worker.h"
#include "transport/ucx_settings.h"

namespace sluice {

// All that `control` does, but transports over UCX. Waits for the fabrics of all other ranks.
absl::StatusOr<std::unique_ptr<Fabric>> MakeUcxTestFabric(std::unique_ptr<Fabric> control);

// `size` ranks, each with a thread and a worker of its own.
ContractWorld UcxThreads(std::string name, int size, UcxSettings settings);

}  // namespace sluice

#endif  // SLUICE_TESTS_TRANSPORT_UCX_RANKS_H_
