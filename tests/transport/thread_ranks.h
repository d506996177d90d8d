// Runs contract scripts with a thread for each rank, over loopback fabrics or given ones.
#ifndef SLUICE_TESTS_TRANSPORT_THREAD_RANKS_H_
#define SLUICE_TESTS_TRANSPORT_THREAD_RANKS_H_

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "transport/loopback/loopback.h"
#include "transport/transport_contract.h"

namespace sluice {

using RankMaker = std::function<std::unique_ptr<ContractRank>(std::unique_ptr<Fabric> fabric)>;

// Over host memory.
std::unique_ptr<ContractRank> MakeHostRank(std::unique_ptr<Fabric> fabric);

// One rank on each fabric. Fails, and goes on, if a rank's script takes longer than `patience`.
void RunFabricsOnThreads(std::vector<std::unique_ptr<Fabric>> fabrics, const RankMaker& make,
                         const ContractScript& script, std::chrono::seconds patience);

// One rank on each of `nodes`. Fails, and goes on, if ranks are stuck for long.
void RunOnThreads(const std::vector<int>& nodes, const RankMaker& make,
                  const ContractScript& script,
                  LoopbackSends sends = LoopbackSends::kMeetTheirReceives);

// Calls `body` with each rank's fabric, on a thread for each.
void OnThreads(const std::vector<int>& nodes,
               const std::function<void(std::unique_ptr<Fabric> fabric)>& body,
               LoopbackSends sends = LoopbackSends::kMeetTheirReceives);

}  // namespace sluice

#endif  // SLUICE_TESTS_TRANSPORT_THREAD_RANKS_H_
