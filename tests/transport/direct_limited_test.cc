// Where the kernel copies nothing between processes: who copies what, and which bytes go as
// messages. Each rank is a thread.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/all_ok.h"
#include "transport/direct/direct_channel.h"
#include "transport/direct/direct_transport.h"
#include "transport/loopback/loopback.h"
#include "transport/node_transport.h"

namespace sluice {
namespace {

constexpr int kTag = 5;
constexpr int kCapacity = 4 * DirectQueue::kCapacity;
constexpr size_t kSharedBytes = size_t{12} << 20;  // several polls
constexpr auto kPatience = std::chrono::seconds(400);

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

// What the two ranks of a test share.
struct Shared {
  std::atomic<int> messages = 0;
  std::atomic<int> word = 0;
};

class Rank {
 public:
  Rank(std::unique_ptr<Fabric> fabric, bool shares, Shared* shared)
      : fabric_(std::move(fabric)), shared_(shared) {
    const auto exchange = [this](const absl::Status& status, const std::string& record) {
      return GatherIfAllOk(fabric_.get(), status, record, absl::Minutes(2));
    };
    auto node = DirectNode::Connect(fabric_->rank(), fabric_->node_of_rank(), exchange,
                                    KernelCopies::kNever);
    EXPECT_TRUE(node.ok()) << node.status();
    limit_ = node->limit();
    auto direct = std::make_unique<DirectTransport>(*std::move(node));
    auto memory = direct->node().Share(shares ? kSharedBytes : 0, exchange);
    EXPECT_TRUE(memory.ok()) << memory.status();
    memory_ = *std::move(memory);
    if (memory_ == nullptr) {
      memory_.reset(new std::byte[kSharedBytes], std::default_delete<std::byte[]>());
    }
    transport_ = MakeNodeTransport(
        fabric_->rank(), fabric_->node_of_rank(), std::move(direct),
        std::make_unique<CountedMessages>(*fabric_->OpenTransport(), &shared_->messages));
    EXPECT_TRUE(transport_->Reserve(kCapacity).ok());
  }

  int rank() const { return fabric_->rank(); }
  Shared& shared() { return *shared_; }
  const DirectLimit& limit() const { return limit_; }
  Transport& transport() { return *transport_; }
  void DestroyTransport() { transport_.reset(); }

  // All of `bytes` in its memory, in rows where `row_bytes` is not 0.
  TransportOp Op(TransportOp::Kind kind, size_t bytes, size_t row_bytes = 0) {
    TransportOp op = {kind, 1 - rank(), kTag, memory_.get(), bytes, 1};
    op.row_bytes = row_bytes;
    op.stride_bytes = row_bytes + row_bytes / 2;
    return op;
  }
  std::byte& ByteOf(const TransportOp& op, size_t i) {
    return op.data[op.row_bytes == 0 ? i : i / op.row_bytes * op.stride_bytes + i % op.row_bytes];
  }
  void Fill(const TransportOp& op, int seed) {
    for (size_t i = 0; i < op.bytes; ++i) ByteOf(op, i) = ByteAt(i, seed);
  }
  bool Matches(const TransportOp& op, int seed) {
    for (size_t i = 0; i < op.bytes; ++i) {
      if (ByteOf(op, i) != ByteAt(i, seed)) return false;
    }
    return true;
  }
  static std::byte ByteAt(size_t i, int seed) {
    return static_cast<std::byte>(i * 7 + i / 251 + static_cast<size_t>(seed));
  }

  void Start(const TransportOp& op) {
    const absl::Status status = transport_->Start({&op, 1});
    EXPECT_TRUE(status.ok()) << status;
  }
  // Polls until `done`; false: too long. Events other than `event` are errors.
  bool Until(const std::function<bool()>& done, TransportEvent* event) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      const auto polled = transport_->Poll({event, 1});
      EXPECT_TRUE(polled.ok()) << polled.status();
      if (!polled.ok()) return false;
      std::this_thread::yield();
    }
    return true;
  }
  absl::Status Outcome() {
    TransportEvent event;
    if (!Until([&] { return event.cookie != 0; }, &event)) {
      return absl::DeadlineExceededError("no event");
    }
    return event.status;
  }

 private:
  const std::unique_ptr<Fabric> fabric_;
  Shared* const shared_;
  DirectLimit limit_;
  std::shared_ptr<std::byte> memory_;
  std::unique_ptr<Transport> transport_;
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
  void Run(const std::function<void(Rank&)>& sender, const std::function<void(Rank&)>& receiver) {
    std::vector<std::thread> threads;
    for (auto& fabric : MakeLoopbackFabrics({0, 0})) {
      const bool sends = fabric->rank() == 0;
      threads.emplace_back([&, sends, own = std::move(fabric)]() mutable {
        Rank rank(std::move(own), sends ? GetParam().source_shares : GetParam().target_shares,
                  &shared_);
        sends ? sender(rank) : receiver(rank);
        // Memory stays until both have ended.
        ++ended_;
        while (ended_ < 2) std::this_thread::yield();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  Shared shared_;
  std::atomic<int> ended_ = 0;
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

TEST_P(DirectLimitedTest, OnlyWhatNeitherEndReachesIsAMessage) {
  const std::vector<std::pair<size_t, size_t>> transfers = {
      // bytes, bytes of a row
      {0, 0}, {1, 0}, {1000, 0}, {100'000, 0}, {1'200'000, 12}, {size_t{4} << 20, 0}, {999, 3}};
  const int with_bytes = static_cast<int>(transfers.size()) - 1;
  Run(
      [&](Rank& rank) {
        for (size_t i = 0; i < transfers.size(); ++i) {
          const TransportOp op =
              rank.Op(TransportOp::Kind::kSend, transfers[i].first, transfers[i].second);
          rank.Fill(op, static_cast<int>(i));
          rank.Start(op);
          EXPECT_TRUE(rank.Outcome().ok());
        }
      },
      [&](Rank& rank) {
        for (size_t i = 0; i < transfers.size(); ++i) {
          // Rows at the other end alone, every other time.
          const size_t row = i % 2 == 0 ? transfers[i].second : 0;
          const TransportOp op = rank.Op(TransportOp::Kind::kReceive, transfers[i].first, row);
          rank.Start(op);
          const absl::Status outcome = rank.Outcome();
          EXPECT_TRUE(outcome.ok()) << outcome;
          EXPECT_TRUE(rank.Matches(op, static_cast<int>(i))) << transfers[i].first;
        }
      });
  EXPECT_EQ(shared_.messages, with_bytes * GetParam().messages);
}

TEST_P(DirectLimitedTest, AllRanksKnowTheLimitAndNobodyFolds) {
  const auto check = [](Rank& rank) {
    EXPECT_EQ(rank.limit().rank, 0);
    EXPECT_EQ(rank.limit().peer, 1);
    EXPECT_THAT(DescribeLimit(rank.limit()), testing::HasSubstr("does not let rank 0, process"));
    EXPECT_THAT(DescribeLimit(rank.limit()), testing::HasSubstr("memory of rank 1, process"));
    EXPECT_FALSE(rank.transport().traits().takes_folds);
  };
  Run(check, check);
}

// More words than a queue holds wait at the receiver when the last of its own sends is over.
TEST_P(DirectLimitedTest, WordsThatWaitForRoomAreTold) {
  constexpr int kWords = static_cast<int>(DirectQueue::kCapacity);
  constexpr size_t kBytes = 3000;
  static_assert(4 * kWords * kBytes <= kSharedBytes);
  const auto start = [](Rank& rank, TransportOp::Kind kind, int first, int count) {
    std::vector<TransportOp> ops(static_cast<size_t>(count), rank.Op(kind, kBytes));
    for (TransportOp& op : ops) {
      op.data += static_cast<size_t>(first) * kBytes;
      if (kind == TransportOp::Kind::kSend) rank.Fill(op, first);
      ++first;
    }
    const absl::Status status = rank.transport().Start(ops);
    EXPECT_TRUE(status.ok()) << status;
    return ops;
  };
  const auto poll = [](Rank& rank) { EXPECT_TRUE(rank.transport().Poll({}).ok()); };
  const auto wait_for = [](Rank& rank, int word) {
    while (rank.shared().word < word) std::this_thread::yield();
  };
  const auto end_all = [](Rank& rank) {
    TransportEvent event;
    EXPECT_TRUE(rank.Until([&] { return rank.transport().outstanding() == 0; }, &event));
    EXPECT_TRUE(rank.Until([&] { return rank.shared().word >= 7; }, &event));
  };
  Run(
      [&](Rank& rank) {
        start(rank, TransportOp::Kind::kSend, 0, kWords);
        rank.shared().word = 1;
        wait_for(rank, 2);
        start(rank, TransportOp::Kind::kSend, kWords, kWords);
        rank.shared().word = 3;
        wait_for(rank, 4);
        start(rank, TransportOp::Kind::kReceive, 2 * kWords, kWords);
        poll(rank);
        rank.shared().word = 5;
        wait_for(rank, 6);
        ++rank.shared().word;
        end_all(rank);
      },
      [&](Rank& rank) {
        start(rank, TransportOp::Kind::kSend, 2 * kWords, kWords);
        const auto receives = start(rank, TransportOp::Kind::kReceive, 0, 2 * kWords);
        wait_for(rank, 1);
        poll(rank);
        rank.shared().word = 2;
        wait_for(rank, 3);
        poll(rank);
        rank.shared().word = 4;
        wait_for(rank, 5);
        poll(rank);
        rank.shared().word = 6;
        end_all(rank);
        for (int i = 0; i < 2 * kWords; ++i) {
          EXPECT_TRUE(rank.Matches(receives[static_cast<size_t>(i)], i)) << i;
        }
      });
}

// What has met ends as it would have, also where the other end copies it.
TEST_P(DirectCopiedTest, WithdrawLeavesWhatHasMetWhereItIsCopied) {
  constexpr size_t kBytes = kSharedBytes;
  Run(
      [&](Rank& rank) {
        const TransportOp op = rank.Op(TransportOp::Kind::kSend, kBytes);
        rank.Fill(op, 3);
        rank.Start(op);
        ++rank.shared().word;
        // Not polled before the receiver has taken back.
        while (rank.shared().word < 2) std::this_thread::yield();
        rank.transport().Withdraw();
        EXPECT_TRUE(rank.Outcome().ok());
      },
      [&](Rank& rank) {
        while (rank.shared().word < 1) std::this_thread::yield();
        const TransportOp op = rank.Op(TransportOp::Kind::kReceive, kBytes);
        rank.Start(op);
        TransportEvent event;
        EXPECT_TRUE(rank.transport().Poll({&event, 1}).ok());
        rank.transport().Withdraw();
        ++rank.shared().word;
        if (event.cookie == 0) event.status = rank.Outcome();
        EXPECT_TRUE(event.status.ok()) << event.status;
        EXPECT_TRUE(rank.Matches(op, 3));
      });
}

// Nobody else can copy what is left.
TEST_P(DirectSenderAloneTest, FailsItsReceiveWhenItsTransportEnds) {
  Run(
      [&](Rank& rank) {
        rank.Start(rank.Op(TransportOp::Kind::kSend, kSharedBytes));
        ++rank.shared().word;
        while (rank.shared().word < 2) std::this_thread::yield();
        // It hears of its receive, and copies what one poll does: less than all.
        TransportEvent event;
        EXPECT_TRUE(rank.transport().Poll({&event, 1}).ok());
        EXPECT_EQ(event.cookie, 0u);
        rank.DestroyTransport();
      },
      [&](Rank& rank) {
        const TransportOp op = rank.Op(TransportOp::Kind::kReceive, kSharedBytes);
        while (rank.shared().word < 1) std::this_thread::yield();
        rank.Start(op);
        TransportEvent event;
        EXPECT_TRUE(rank.transport().Poll({&event, 1}).ok());
        ++rank.shared().word;
        const absl::Status outcome = rank.Outcome();
        EXPECT_EQ(outcome.code(), absl::StatusCode::kUnavailable) << outcome;
        EXPECT_THAT(std::string(outcome.message()), testing::HasSubstr("has given it up"));
      });
}

}  // namespace
}  // namespace sluice
