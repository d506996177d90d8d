// Workers of UCX: what they refuse, how their transports end, and what comes late.
#include "transport/ucx/ucx_worker.h"

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/environment_value.h"
#include "main/fails.h"
#include "transport/ucx_settings.h"

namespace sluice {
namespace {

constexpr std::chrono::seconds kPatience{120};

// Workers of one process, which one thread drives in turn.
class UcxWorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    ApplyUcxSettings({"tcp", ""});
    if (const std::string why = WhyNoUcx(); !why.empty()) GTEST_SKIP() << why;
  }

  // `count` workers that know each other.
  void Connect(int count) {
    std::vector<std::string> addresses;
    for (int rank = 0; rank < count; ++rank) {
      auto worker = UcxWorker::Create(UcxTcp::kIfNamed);
      ASSERT_TRUE(worker.ok()) << worker.status();
      workers_.push_back(*std::move(worker));
      addresses.push_back(workers_.back()->address());
    }
    for (int rank = 0; rank < count; ++rank) {
      const absl::Status status = workers_[static_cast<size_t>(rank)]->SetPeers(rank, addresses);
      ASSERT_TRUE(status.ok()) << status;
    }
  }

  std::unique_ptr<Transport> Open(int rank, int number, int capacity = 64) {
    auto transport = workers_[static_cast<size_t>(rank)]->OpenTransport(number);
    EXPECT_TRUE(transport.ok()) << transport.status();
    EXPECT_TRUE((*transport)->Reserve(capacity).ok());
    return *std::move(transport);
  }

  void ProgressAll() {
    for (const auto& worker : workers_) {
      if (worker != nullptr) worker->Progress();
    }
    std::this_thread::yield();
  }

  // Drives all until `done`.
  void Until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!done()) {
      ProgressAll();
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "stuck";
    }
  }

  // The next event of the transport.
  TransportEvent Next(Transport& transport) {
    TransportEvent event;
    Until([&] {
      const auto count = transport.Poll(absl::MakeSpan(&event, 1));
      EXPECT_TRUE(count.ok()) << count.status();
      return count.value_or(1) == 1;
    });
    return event;
  }

  std::vector<std::shared_ptr<UcxWorker>> workers_;
};

TransportOp SendOf(int peer, int tag, std::vector<std::byte>* data, uint64_t cookie) {
  return {TransportOp::Kind::kSend, peer, tag, data->data(), data->size(), cookie};
}
TransportOp ReceiveOf(int peer, int tag, std::vector<std::byte>* data, uint64_t cookie) {
  return {TransportOp::Kind::kReceive, peer, tag, data->data(), data->size(), cookie};
}

TEST(UcxLibraryTest, SaysWhyThereIsNoLibrary) {
  const EnvironmentValue nowhere("SLUICE_UCX_LIBRARY", "/nowhere/libucp.so.0");
  const absl::Status missing = UcxWorker::Create(UcxTcp::kIfNamed).status();
  EXPECT_THAT(missing, Fails(absl::StatusCode::kUnavailable, "/nowhere/libucp.so.0"));
  const EnvironmentValue another("SLUICE_UCX_LIBRARY", "libc.so.6");
  const absl::Status other = UcxWorker::Create(UcxTcp::kIfNamed).status();
  EXPECT_THAT(other, Fails(absl::StatusCode::kUnavailable, "ucp_get_version"));
}

TEST_F(UcxWorkerTest, SaysWhatUcxLacks) {
  ApplyUcxSettings({"nothing_of_the_kind", ""});
  const absl::Status status = UcxWorker::Create(UcxTcp::kIfNamed).status();
  EXPECT_THAT(status, Fails(absl::StatusCode::kUnavailable, "UCX says"));
}

// Addresses at which this process listens, "0100007F" for 127.0.0.1.
std::set<std::string> ListensAt() {
  std::set<std::string> inodes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error);
    constexpr size_t kPrefix = sizeof("socket:[") - 1;
    if (target.starts_with("socket:[")) {
      inodes.insert(target.substr(kPrefix, target.size() - kPrefix - 1));
    }
  }
  std::set<std::string> addresses;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (words.size() < 10 || words[3] != "0A" || !inodes.contains(words[9])) continue;
      addresses.insert(words[1].substr(0, words[1].find(':')));
    }
  }
  return addresses;
}

// UCX's TCP lets whoever reaches its port write into the process.
TEST_F(UcxWorkerTest, ListensWhereItIsToldToAlone) {
  ASSERT_EQ(ListensAt(), std::set<std::string>{});
  for (const char* transports : {"", "all", "tcp"}) {
    ApplyUcxSettings({transports, ""});
    const auto worker = UcxWorker::Create(UcxTcp::kNever);
    EXPECT_EQ(ListensAt(), std::set<std::string>{});
    if (!worker.ok()) {
      EXPECT_THAT(worker.status(), Fails(absl::StatusCode::kUnavailable, "UCX_TLS"));
    }
  }
  ApplyUcxSettings({"", ""});
  const auto unnamed = UcxWorker::Create(UcxTcp::kIfNamed);
  EXPECT_EQ(ListensAt(), std::set<std::string>{});
  ApplyUcxSettings({"tcp", ""});
  const auto named = UcxWorker::Create(UcxTcp::kIfNamed);
  EXPECT_EQ(ListensAt(), std::set<std::string>{"0100007F"});
}

TEST_F(UcxWorkerTest, SaysItsVersionAndItsAddress) {
  Connect(1);
  EXPECT_THAT(workers_[0]->version(), testing::MatchesRegex("1\\.[0-9]+\\.[0-9]+"));
  EXPECT_LE(workers_[0]->address().size(), UcxWorker::kMaxAddressBytes);
  EXPECT_TRUE(workers_[0]->CheckRanks().ok());
}

TEST_F(UcxWorkerTest, RefusesPeersThatCannotBe) {
  auto worker = UcxWorker::Create(UcxTcp::kIfNamed);
  ASSERT_TRUE(worker.ok());
  const std::string own = (*worker)->address();
  EXPECT_EQ((*worker)->OpenTransport(0).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::IsInvalidArgument((*worker)->SetPeers(1, {own})));
  EXPECT_TRUE(absl::IsInvalidArgument((*worker)->SetPeers(-1, {own})));
  EXPECT_TRUE(absl::IsInvalidArgument((*worker)->SetPeers(0, {})));
  EXPECT_TRUE(absl::IsInvalidArgument((*worker)->SetPeers(0, {"", own})));
  const absl::Status damaged = (*worker)->SetPeers(0, {own, own.substr(1)});
  EXPECT_THAT(damaged, Fails(absl::StatusCode::kInvalidArgument, "rank 1"));
  EXPECT_TRUE((*worker)->SetPeers(0, {own}).ok());
  EXPECT_EQ((*worker)->SetPeers(0, {own}).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(UcxWorkerTest, OpensEachTransportOnce) {
  Connect(1);
  auto transport = Open(0, 3);
  const auto again = [this] { return workers_[0]->OpenTransport(3).status().code(); };
  EXPECT_EQ(again(), absl::StatusCode::kFailedPrecondition);
  transport = nullptr;
  EXPECT_EQ(again(), absl::StatusCode::kFailedPrecondition);
  transport = Open(0, 2);
  EXPECT_TRUE(transport->Part());  // from nobody
}

TEST_F(UcxWorkerTest, MessagesWaitForATransportThatIsOpenedLate) {
  Connect(2);
  std::vector<std::byte> sent(100000, std::byte{7});
  std::vector<std::byte> received(sent.size());
  const auto src = Open(0, 5);
  ASSERT_TRUE(src->Start({SendOf(1, 0, &sent, 1)}).ok());
  const auto other = Open(0, 0);
  const auto first = Open(1, 0);
  std::vector<std::byte> word(1);
  ASSERT_TRUE(other->Start({SendOf(1, 0, &word, 2)}).ok());
  ASSERT_TRUE(first->Start({ReceiveOf(0, 0, &word, 3)}).ok());
  EXPECT_TRUE(Next(*first).status.ok());  // by now the other message is known of
  const auto late = Open(1, 5);
  ASSERT_TRUE(late->Start({ReceiveOf(0, 0, &received, 4)}).ok());
  EXPECT_TRUE(Next(*late).status.ok());
  EXPECT_TRUE(Next(*src).status.ok());
  EXPECT_EQ(received, sent);
}

// Its memory is given back though its sends have met no receive; its peer's parting ends.
TEST_F(UcxWorkerTest, TransportsEndWithSendsThatNobodyMeets) {
  Connect(2);
  auto kept = std::make_shared<std::vector<std::byte>>(1 << 20);
  const std::weak_ptr<std::vector<std::byte>> watch = kept;
  auto src = Open(0, 0);
  auto dst = Open(1, 0);
  ASSERT_TRUE(src->Start({SendOf(1, 4, kept.get(), 1)}).ok());
  std::vector<std::byte> unmet(8);
  ASSERT_TRUE(dst->Start({SendOf(0, 4, &unmet, 2)}).ok());
  src->KeepUntilOver(std::exchange(kept, nullptr));
  src = nullptr;
  EXPECT_TRUE(watch.expired());
  Until([&] {
    TransportEvent event;
    EXPECT_TRUE(dst->Poll(absl::MakeSpan(&event, 1)).ok());
    return dst->Part();
  });
  EXPECT_EQ(dst->outstanding(), 0);
}

// The receiver's transport ends after its receive has met the message. What comes then is dropped,
// its memory is given back, and the sender goes on.
TEST_F(UcxWorkerTest, ReceiversEndInTheMiddleOfAMessage) {
  for (const char* rendezvous : {"inf", "1", ""}) {
    workers_.clear();
    ApplyUcxSettings({"tcp", rendezvous});
    Connect(2);
    for (int number = 0; number < 8; ++number) {
      std::vector<std::byte> sent(size_t{4} << 20, std::byte{9});
      auto kept = std::make_shared<std::vector<std::byte>>(sent.size());
      const std::weak_ptr<std::vector<std::byte>> watch = kept;
      const auto src = Open(0, number);
      auto dst = Open(1, number);
      ASSERT_TRUE(src->Start({SendOf(1, 0, &sent, 1)}).ok());
      ASSERT_TRUE(dst->Start({ReceiveOf(0, 0, kept.get(), 2)}).ok());
      TransportEvent event;
      for (int look = 0; look < number * 2; ++look) {
        ProgressAll();
        if (dst->Poll(absl::MakeSpan(&event, 1)).value_or(0) == 1) break;
      }
      dst->KeepUntilOver(std::exchange(kept, nullptr));
      dst = nullptr;
      // Had its receive met nothing, its sender is told of the end when it parts.
      Until([&] {
        EXPECT_TRUE(src->Poll(absl::MakeSpan(&event, 1)).ok());
        return src->Part();
      });
      Until([&] { return watch.expired(); });
      // Other transports go on.
      const auto next_src = Open(0, 100 + number);
      const auto next_dst = Open(1, 100 + number);
      std::vector<std::byte> received(sent.size());
      ASSERT_TRUE(next_dst->Start({ReceiveOf(0, 0, &received, 3)}).ok());
      ASSERT_TRUE(next_src->Start({SendOf(1, 0, &sent, 4)}).ok());
      EXPECT_TRUE(Next(*next_dst).status.ok());
      EXPECT_TRUE(Next(*next_src).status.ok());
      EXPECT_TRUE(received == sent);
    }
  }
}

// The sender's transport ends before it has been let go.
TEST_F(UcxWorkerTest, SendersEndBeforeTheirReceiveStarts) {
  Connect(2);
  std::vector<std::byte> sent(size_t{1} << 20);
  std::vector<std::byte> received(sent.size());
  auto src = Open(0, 0);
  const auto dst = Open(1, 0);
  const auto other_src = Open(0, 1);
  const auto other_dst = Open(1, 1);
  std::vector<std::byte> word(1);
  ASSERT_TRUE(src->Start({SendOf(1, 0, &sent, 1)}).ok());
  ASSERT_TRUE(other_src->Start({SendOf(1, 0, &word, 2)}).ok());
  ASSERT_TRUE(other_dst->Start({ReceiveOf(0, 0, &word, 3)}).ok());
  EXPECT_TRUE(Next(*other_dst).status.ok());  // so the announcement has come as well
  src = nullptr;
  ASSERT_TRUE(dst->Start({ReceiveOf(0, 0, &received, 4)}).ok());
  const TransportEvent event = Next(*dst);
  EXPECT_THAT(event.status, Fails(absl::StatusCode::kUnavailable, "from rank 0 to rank 1"));
}

// A worker that ends is noticed by those that were connected with it, whatever they wait for.
TEST_F(UcxWorkerTest, OperationsWithAWorkerThatHasEndedFail) {
  Connect(3);
  std::vector<std::unique_ptr<Transport>> ends;
  for (int rank = 0; rank < 3; ++rank) ends.push_back(Open(rank, 0));
  std::vector<std::byte> word(1);
  ASSERT_TRUE(ends[1]->Start({SendOf(0, 9, &word, 1)}).ok());
  ASSERT_TRUE(ends[0]->Start({ReceiveOf(1, 9, &word, 2)}).ok());
  EXPECT_TRUE(Next(*ends[0]).status.ok());
  EXPECT_TRUE(Next(*ends[1]).status.ok());
  std::vector<std::byte> large(size_t{1} << 20);
  ASSERT_TRUE(ends[0]->Start({SendOf(1, 0, &large, 3), ReceiveOf(1, 1, &word, 4)}).ok());
  ends[1] = nullptr;
  workers_[1] = nullptr;
  for (int n = 0; n < 2; ++n) {
    const TransportEvent event = Next(*ends[0]);
    EXPECT_THAT(event.status,
                Fails(absl::StatusCode::kUnavailable, "rank 1 is not reached by rank 0"));
  }
  EXPECT_THAT(std::string(workers_[0]->CheckRanks().message()), testing::HasSubstr("rank 1"));
  // Later ones fail as well, and the others go on.
  ASSERT_TRUE(ends[0]->Start({SendOf(1, 0, &large, 5)}).ok());
  EXPECT_TRUE(absl::IsUnavailable(Next(*ends[0]).status));
  std::vector<std::byte> received(large.size());
  ASSERT_TRUE(ends[0]->Start({SendOf(2, 0, &large, 6)}).ok());
  ASSERT_TRUE(ends[2]->Start({ReceiveOf(0, 0, &received, 7)}).ok());
  EXPECT_TRUE(Next(*ends[2]).status.ok());
  EXPECT_TRUE(Next(*ends[0]).status.ok());
  Until([&] {
    const bool first = ends[0]->Part();
    return ends[2]->Part() && first;
  });
}

// Elsewhere it may be known who has failed first. Whoever parts has heard enough.
TEST_F(UcxWorkerTest, WhoPartsIsToldAtOnceOfWhatHasBeenCutOff) {
  Connect(2);
  std::vector<std::unique_ptr<Transport>> ends;
  for (int rank = 0; rank < 2; ++rank) ends.push_back(Open(rank, 0));
  std::vector<std::byte> word(1);
  ASSERT_TRUE(ends[1]->Start({SendOf(0, 9, &word, 1)}).ok());
  ASSERT_TRUE(ends[0]->Start({ReceiveOf(1, 9, &word, 2)}).ok());
  EXPECT_TRUE(Next(*ends[0]).status.ok());
  EXPECT_TRUE(Next(*ends[1]).status.ok());
  ASSERT_TRUE(ends[0]->Start({ReceiveOf(1, 1, &word, 3)}).ok());
  ends[1] = nullptr;
  workers_[1] = nullptr;
  Until([&] { return !workers_[0]->CheckRanks().ok(); });
  EXPECT_EQ(ends[0]->outstanding(), 1);
  ends[0]->Part();
  TransportEvent event;
  ASSERT_EQ(ends[0]->Poll(absl::MakeSpan(&event, 1)).value_or(-1), 1);
  EXPECT_TRUE(absl::IsUnavailable(event.status)) << event.status;
  EXPECT_TRUE(ends[0]->Part());
}

TEST_F(UcxWorkerTest, RefusesMoreRoomThanItHas) {
  Connect(1);
  const auto transport = Open(0, 0);
  EXPECT_TRUE(absl::IsResourceExhausted(transport->Reserve(1 << 20)));
}

}  // namespace
}  // namespace sluice
