// Ranks of one process, each with a thread.
#include "transport/thread_ranks.h"

#include <barrier>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "transport/loopback/loopback.h"

namespace sluice {
namespace {

// Under a sanitizer on a busy machine one fold of 3 MiB took 19 s.
constexpr std::chrono::seconds kPatience{400};

void RunOne(ContractRank& rank, const ContractScript& script, std::chrono::seconds patience) {
  if (!rank.Run(script, patience)) {
    ADD_FAILURE() << "stuck: " << rank.Position();
    return;
  }
  rank.CheckEnd();
}

// Calls `body` with each fabric, on a thread for each.
void OnThreadsOf(std::vector<std::unique_ptr<Fabric>> fabrics,
                 const std::function<void(std::unique_ptr<Fabric> fabric)>& body) {
  std::vector<std::thread> threads;
  threads.reserve(fabrics.size());
  for (auto& fabric : fabrics) {
    threads.emplace_back([&body](std::unique_ptr<Fabric> own) { body(std::move(own)); },
                         std::move(fabric));
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

std::unique_ptr<ContractRank> MakeHostRank(std::unique_ptr<Fabric> fabric) {
  return std::make_unique<ContractRank>(std::move(fabric));
}

void RunFabricsOnThreads(std::vector<std::unique_ptr<Fabric>> fabrics, const RankMaker& make,
                         const ContractScript& script, std::chrono::seconds patience) {
  std::barrier all_have_ended(static_cast<std::ptrdiff_t>(fabrics.size()));
  OnThreadsOf(std::move(fabrics), [&](std::unique_ptr<Fabric> fabric) {
    const std::unique_ptr<ContractRank> rank = make(std::move(fabric));
    RunOne(*rank, script, patience);
    rank->DestroyTransports();
    all_have_ended.arrive_and_wait();
  });
}

void RunOnThreads(const std::vector<int>& nodes, const RankMaker& make,
                  const ContractScript& script, LoopbackSends sends) {
  RunFabricsOnThreads(MakeLoopbackFabrics(nodes, sends), make, script, kPatience);
}

void OnThreads(const std::vector<int>& nodes,
               const std::function<void(std::unique_ptr<Fabric> fabric)>& body,
               LoopbackSends sends) {
  OnThreadsOf(MakeLoopbackFabrics(nodes, sends), body);
}

}  // namespace sluice
