// Where the kernel copies nothing between processes: who copies what, and which bytes go as
// messages. Each rank is a thread.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "main/fails.h"
#include "transport/all_ok.h"
#include "transport/contract_content.h"
#include "transport/direct/direct_channel.h"
#include "transport/direct/direct_node.h"
#include "transport/direct_contract.h"
#include "transport/passing_fabric.h"
#include "transport/thread_ranks.h"

namespace sluice {
namespace {

constexpr int kTag = 5;
constexpr size_t kSharedBytes = size_t{12} << 20;  // several polls

// Counts what is started.
class CountedMessages final : public Transport {
 public:
  CountedMessages(std::unique_ptr<Transport> messages, std::atomic<int>* count)
      : Transport(messages->traits()), messages_(std::move(messages)), count_(count) {}

  absl::Status Reserve(int capacity) override { return messages_->Reserve(capacity); }
  absl::Status UseStaging(absl::Span<std::byte> staging) override {
    return messages_->UseStaging(staging);
  }
  absl::Status Start(absl::Span<const TransportOp> ops) override {
    *count_ += static_cast<int>(ops.size());
    return messages_->Start(ops);
  }
  absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) override {
    return messages_->Poll(events);
  }
  void Withdraw() override { messages_->Withdraw(); }
  bool Part() override { return messages_->Part(); }
  int outstanding() const override { return messages_->outstanding(); }

 private:
  const std::unique_ptr<Transport> messages_;
  std::atomic<int>* const count_;
};

class CountingFabric final : public PassingFabric {
 public:
  CountingFabric(std::unique_ptr<Fabric> inner, std::atomic<int>* count)
      : PassingFabric(std::move(inner)), count_(count) {}

  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport() override {
    return std::make_unique<CountedMessages>(*PassingFabric::OpenTransport(), count_);
  }

 private:
  std::atomic<int>* const count_;
};

struct Case {
  const char* name;
  bool source_shares;
  bool target_shares;
  int messages;  // that one transfer takes, sends and receives
};

class DirectLimitedTest : public testing::TestWithParam<Case> {
 protected:
  // Rank 0 sends to rank 1.
  void Run(const ContractScript& sender, const ContractScript& receiver) {
    const auto make = [this](std::unique_ptr<Fabric> fabric) {
      const bool shares = fabric->rank() == 0 ? GetParam().source_shares : GetParam().target_shares;
      return std::make_unique<ContractRank>(
          std::make_unique<CountingFabric>(std::move(fabric), &messages_),
          DirectContractMemory(shares ? kSharedBytes + (size_t{1} << 20) : 0,
                               KernelCopies::kNever));
    };
    RunOnThreads({0, 0}, make, [&](ContractRank& r) {
      r.Reserve(4 * DirectQueue::kCapacity);
      r.rank() == 0 ? sender(r) : receiver(r);
    });
  }
  void AwaitWord(int word) const {
    while (word_ < word) std::this_thread::yield();
  }

  std::atomic<int> messages_ = 0;
  std::atomic<int> word_ = 0;
};

class DirectCopiedTest : public DirectLimitedTest {};
class DirectSenderAloneTest : public DirectLimitedTest {};

constexpr Case kSharedToShared = {"SharedToShared", true, true, 0};
constexpr Case kSharedToPrivate = {"SharedToPrivate", true, false, 0};
constexpr Case kPrivateToShared = {"PrivateToShared", false, true, 0};
constexpr Case kPrivateToPrivate = {"PrivateToPrivate", false, false, 2};

std::string CaseName(const testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Memory, DirectLimitedTest,
                         testing::Values(kSharedToShared, kSharedToPrivate, kPrivateToShared,
                                         kPrivateToPrivate),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(Memory, DirectCopiedTest,
                         testing::Values(kSharedToShared, kSharedToPrivate, kPrivateToShared),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(Memory, DirectSenderAloneTest, testing::Values(kPrivateToShared),
                         CaseName);

struct Moved {
  size_t bytes;
  size_t row_bytes;
};

// The content of rows, or of one stretch, as it lies.
std::vector<std::byte> ContentOf(const Moved& moved, uint64_t seed) {
  return SpreadContent({moved.row_bytes, moved.row_bytes + moved.row_bytes / 2},
                       PatternContent(moved.bytes, seed));
}

// This rank's end, in memory of its own.
TransportOp OpOf(ContractRank& r, const Moved& moved, const std::vector<std::byte>& content) {
  std::byte* const data = r.Buffer(content.size());
  r.Write(data, content);
  TransportOp op =
      r.rank() == 0 ? r.Send(1, kTag, data, moved.bytes) : r.Receive(0, kTag, data, moved.bytes);
  op.row_bytes = moved.row_bytes;
  op.stride_bytes = moved.row_bytes + moved.row_bytes / 2;
  return op;
}

void ExpectOk(ContractRank& r, const TransportOp& op) {
  r.UntilEnded(op.cookie);
  EXPECT_TRUE(r.Outcome(op.cookie).ok()) << r.Outcome(op.cookie);
}

TEST_P(DirectLimitedTest, OnlyWhatNeitherEndReachesIsAMessage) {
  const std::vector<Moved> transfers = {
      {0, 0}, {1, 0}, {1000, 0}, {100'000, 0}, {1'200'000, 12}, {size_t{4} << 20, 0}, {999, 3}};
  const int with_bytes = static_cast<int>(transfers.size()) - 1;
  Run(
      [&](ContractRank& r) {
        for (size_t i = 0; i < transfers.size(); ++i) {
          const TransportOp op = OpOf(r, transfers[i], ContentOf(transfers[i], i));
          r.Start({op});
          ExpectOk(r, op);
        }
      },
      [&](ContractRank& r) {
        for (size_t i = 0; i < transfers.size(); ++i) {
          // Rows at the other end alone, every other time.
          const Moved own = {transfers[i].bytes, i % 2 == 0 ? transfers[i].row_bytes : 0};
          const std::vector<std::byte> expected = ContentOf(own, i);
          const TransportOp op =
              OpOf(r, own, std::vector<std::byte>(expected.size(), kContractGap));
          r.Start({op});
          ExpectOk(r, op);
          EXPECT_TRUE(AreSame(r.Read(op.data, expected.size()), expected)) << own.bytes;
        }
      });
  EXPECT_EQ(messages_, with_bytes * GetParam().messages);
}

TEST(DirectLimitTest, AllRanksKnowTheLimitAndNobodyFolds) {
  OnThreads({0, 0}, [](const std::unique_ptr<Fabric>& fabric) {
    const auto exchange = [&fabric](const absl::Status& status, const std::string& record) {
      return GatherIfAllOk(fabric.get(), status, record, absl::Minutes(2));
    };
    const auto node =
        DirectNode::Connect(fabric->rank(), fabric->node_of_rank(), exchange, KernelCopies::kNever);
    ASSERT_TRUE(node.ok()) << node.status();
    EXPECT_EQ(node->limit().rank, 0);
    EXPECT_EQ(node->limit().peer, 1);
    EXPECT_THAT(DescribeLimit(node->limit()),
                testing::AllOf(testing::HasSubstr("does not let rank 0, process"),
                               testing::HasSubstr("memory of rank 1, process")));
    const auto memory = DirectContractMemory(kSharedBytes, KernelCopies::kNever);
    EXPECT_FALSE((*memory->OpenTransport(fabric.get()))->traits().takes_folds);
  });
}

// More words than a queue holds wait at the receiver when the last of its own sends is over.
TEST_P(DirectLimitedTest, WordsThatWaitForRoomAreTold) {
  constexpr size_t kWords = DirectQueue::kCapacity;
  constexpr size_t kBytes = 3000;
  // Parts of a buffer from the `first` on.
  const auto start = [](ContractRank& r, TransportOp::Kind kind, std::byte* data, size_t count) {
    std::vector<TransportOp> ops;
    for (size_t i = 0; i < count; ++i) {
      std::byte* const part = data + i * kBytes;
      ops.push_back(kind == TransportOp::Kind::kSend ? r.Send(1 - r.rank(), kTag, part, kBytes)
                                                     : r.Receive(1 - r.rank(), kTag, part, kBytes));
    }
    r.Start(ops);
  };
  const auto end_all = [this](ContractRank& r) {
    r.UntilAllEnded();
    r.Until("the other rank's end", [this] { return word_ >= 7; });
  };
  Run(
      [&](ContractRank& r) {
        std::byte* const out = r.FilledBuffer(2 * kWords * kBytes, 3);
        start(r, TransportOp::Kind::kSend, out, kWords);
        word_ = 1;
        AwaitWord(2);
        start(r, TransportOp::Kind::kSend, out + kWords * kBytes, kWords);
        word_ = 3;
        AwaitWord(4);
        std::byte* const in = r.Buffer(kWords * kBytes);
        start(r, TransportOp::Kind::kReceive, in, kWords);
        r.Poll(0);
        word_ = 5;
        AwaitWord(6);
        ++word_;
        end_all(r);
        EXPECT_TRUE(r.Matches(in, kWords * kBytes, 4));
      },
      [&](ContractRank& r) {
        start(r, TransportOp::Kind::kSend, r.FilledBuffer(kWords * kBytes, 4), kWords);
        std::byte* const in = r.Buffer(2 * kWords * kBytes);
        start(r, TransportOp::Kind::kReceive, in, 2 * kWords);
        for (const int word : {1, 3, 5}) {
          AwaitWord(word);
          r.Poll(0);
          word_ = word + 1;
        }
        end_all(r);
        EXPECT_TRUE(r.Matches(in, 2 * kWords * kBytes, 3));
      });
}

// What has met ends as it would have, also where the other end copies it.
TEST_P(DirectCopiedTest, WithdrawLeavesWhatHasMetWhereItIsCopied) {
  constexpr Moved kAll = {kSharedBytes, 0};
  const std::vector<std::byte> content = ContentOf(kAll, 3);
  Run(
      [&](ContractRank& r) {
        const TransportOp op = OpOf(r, kAll, content);
        r.Start({op});
        ++word_;
        // Not polled before the receiver has taken back.
        AwaitWord(2);
        r.transport().Withdraw();
        ExpectOk(r, op);
      },
      [&](ContractRank& r) {
        AwaitWord(1);
        const TransportOp op = OpOf(r, kAll, std::vector<std::byte>(kSharedBytes));
        r.Start({op});
        r.Poll(1);
        r.transport().Withdraw();
        ++word_;
        ExpectOk(r, op);
        EXPECT_TRUE(AreSame(r.Read(op.data, kSharedBytes), content));
      });
}

// Nobody else can copy what is left.
TEST_P(DirectSenderAloneTest, FailsItsReceiveWhenItsTransportEnds) {
  constexpr Moved kAll = {kSharedBytes, 0};
  const std::vector<std::byte> content(kSharedBytes);
  Run(
      [&](ContractRank& r) {
        const TransportOp op = OpOf(r, kAll, content);
        r.Start({op});
        ++word_;
        AwaitWord(2);
        // It hears of its receive, and copies what one poll does: less than all.
        r.Poll(1);
        r.Forget(op);
        r.DestroyTransports();
      },
      [&](ContractRank& r) {
        const TransportOp op = OpOf(r, kAll, content);
        AwaitWord(1);
        r.Start({op});
        r.Poll(1);
        ++word_;
        r.UntilEnded(op.cookie);
        EXPECT_THAT(r.Outcome(op.cookie), Fails(absl::StatusCode::kUnavailable, "has given it up"));
      });
}

}  // namespace
}  // namespace sluice
