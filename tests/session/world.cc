// Threads that play ranks.
#include "session/world.h"

#include <barrier>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "transport/loopback/loopback.h"

namespace sluice::session_test {

bool WantsDirect() { return std::getenv("SLUICE_TEST_DIRECT") != nullptr; }

void RunRanks(int size, const RankBody& body) {
  // Two ranks per node, so that plans have nodes to think about.
  std::vector<int> node_of_rank;
  for (int rank = 0; rank < size; ++rank) node_of_rank.push_back(rank / 2);
  RunRanksOn(MakeLoopbackFabrics(std::move(node_of_rank)), body, WantsDirect());
}

void RunRanksOn(std::vector<std::unique_ptr<Fabric>> fabrics, const RankBody& body, bool direct) {
  const int size = static_cast<int>(fabrics.size());
  std::barrier<> meeting(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Rank self;
      self.rank = rank;
      self.size = size;
      self.fabric = std::move(fabrics[static_cast<size_t>(rank)]);
      self.direct = direct;
      self.meet = [&meeting] { meeting.arrive_and_wait(); };
      try {
        body(self);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
      meeting.arrive_and_drop();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace sluice::session_test
