// Folds whose peers end, or whose memory is not there; each rank is a process. And what a fold
// allocates.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "session/base/backoff.h"
#include "session/heap_bytes.h"
#include "transport/direct/direct_transport.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr int kRanks = 3;
constexpr int kTag = 5;
constexpr size_t kBytes = size_t{24} << 20;  // several polls
constexpr auto kPatience = std::chrono::seconds(400);

// What the processes of a test share beside the transport.
struct Shared {
  std::array<std::atomic<int>, kRanks> exchanges;
  std::array<std::array<char, kMaxDirectRecordBytes>, kRanks> records;
  std::atomic<int> word;  // from rank 0 to the others, and back
};

// Waits for other processes; false: too long.
bool Until(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  Backoff idle;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    idle.Pause();
  }
  return true;
}

class Rank {
 public:
  Rank(int rank, Shared* shared, bool share_memory) : rank_(rank), shared_(shared) {
    const std::vector<int> nodes(kRanks, 0);
    const auto exchange = [this](const absl::Status& status, const std::string& record) {
      return Exchange(status, record);
    };
    auto node = DirectNode::Connect(rank, nodes, exchange);
    status_ = node.status();
    if (node.ok() && node->is_limited()) {
      status_ = absl::FailedPreconditionError(DescribeLimit(node->limit()));
    }
    if (!status_.ok()) return;
    transport_ = std::make_unique<DirectTransport>(*std::move(node));
    status_ = transport_->Reserve(8);
    if (!share_memory) return;
    auto memory = transport_->node().Share(kBytes, exchange);
    status_.Update(memory.status());
    if (memory.ok()) memory_ = *std::move(memory);
  }

  const absl::Status& status() const { return status_; }
  Shared& shared() { return *shared_; }
  DirectTransport& transport() { return *transport_; }

  std::byte* Filled(std::byte value) {
    if (memory_ == nullptr)
      memory_.reset(new std::byte[kBytes], std::default_delete<std::byte[]>());
    std::memset(memory_.get(), static_cast<int>(value), kBytes);
    return memory_.get();
  }
  TransportOp Send(std::byte* data) { return {TransportOp::Kind::kSend, 0, kTag, data, kBytes, 1}; }
  bool Started(const TransportOp& op) { return transport_->Start({&op, 1}).ok(); }
  // Polls until the event of the one operation; DeadlineExceeded if none comes.
  absl::Status Outcome() {
    TransportEvent event;
    const bool ended = Until([&] {
      const auto polled = transport_->Poll({&event, 1});
      return !polled.ok() || *polled == 1;
    });
    return ended ? event.status : absl::DeadlineExceededError("no event");
  }
  // What a sender that is not at fault does: 0 if its send ends in vain.
  int SendInVain() {
    if (!Started(Send(Filled(std::byte{1})))) return 2;
    const absl::Status outcome = Outcome();
    const bool named = outcome.message().find("rank 0, process") != absl::string_view::npos;
    return absl::IsUnavailable(outcome) && named ? 0 : 3;
  }

 private:
  absl::StatusOr<std::vector<std::string>> Exchange(const absl::Status& status,
                                                    const std::string& record) {
    // Two rounds: what is there, and that all have read it.
    std::memcpy(shared_->records[static_cast<size_t>(rank_)].data(), record.data(), record.size());
    ++exchanges_;
    Meet();
    std::vector<std::string> records;
    for (const auto& each : shared_->records) records.emplace_back(each.data(), record.size());
    ++exchanges_;
    Meet();
    if (!status.ok()) return status;
    return records;
  }
  void Meet() {
    shared_->exchanges[static_cast<size_t>(rank_)].store(exchanges_);
    const bool all = Until([this] {
      for (const auto& each : shared_->exchanges) {
        if (each.load() < exchanges_) return false;
      }
      return true;
    });
    if (!all) _exit(4);
  }

  const int rank_;
  Shared* const shared_;
  int exchanges_ = 0;
  absl::Status status_;
  std::unique_ptr<DirectTransport> transport_;
  std::shared_ptr<std::byte> memory_;
};

// Rank 0 is this process, and folds what the other two send it.
class DirectFoldFaultsTest : public testing::TestWithParam<bool> {
 protected:
  using Body = std::function<int(Rank&)>;

  void SetUp() override {
    void* const memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    shared_ = new (memory) Shared();
  }
  void TearDown() override {
    rank_.reset();
    for (pid_t& child : children_) EndChild(&child);
    munmap(shared_, sizeof(Shared));
  }

  // Starts the others, of which `first` and `second` are what they do and exit with. False: it has
  // failed, or such copies are not allowed here.
  bool Start(const Body& first, const Body& second) {
    const std::array<Body, 2> bodies = {first, second};
    for (int rank = 1; rank < kRanks; ++rank) {
      const pid_t child = fork();
      if (child == 0) _exit(Child(rank, bodies[static_cast<size_t>(rank - 1)]));
      children_[static_cast<size_t>(rank - 1)] = child;
    }
    rank_ = std::make_unique<Rank>(0, shared_, GetParam());
    const absl::Status& status = rank_->status();
    if (!status.ok() && !absl::IsFailedPrecondition(status)) ADD_FAILURE() << status;
    if (absl::IsFailedPrecondition(status)) Skip(status);
    return status.ok();
  }
  static void Skip(const absl::Status& status) { GTEST_SKIP() << status; }
  int Child(int rank, const Body& body) {
    Rank self(rank, shared_, GetParam());
    return self.status().ok() ? body(self) : 5;
  }

  Rank& rank() { return *rank_; }
  static void EndChild(pid_t* child) {
    if (*child == 0) return;
    kill(*child, SIGKILL);
    waitpid(*child, nullptr, 0);
    *child = 0;
  }
  void Kill(int rank) { EndChild(&children_[static_cast<size_t>(rank - 1)]); }
  void ExpectGoodEnd(int rank) {
    pid_t& child = children_[static_cast<size_t>(rank - 1)];
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    child = 0;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }

  TransportOp FoldOfBoth() {
    TransportOp op = {TransportOp::Kind::kReceive, 1, kTag, rank().Filled(std::byte{9}), kBytes, 1};
    op.fold = &fold_;
    return op;
  }
  void ExpectNames(const absl::Status& outcome, int dead) {
    EXPECT_THAT(outcome, Fails(absl::StatusCode::kUnavailable,
                               testing::AllOf(HasSubstr("from rank " + std::to_string(dead)),
                                              HasSubstr("has ended"))));
  }

 private:
  Shared* shared_ = nullptr;
  std::unique_ptr<Rank> rank_;
  std::array<pid_t, 2> children_ = {};
  const std::array<FoldSource, 2> sources_ = {FoldSource{1, kTag}, FoldSource{2, kTag}};
  const Fold fold_ = {ReduceOp::kSum, DType::kI32, 1, sources_};
};

int WaitForEver(Rank& /*rank*/) {
  for (;;) pause();
}
// Sends, says so, and is never heard of again.
int SendAndWait(Rank& rank) {
  if (!rank.Started(rank.Send(rank.Filled(std::byte{2})))) return 2;
  ++rank.shared().word;
  return WaitForEver(rank);
}
int SendInVain(Rank& rank) { return rank.SendInVain(); }
int SendInVainLater(Rank& rank) {
  return Until([&] { return rank.shared().word.load() == 2; }) ? rank.SendInVain() : 1;
}
int SendAndEnd(Rank& rank) {
  if (!rank.Started(rank.Send(rank.Filled(std::byte{2})))) return 2;
  return rank.Outcome().ok() ? 0 : 3;
}

// Words that no transport writes, about a send of rank 0's.
enum Nonsense { kNoOperation, kOldGeneration, kNoClaims, kNoSegment, kNoKind, kOfferOfNoSegment };
constexpr std::array kNonsense = {kNoOperation, kOldGeneration, kNoClaims,
                                  kNoSegment,   kNoKind,        kOfferOfNoSegment};

int WriteNonsense(Rank& rank, Nonsense nonsense) {
  DirectPeer& peer = rank.transport().node().peers()[0];
  DirectMessage offer;
  if (!Until([&] { return peer.in().Pop(&offer); })) return 1;
  DirectMessage word = offer;
  word.kind = DirectMessage::Kind::kAccept;
  if (nonsense == kNoOperation) word.op = 1'000'000;
  if (nonsense == kOldGeneration) {  // that an older send has ended
    --word.generation;
    word.kind = DirectMessage::Kind::kDone;
  }
  if (nonsense == kNoClaims) word.claims = DirectNode::kClaims;
  if (nonsense == kNoSegment || nonsense == kOfferOfNoSegment) word.place.segment = 77;
  if (nonsense == kNoKind) word.kind = static_cast<DirectMessage::Kind>(99);
  if (nonsense == kOfferOfNoSegment) word.kind = DirectMessage::Kind::kOffer;
  return peer.out().Push(word) ? WaitForEver(rank) : 2;
}

INSTANTIATE_TEST_SUITE_P(Memory, DirectFoldFaultsTest, testing::Bool(),
                         [](const auto& memory) { return memory.param ? "Shared" : "Private"; });

// Nothing is read or written where such a word says, and memory stays in use: who writes such words
// may write more.
TEST_P(DirectFoldFaultsTest, WordsThatMakeNoSenseEndTheTransport) {
  for (const Nonsense nonsense : kNonsense) {
    if (!Start([nonsense](Rank& self) { return WriteNonsense(self, nonsense); }, WaitForEver)) {
      return;
    }
    TransportOp send = rank().Send(rank().Filled(std::byte{3}));
    send.peer = 1;
    ASSERT_TRUE(rank().Started(send));
    absl::Status status;
    EXPECT_TRUE(Until([&] {
      status = rank().transport().Poll({}).status();
      return !status.ok();
    })) << nonsense;
    EXPECT_THAT(status, Fails(absl::StatusCode::kInternal, "rank 1, process"));
    EXPECT_EQ(rank().transport().outstanding(), 1);
    EXPECT_FALSE(rank().transport().Part());
    TearDown();
    SetUp();
  }
}

TEST_P(DirectFoldFaultsTest, APeerThatEndsBeforeItSends) {
  if (!Start(WaitForEver, SendInVain)) return;
  ASSERT_TRUE(rank().Started(FoldOfBoth()));
  Kill(1);
  ExpectNames(rank().Outcome(), 1);
  // The other's message may come only now.
  EXPECT_TRUE(Until([&] {
    static_cast<void>(rank().transport().Poll({}));
    return rank().transport().outstanding() == 0;
  }));
  ExpectGoodEnd(2);
}

TEST_P(DirectFoldFaultsTest, APeerThatEndsBeforeTheOtherSends) {
  if (!Start(SendAndWait, SendInVainLater)) return;
  ASSERT_TRUE(Until([&] { return rank().shared().word.load() == 1; }));
  ASSERT_TRUE(rank().Started(FoldOfBoth()));
  TransportEvent event;
  ASSERT_EQ(*rank().transport().Poll({&event, 1}), 0);
  Kill(1);
  ExpectNames(rank().Outcome(), 1);
  rank().shared().word = 2;
  EXPECT_TRUE(Until([&] {
    static_cast<void>(rank().transport().Poll({}));
    return rank().transport().outstanding() == 0;
  }));
  ExpectGoodEnd(2);
}

TEST_P(DirectFoldFaultsTest, APeerThatHasEndedWhenTheFoldBegins) {
  if (!Start(WaitForEver, SendInVain)) return;
  Kill(2);
  Kill(1);
  ASSERT_TRUE(rank().Started(FoldOfBoth()));
  ExpectNames(rank().Outcome(), 1);
  ASSERT_TRUE(rank().Started(FoldOfBoth()));
  ExpectNames(rank().Outcome(), 1);
  EXPECT_EQ(rank().transport().outstanding(), 0);
}

// What is mapped here stays, and is as good as it was; what is not is gone.
TEST_P(DirectFoldFaultsTest, APeerThatEndsInTheMiddle) {
  const Body send_maybe_in_vain = [](Rank& rank) {
    const int outcome = SendAndEnd(rank);
    return outcome == 3 ? 0 : outcome;
  };
  if (!Start(SendAndWait, send_maybe_in_vain)) return;
  ASSERT_TRUE(Until([&] { return rank().shared().word.load() == 1; }));
  const TransportOp fold = FoldOfBoth();
  ASSERT_TRUE(rank().Started(fold));
  TransportEvent event;
  // Until it has begun to write.
  ASSERT_TRUE(Until([&] {
    EXPECT_EQ(*rank().transport().Poll({&event, 1}), 0);
    return fold.data[0] != std::byte{9};
  }));
  Kill(1);
  const absl::Status outcome = rank().Outcome();
  if (GetParam()) {
    EXPECT_TRUE(outcome.ok()) << outcome;
    EXPECT_EQ(fold.data[kBytes - 1], std::byte{4});
  } else {
    ExpectNames(outcome, 1);
    EXPECT_EQ(fold.data[kBytes - 1], std::byte{9});
  }
  EXPECT_EQ(rank().transport().outstanding(), 0);
  ExpectGoodEnd(2);
}

TEST_P(DirectFoldFaultsTest, MemoryThatIsNotThere) {
  const Body send_nothing = [](Rank& rank) {
    void* const hole = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!rank.Started(rank.Send(static_cast<std::byte*>(hole)))) return 2;
    const absl::Status outcome = rank.Outcome();
    return !outcome.ok() && outcome.message().find("cannot be copied") != std::string::npos ? 0 : 3;
  };
  if (!Start(send_nothing, SendInVain)) return;
  const TransportOp fold = FoldOfBoth();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(rank().Started(fold));
  const absl::Status outcome = rank().Outcome();
  // A rank that has failed frees its memory, too. What it says of that comes first.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, kLastWordsTime);
  EXPECT_FALSE(outcome.ok());
  EXPECT_THAT(std::string(outcome.message()), HasSubstr("from rank 1 to rank 0"));
  EXPECT_THAT(std::string(outcome.message()), HasSubstr("cannot be copied"));
  EXPECT_EQ(fold.data[0], std::byte{9});
  ExpectGoodEnd(1);
  ExpectGoodEnd(2);
}

TEST_P(DirectFoldFaultsTest, AllocatesNothing) {
  constexpr int kTimes = 4;
  const Body send_often = [](Rank& rank) {
    for (int i = 0; i < kTimes; ++i) {
      if (const int outcome = SendAndEnd(rank); outcome != 0) return outcome;
    }
    return 0;
  };
  if (!Start(send_often, send_often)) return;
  for (int i = 0; i < kTimes; ++i) {
    const TransportOp fold = FoldOfBoth();
    const int64_t before = session_test::AllocationCount();
    ASSERT_TRUE(rank().Started(fold));
    const absl::Status outcome = rank().Outcome();
    EXPECT_EQ(session_test::AllocationCount(), before);
    ASSERT_TRUE(outcome.ok()) << outcome;
    EXPECT_EQ(fold.data[0], std::byte{4});
    EXPECT_EQ(fold.data[kBytes - 1], std::byte{4});
  }
  ExpectGoodEnd(1);
  ExpectGoodEnd(2);
}

}  // namespace
}  // namespace sluice
