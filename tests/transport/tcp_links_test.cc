// Connections between ranks: control records, who calls whom, farewells.
#include "transport/tcp/tcp_links.h"

#include <dirent.h>

#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "transport/tcp_end.h"
#include "transport/tcp_ranks.h"

namespace sluice {
namespace {

using Links = std::vector<std::shared_ptr<TcpLinks>>;
using Record = std::vector<std::byte>;

void Progress(const Links& links) {
  for (const auto& each : links) {
    if (each != nullptr) each->Progress();
  }
}

Record Of(int value, size_t bytes = 3) { return Record(bytes, static_cast<std::byte>(value)); }

// Until a record of this kind has come; fails after a minute.
Record Await(const Links& links, int rank, uint8_t kind, int from) {
  Record record;
  int src = -1;
  EXPECT_TRUE(PollAllUntil(
      [&] { Progress(links); },
      [&] { return links[static_cast<size_t>(rank)]->PollControl(kind, &src, &record); }))
      << "nothing has come to rank " << rank;
  EXPECT_EQ(src, from);
  return record;
}

int OpenDescriptors() {
  int count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

TEST(TcpLinksTest, CarriesRecordsInOrderOfTheirKind) {
  const Links links = MakeTcpLinks(3);
  for (int n = 0; n < 50; ++n) {
    ASSERT_TRUE(links[0]->SendControl(2, 5, Of(n, static_cast<size_t>(n))).ok());
    ASSERT_TRUE(links[2]->SendControl(0, 6, Of(n)).ok());
    ASSERT_TRUE(links[0]->SendControl(2, 7, Of(100 + n)).ok());
  }
  for (int n = 0; n < 50; ++n) EXPECT_EQ(Await(links, 2, 7, 0), Of(100 + n));
  for (int n = 0; n < 50; ++n) EXPECT_EQ(Await(links, 2, 5, 0), Of(n, static_cast<size_t>(n)));
  for (int n = 0; n < 50; ++n) EXPECT_EQ(Await(links, 0, 6, 2), Of(n));
  for (const auto& each : links) EXPECT_TRUE(each->CheckRanks().ok());
}

TEST(TcpLinksTest, TwoThatCallAtOnceEndUpWithOneConnection) {
  for (int round = 0; round < 30; ++round) {
    const Links links = MakeTcpLinks(2);
    const int before = OpenDescriptors();
    ASSERT_TRUE(links[0]->SendControl(1, 0, Of(1)).ok());
    ASSERT_TRUE(links[1]->SendControl(0, 0, Of(2)).ok());
    // One of them may be ahead.
    for (int n = 0; n < round % 5; ++n) links[static_cast<size_t>(round / 5 % 2)]->Progress();
    EXPECT_EQ(Await(links, 1, 0, 0), Of(1));
    EXPECT_EQ(Await(links, 0, 0, 1), Of(2));
    EXPECT_TRUE(
        PollAllUntil([&] { Progress(links); }, [&] { return OpenDescriptors() == before + 2; }))
        << OpenDescriptors() - before << " ends of connections";
    for (const auto& each : links) EXPECT_TRUE(each->CheckRanks().ok());
  }
}

TEST(TcpLinksTest, ManyRanksAllCallEachOther) {
  constexpr int kRanks = 8;
  const Links links = MakeTcpLinks(kRanks);
  const int before = OpenDescriptors();
  for (int src = 0; src < kRanks; ++src) {
    for (int dst = 0; dst < kRanks; ++dst) {
      if (src == dst) continue;
      ASSERT_TRUE(links[static_cast<size_t>(src)]->SendControl(dst, 0, Of(src)).ok());
    }
  }
  std::vector<int> came(kRanks);
  EXPECT_TRUE(
      PollAllUntil([&] { Progress(links); },
                   [&] {
                     bool all = true;
                     for (int rank = 0; rank < kRanks; ++rank) {
                       int src = -1;
                       Record record;
                       auto& count = came[static_cast<size_t>(rank)];
                       while (links[static_cast<size_t>(rank)]->PollControl(0, &src, &record)) {
                         EXPECT_EQ(record, Of(src));
                         ++count;
                       }
                       all = all && count == kRanks - 1;
                     }
                     return all;
                   }));
  EXPECT_TRUE(PollAllUntil([&] { Progress(links); },
                           [&] { return OpenDescriptors() == before + kRanks * (kRanks - 1); }));
}

TEST(TcpLinksTest, KeepsWhatNobodyTakesWithinLimits) {
  const Links links = MakeTcpLinks(2);
  const Record large = Of(1, TcpLinks::kMaxControlBytes / 2);
  EXPECT_TRUE(links[0]->SendControl(1, 0, large).ok());
  EXPECT_TRUE(links[0]->SendControl(1, 0, large).ok());
  const absl::Status refused = links[0]->SendControl(1, 0, Of(3));
  EXPECT_THAT(refused,
              Fails(absl::StatusCode::kResourceExhausted, "has not taken 2 records of kind 0"));
  EXPECT_EQ(links[0]->UntakenRecords(1, 0), 2);
  EXPECT_TRUE(links[0]->SendControl(1, 1, large).ok());  // of another kind
  EXPECT_EQ(Await(links, 1, 1, 0), large);
  EXPECT_EQ(Await(links, 1, 0, 0), large);
  EXPECT_TRUE(
      PollAllUntil([&] { Progress(links); }, [&] { return links[0]->UntakenRecords(1, 0) == 1; }));
  EXPECT_TRUE(links[0]->SendControl(1, 0, Of(3)).ok());
  EXPECT_EQ(Await(links, 1, 0, 0), large);
  EXPECT_EQ(Await(links, 1, 0, 0), Of(3));
}

TEST(TcpLinksTest, TheLongestRecordComesWhole) {
  const Links links = MakeTcpLinks(2);
  Record record(TcpLinks::kMaxControlBytes);
  for (size_t i = 0; i < record.size(); ++i) record[i] = static_cast<std::byte>(i * 7 + i / 256);
  ASSERT_TRUE(links[1]->SendControl(0, 63, record).ok());
  EXPECT_TRUE(Await(links, 0, 63, 1) == record);
  EXPECT_TRUE(links[1]->IsSent(0, links[1]->Mark(0)));
}

TEST(TcpLinksTest, AFarewellIsNoFailure) {
  Links links = MakeTcpLinks(3);
  ASSERT_TRUE(links[1]->SendControl(0, 0, Of(1)).ok());
  EXPECT_EQ(Await(links, 0, 0, 1), Of(1));
  ASSERT_TRUE(links[1]->SendControl(0, 0, Of(2)).ok());
  ASSERT_TRUE(links[0]->SendControl(1, 0, Of(7)).ok());  // never taken
  links[1] = nullptr;
  EXPECT_TRUE(PollAllUntil([&] { Progress(links); }, [&] { return links[0]->HasLeft(1); }));
  EXPECT_TRUE(links[0]->CheckRanks().ok());
  EXPECT_EQ(Await(links, 0, 0, 1), Of(2)) << "what was sent before";
  const absl::Status status = links[0]->SendControl(1, 0, Of(8));
  EXPECT_THAT(status, Fails(absl::StatusCode::kUnavailable, "rank 1 has left"));
  // The others go on.
  ASSERT_TRUE(links[0]->SendControl(2, 0, Of(3)).ok());
  EXPECT_EQ(Await(links, 2, 0, 0), Of(3));
}

// What was sent just before comes, though the sender was not even connected.
TEST(TcpLinksTest, LastWordsComeBeforeTheFarewell) {
  Links links = MakeTcpLinks(2);
  ASSERT_TRUE(links[1]->SendControl(0, 0, Of(9, 1000)).ok());
  std::shared_ptr<TcpLinks> last = std::move(links[1]);
  // Its end and the other rank's progress go on side by side.
  std::thread end([&last] { last = nullptr; });
  Record record;
  EXPECT_EQ(Await(links, 0, 0, 1), Of(9, 1000));
  end.join();
  EXPECT_TRUE(PollAllUntil([&] { Progress(links); }, [&] { return links[0]->HasLeft(1); }));
}

TEST(TcpLinksTest, TriesAllAddressesUntilTheRightRankAnswers) {
  Links links;
  for (int rank = 0; rank < 3; ++rank) links.push_back(*TcpLinks::Listen(TcpTestOptions(rank, 3)));
  // Nobody, another rank of this world, and at last the right one.
  const std::string to_one =
      absl::StrCat("127.0.0.1:1,", links[2]->address(), ",", links[1]->address());
  for (const auto& each : links) {
    ASSERT_TRUE(each->SetPeers({links[0]->address(), to_one, links[2]->address()}).ok());
  }
  ASSERT_TRUE(links[0]->SendControl(1, 0, Of(4)).ok());
  EXPECT_EQ(Await(links, 1, 0, 0), Of(4));
  for (const auto& each : links) EXPECT_TRUE(each->CheckRanks().ok());
}

TEST(TcpLinksTest, NamesARankThatNobodyIsAt) {
  Links links = MakeTcpLinks(2);
  links[1] = nullptr;  // before anybody has called
  ASSERT_TRUE(links[0]->SendControl(1, 0, Of(4)).ok());
  EXPECT_TRUE(PollAllUntil([&] { Progress(links); }, [&] { return !links[0]->CheckRanks().ok(); }));
  const absl::Status status = links[0]->CheckRanks();
  EXPECT_THAT(status, Fails(absl::StatusCode::kUnavailable,
                            testing::AllOf(testing::HasSubstr("rank 1 is lost"),
                                           testing::HasSubstr("Connection refused"))));
  EXPECT_TRUE(absl::IsUnavailable(links[0]->SendControl(1, 0, Of(5))));
}

TEST(TcpLinksTest, RefusesOptionsThatCannotBe) {
  TcpLinksOptions options = TcpTestOptions(2, 2);
  EXPECT_TRUE(absl::IsInvalidArgument(TcpLinks::Listen(options).status()));
  options = TcpTestOptions(0, 2);
  options.bind = "a host's name";
  EXPECT_TRUE(absl::IsInvalidArgument(TcpLinks::Listen(options).status()));
  options.bind = "192.0.2.1";  // of nobody
  EXPECT_TRUE(absl::IsUnavailable(TcpLinks::Listen(options).status()));
  const auto links = *TcpLinks::Listen(TcpTestOptions(0, 2));
  EXPECT_TRUE(absl::IsInvalidArgument(links->SetPeers({"127.0.0.1:1"})));
  const absl::Status status = links->SetPeers({links->address(), "nowhere"});
  EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument, "rank 1: no address"));
  EXPECT_TRUE(links->SetPeers({"", "127.0.0.1:1"}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(links->SetPeers({"", "127.0.0.1:1"})));
}

TEST(TcpLinksTest, ListensAtAllAddressesUnlessTold) {
  TcpLinksOptions options = TcpTestOptions(0, 2);
  EXPECT_THAT((*TcpLinks::Listen(options))->address(), testing::StartsWith("127.0.0.1:"));
  options.bind.clear();
  const auto links = *TcpLinks::Listen(options);
  EXPECT_THAT(links->address(), testing::HasSubstr("127.0.0.1:"));
  // Another one finds it there.
  options.rank = 1;
  const Links both = {links, *TcpLinks::Listen(options)};
  for (const auto& each : both) {
    ASSERT_TRUE(each->SetPeers({both[0]->address(), both[1]->address()}).ok());
  }
  ASSERT_TRUE(both[1]->SendControl(0, 0, Of(1)).ok());
  EXPECT_EQ(Await(both, 0, 0, 1), Of(1));
}

// Two transports of the same links, each with a thread that drives both of its ends.
TEST(TcpLinksTest, TransportsMayBeUsedByDifferentThreads) {
  constexpr uint64_t kMessages = 200;
  const Links links = MakeTcpLinks(2);
  const auto exchange = [&links](int number) {
    std::vector<std::byte> sent = Pattern(100000, number), received(100000);
    TcpEnd a(links[0], number), b(links[1], number);
    for (uint64_t n = 1; n <= kMessages; ++n) {
      sent[n] = static_cast<std::byte>(number);
      a.Start({SendTo(1, sent, n)});
      b.Start({ReceiveFrom(0, received, n)});
      ASSERT_TRUE(
          PollUntil({&a, &b}, [&] { return a.events.size() == n && b.events.size() == n; }));
      ASSERT_TRUE(received == sent);
    }
  };
  std::thread other([&exchange] { exchange(1); });
  exchange(0);
  other.join();
  for (const auto& each : links) EXPECT_TRUE(each->CheckRanks().ok());
}

TEST(TcpLinksTest, OpensEachTransportOnce) {
  const Links links = MakeTcpLinks(2);
  EXPECT_TRUE(links[0]->OpenTransport(3).ok());  // and is destroyed at once
  EXPECT_TRUE(absl::IsFailedPrecondition(links[0]->OpenTransport(3).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(links[0]->OpenTransport(-1).status()));
}

}  // namespace
}  // namespace sluice
