// Who writes what of the bound, and how chunks are joined.
#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "baselines_rig.h"
#include "gtest/gtest.h"
#include "patient_fabric.h"
#include "reshard/baselines/baseline.h"
#include "reshard/baselines/peer_messages.h"
#include "reshard/baselines/wire.h"
#include "reshard/case_memory.h"

namespace sluice::bench {
namespace {

// Of the pieces of one rank's targets, each rank of the node writes as many as the others.
TEST(BoundTest, AllRanksWriteSharedTargets) {
  constexpr int64_t kElements = 4 << 20;  // 64 pieces
  auto wire = Wire::Create(kPatience).value();
  const std::unique_ptr<Session> session = MakeSession();
  for (const bool shared : {true, false}) {
    CasePlaces places;
    places.shared = shared ? session.get() : nullptr;
    const int owner = WorldSize() - 1;
    const TransferSpec spec = ToCopies({owner}, kElements);
    auto memory = CaseMemory::Create(spec, WorldRank(), 1, true, places).value();
    const std::unique_ptr<Baseline> bound = MakeBoundBaseline();
    ASSERT_TRUE(bound->Plan({&spec, memory.src(), memory.dst(), WorldRank(), wire.get()}).ok());
    ASSERT_TRUE(memory.PoisonTargets().ok());
    MPI_Barrier(wire->comm());
    if (WorldRank() != owner) {
      EXPECT_TRUE(bound->Run().ok());
    }
    MPI_Barrier(wire->comm());
    if (WorldRank() == owner) {
      const int64_t share = shared ? kElements / WorldSize() : kElements;
      EXPECT_NEAR(static_cast<double>(memory.CountWrongTargets()), static_cast<double>(share),
                  2 << 16);
      EXPECT_TRUE(bound->Run().ok());
      EXPECT_EQ(memory.CountWrongTargets(), 0);
    }
    MPI_Barrier(wire->comm());
  }
  EXPECT_TRUE(session->Close().ok());
}

TEST(JoinByPeerTest, SmallChunksAreOneMessageForEachPeerFromTheNextRankOn) {
  const std::vector<PeerChunk> chunks = {{0, 0, 0, 3}, {3, 1, 0, 8}, {0, 2, 0, 9}, {2, 3, 0, 1}};
  const std::vector<PeerMessage> messages = JoinByPeer(chunks, 1, 4, 1);
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].peer, 2);
  EXPECT_EQ(messages[0].bytes, 1) << "alone, so without padding";
  EXPECT_EQ(messages[1].peer, 3);
  EXPECT_EQ(messages[2].peer, 0);
  EXPECT_EQ(messages[2].bytes, 8 + 16);
  EXPECT_EQ(messages[2].chunks[1].index, 2u);
  EXPECT_EQ(JoinByPeer(chunks, 1, 4, -1)[0].peer, 0);
}

TEST(JoinByPeerTest, MuchIsCutIntoAFewMessages) {
  std::vector<PeerChunk> chunks;
  for (size_t i = 0; i < 1000; ++i) chunks.push_back({1, i, 0, 64 << 10});
  const std::vector<PeerMessage> messages = JoinByPeer(chunks, 0, 2, 1);
  ASSERT_EQ(messages.size(), static_cast<size_t>(kMostMessages));
  size_t next = 0;
  for (const PeerMessage& message : messages) {
    for (const PeerChunk& chunk : message.chunks) EXPECT_EQ(chunk.index, next++);
  }
  EXPECT_EQ(next, chunks.size());
  chunks.resize(20);  // 1.25 MiB
  EXPECT_EQ(JoinByPeer(chunks, 0, 2, 1).size(), 2u);
}

}  // namespace
}  // namespace sluice::bench
