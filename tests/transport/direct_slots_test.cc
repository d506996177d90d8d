// Pieces through slots: their content, and transports and peers that stop half way.
#include "transport/direct/direct_slots.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "oracle/sampled.h"
#include "transport/direct/direct_copy.h"
#include "transport/direct_contract.h"
#include "transport/thread_ranks.h"

namespace sluice {
namespace {

constexpr int kTag = 3;
// More than all slots of a rank hold.
constexpr size_t kBytes = 3 * DirectSlots::kSlots * DirectSlots::kSlotBytes;

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

}  // namespace
}  // namespace sluice
