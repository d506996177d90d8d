// Pieces through slots: their content, and transports and peers that stop half way.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "oracle/sampled.h"
#include "transport/all_ok.h"
#include "transport/direct/direct_copy.h"
#include "transport/direct/direct_transport.h"
#include "transport/direct_contract.h"
#include "transport/thread_ranks.h"

namespace sluice {
namespace {

constexpr int kTag = 3;
// More than all slots of a rank hold.
constexpr size_t kBytes = DirectSlots::kSlotBytes * DirectSlots::kSlots * 3;

class DirectSlotsTest : public testing::Test {
 protected:
  void Run(int ranks, const ContractScript& script) {
    const auto make = [](std::unique_ptr<Fabric> fabric) {
      return std::make_unique<ContractRank>(
          std::move(fabric),
          DirectContractMemory(0, KernelCopies::kWhereAllowed, PrivateCopies::kBySlots));
    };
    RunOnThreads(std::vector<int>(static_cast<size_t>(ranks), 0), make, [&](ContractRank& r) {
      r.Reserve(4);
      script(r);
    });
  }
  void AwaitWord(int word) const {
    while (word_ < word) std::this_thread::yield();
  }
  static void Start(ContractRank& r, const TransportOp& op) { r.Start({op}); }
  // Rank 0's send, up to where the receiver has begun and all slots are packed.
  void Pack(ContractRank& r, const TransportOp& send) {
    Start(r, send);
    word_ = 1;
    AwaitWord(2);
    for (int i = 0; i < 10; ++i) r.Poll(1);
    word_ = 3;
  }
  // Its receive, which copies nothing by itself: it has not polled in vain for long enough.
  void Begin(ContractRank& r, const TransportOp& receive) {
    AwaitWord(1);
    Start(r, receive);
    r.Poll(1);
    word_ = 2;
    AwaitWord(3);
  }

  std::atomic<int> word_ = 0;
};

TEST(PackPieceTest, PiecesComeOutAsTheyWere) {
  std::mt19937_64 engine(oracle::FirstSeed());
  const auto below = [&engine](uint64_t end) { return engine() % end; };
  for (int round = 0; round < oracle::Sampled(300); ++round) {
    const auto rows = [&](uint64_t bytes) -> DirectRows {
      if (below(3) == 0) return {bytes, 0, 0};
      const uint64_t row = 1 + below(3) * 700 + below(40);
      return {bytes, row, row + below(3) * 16};
    };
    const uint64_t bytes = 1 + below(20'000);
    const DirectRows from_rows = rows(bytes);
    const DirectRows to_rows = rows(bytes);
    const uint64_t begin = below(bytes);
    const uint64_t end = begin + 1 + below(bytes - begin);
    std::vector<std::byte> from(from_rows.Extent());
    for (std::byte& each : from) each = static_cast<std::byte>(below(255));
    std::vector<std::byte> to(to_rows.Extent(), std::byte{255});
    std::vector<std::byte> expected = to;
    std::vector<std::byte> slot(end - begin);
    PackPiece(from.data(), from_rows, begin, end, slot.data());
    UnpackPiece(slot.data(), to.data(), to_rows, begin, end,
                below(2) == 0 ? WriteHint::kPlain : WriteHint::kStreaming);
    for (uint64_t i = begin; i < end; ++i) {
      expected[to_rows.OffsetOf(i)] = from[from_rows.OffsetOf(i)];
    }
    ASSERT_EQ(to, expected) << "round " << round;
  }
}

TEST(SlotsAreFasterTest, AnswersAlike) { EXPECT_EQ(SlotsAreFaster(), SlotsAreFaster()); }

// A receiver that has begun and does not poll keeps all slots. Others are served meanwhile.
TEST_F(DirectSlotsTest, AReceiverThatDoesNotPollHoldsNobodyUp) {
  Run(3, [this](ContractRank& r) {
    if (r.rank() == 0) {
      std::byte* const data = r.FilledBuffer(kBytes, 1);
      Pack(r, r.Send(1, kTag, data, kBytes));
      const TransportOp second = r.Send(2, kTag, data, kBytes);
      Start(r, second);
      r.UntilEnded(second.cookie);
      word_ = 4;
      return r.UntilAllEnded();
    }
    std::byte* const data = r.Buffer(kBytes);
    const TransportOp receive = r.Receive(0, kTag, data, kBytes);
    if (r.rank() == 1) {
      Begin(r, receive);
      AwaitWord(4);
      // The sender packs, and writes nothing here.
      EXPECT_TRUE(std::all_of(data, data + kBytes, [&](std::byte each) { return each == *data; }));
    } else {
      Start(r, receive);
    }
    r.UntilEnded(receive.cookie);
    EXPECT_TRUE(r.Outcome(receive.cookie).ok()) << r.Outcome(receive.cookie);
    EXPECT_TRUE(r.Matches(data, kBytes, 1));
  });
}

// The sender's pieces lie in slots when the receiver's transport goes.
TEST_F(DirectSlotsTest, AReceiverThatPartsEndsItsSendsAndFreesTheSlots) {
  Run(3, [this](ContractRank& r) {
    if (r.rank() == 0) {
      std::byte* const data = r.FilledBuffer(kBytes, 2);
      const TransportOp lost = r.Send(1, kTag, data, kBytes);
      Pack(r, lost);
      r.UntilEnded(lost.cookie);
      EXPECT_THAT(r.Outcome(lost.cookie), Fails(absl::StatusCode::kUnavailable, "given it up"));
      const TransportOp second = r.Send(2, kTag, data, kBytes);
      Start(r, second);
      return r.UntilEnded(second.cookie);
    }
    std::byte* const data = r.Buffer(kBytes);
    const TransportOp receive = r.Receive(0, kTag, data, kBytes);
    if (r.rank() == 1) {
      Begin(r, receive);
      r.Forget(receive);
      return r.DestroyTransports();
    }
    Start(r, receive);
    r.UntilEnded(receive.cookie);
    EXPECT_TRUE(r.Matches(data, kBytes, 2));
  });
}

// Takes back a receive whose pieces lie in slots: it ends as it would have.
TEST_F(DirectSlotsTest, WithdrawKeepsWhatHasBeenPacked) {
  Run(2, [this](ContractRank& r) {
    if (r.rank() == 0) {
      const TransportOp send = r.Send(1, kTag, r.FilledBuffer(kBytes, 4), kBytes);
      Pack(r, send);
      r.transport().Withdraw();
      r.UntilEnded(send.cookie);
      EXPECT_TRUE(r.Outcome(send.cookie).ok()) << r.Outcome(send.cookie);
      return;
    }
    std::byte* const data = r.Buffer(kBytes);
    const TransportOp receive = r.Receive(0, kTag, data, kBytes);
    Begin(r, receive);
    r.transport().Withdraw();
    r.UntilEnded(receive.cookie);
    EXPECT_TRUE(r.Outcome(receive.cookie).ok()) << r.Outcome(receive.cookie);
    EXPECT_TRUE(r.Matches(data, kBytes, 4));
  });
}

// Transports of a node whose calls come one after another, as a test says.
class SlotsInTurn : public testing::Test {
 protected:
  static constexpr size_t kPiece = DirectSlots::kSlotBytes;
  // Words that fill a queue.
  static constexpr int kWords = static_cast<int>(DirectQueue::kCapacity);

  void Connect(int ranks) {
    transports_.resize(static_cast<size_t>(ranks));
    OnThreads(std::vector<int>(static_cast<size_t>(ranks), 0),
              [this](const std::unique_ptr<Fabric>& fabric) {
                auto node = DirectNode::Connect(
                    fabric->rank(), fabric->node_of_rank(),
                    [&fabric](const absl::Status& status, const std::string& record) {
                      return GatherIfAllOk(fabric.get(), status, record, absl::Minutes(2));
                    });
                ASSERT_TRUE(node.ok()) << node.status();
                auto& transport = transports_[static_cast<size_t>(fabric->rank())];
                transport =
                    std::make_unique<DirectTransport>(*std::move(node), PrivateCopies::kBySlots);
                ASSERT_TRUE(transport->Reserve(4 * kWords).ok());
              });
  }
  DirectTransport& At(int rank) { return *transports_[static_cast<size_t>(rank)]; }
  void End(int rank) { transports_[static_cast<size_t>(rank)].reset(); }
  void Send(int rank, std::byte* data, size_t bytes, int tag) {
    Start(rank, {TransportOp::Kind::kSend, 0, tag, data, bytes, 1});
  }
  void Receive(int from, std::byte* data, size_t bytes) {
    Start(0, {TransportOp::Kind::kReceive, from, kTag, data, bytes, 2});
  }
  // Offers that nobody takes.
  void FillQueue(int rank, int words) {
    for (int i = 0; i < words; ++i) Send(rank, small_.data(), small_.size(), kTag + 1);
  }
  // The outcomes of operations that ended.
  std::vector<absl::Status> Poll(int rank) {
    std::vector<TransportEvent> events(size_t{4} * kWords);
    const absl::StatusOr<int> count = At(rank).Poll(absl::MakeSpan(events));
    EXPECT_TRUE(count.ok()) << count.status();
    std::vector<absl::Status> outcomes;
    for (int i = 0; i < count.value_or(0); ++i) {
      outcomes.push_back(events[static_cast<size_t>(i)].status);
    }
    return outcomes;
  }

 private:
  void Start(int rank, const TransportOp& op) { ASSERT_TRUE(At(rank).Start({&op, 1}).ok()); }

  std::vector<std::unique_ptr<DirectTransport>> transports_;
  std::array<std::byte, 8> small_ = {};
};

// The receiver has copied what nobody had claimed, some pieces are told of and the others are not
// to come. The receive ends once it has emptied the slots that it knows.
TEST_F(SlotsInTurn, AReceiveOutlivesThePiecesThatItWasToldOf) {
  constexpr int kRanks = 6;
  constexpr size_t kSlots = DirectSlots::kSlots;
  Connect(kRanks);
  std::vector<std::byte> source(12 * kPiece, std::byte{7});
  std::vector<std::vector<std::byte>> targets(kRanks, std::vector<std::byte>(12 * kPiece));
  const auto bytes = [](int rank) { return (rank == kRanks - 1 ? 12 : kSlots) * kPiece; };
  for (int rank = 1; rank < kRanks; ++rank) {
    Send(rank, source.data(), bytes(rank), kTag);
    Receive(rank, targets[static_cast<size_t>(rank)].data(), bytes(rank));
  }
  Poll(0);
  for (int rank = 1; rank < kRanks; ++rank) {
    FillQueue(rank, rank == kRanks - 1 ? 2 * kWords - 4 : kWords);
    Poll(rank);
  }
  EXPECT_FALSE(At(0).Part());
  Poll(0);
  for (int rank = 1; rank < kRanks - 1; ++rank) Poll(rank);
  End(kRanks - 1);
  // A poll's worth of the others' pieces comes first.
  int ended = static_cast<int>(Poll(0).size());
  EXPECT_EQ(ended, kRanks - 2);
  int failed = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (ended < kRanks - 1 && std::chrono::steady_clock::now() < until) {
    for (const absl::Status& outcome : Poll(0)) {
      ++ended;
      if (!outcome.ok()) ++failed;
    }
  }
  EXPECT_EQ(ended, kRanks - 1);
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(At(0).outstanding(), 0);
  for (int rank = 1; rank < kRanks - 1; ++rank) {
    const auto& target = targets[static_cast<size_t>(rank)];
    EXPECT_TRUE(std::all_of(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(bytes(1)),
                            [](std::byte each) { return each == std::byte{7}; }));
  }
}

// A sender that has nothing outstanding need not poll. So its send does not end while words about
// its pieces wait for room.
TEST_F(SlotsInTurn, ASendTellsOfItsPiecesBeforeItEnds) {
  Connect(2);
  std::vector<std::byte> source(24 * kPiece, std::byte{7});
  std::vector<std::byte> target(source.size());
  Send(1, source.data(), source.size(), kTag);
  Receive(1, target.data(), target.size());
  Poll(0);
  FillQueue(1, kWords);
  Poll(1);  // packs, and has no room for the words
  DirectClaims& claims = At(0).node().claims(0);
  ASSERT_TRUE(claims.used());
  claims.FailRest(EPERM);  // as if the receiver could not copy a piece
  claims.Close();
  EXPECT_TRUE(Poll(1).empty());
  Poll(0);
  EXPECT_EQ(Poll(1).size(), 1U);
  std::vector<absl::Status> received;
  for (int i = 0; i < 3 && received.empty(); ++i) received = Poll(0);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_FALSE(received[0].ok());
}

}  // namespace
}  // namespace sluice
