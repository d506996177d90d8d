// What a fabric over TCP links adds to its contract: several over the same links, lost ranks, and
// records to near ranks that go through shared memory.
#include "transport/tcp/tcp_fabric.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/direct/node_records.h"
#include "transport/tcp_ranks.h"

namespace sluice {
namespace {

using Record = std::vector<std::byte>;

TEST(TcpFabricTest, OneRankGathersFromItself) {
  const auto fabrics = MakeTcpFabrics(MakeTcpLinks(1));
  const Record record = {std::byte{1}, std::byte{2}};
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(fabrics[0]->StartAllGather(record).ok());
    Record all;
    std::vector<int> missing;
    ASSERT_EQ(fabrics[0]->PollAllGather(&all, &missing).value_or(false), true);
    EXPECT_EQ(all, record);
    EXPECT_TRUE(missing.empty());
  }
  EXPECT_TRUE(fabrics[0]->OpenTransport().ok());
  EXPECT_TRUE(fabrics[0]->CheckRanks().ok());
  EXPECT_TRUE(fabrics[0]->CheckOtherThread().ok());
}

TEST(TcpFabricTest, FabricsOverTheSameLinksDoNotMeet) {
  const auto links = MakeTcpLinks(2);
  const auto ones = MakeTcpFabrics(links, 3);
  const auto others = MakeTcpFabrics(links, 4);
  ASSERT_TRUE(ones[0]->Post(1, Record(1, std::byte{1})).ok());
  ASSERT_TRUE(others[0]->Post(1, Record(1, std::byte{2})).ok());
  ASSERT_TRUE(ones[0]->StartAllGather(Record(4, std::byte{3})).ok());
  ASSERT_TRUE(others[1]->StartAllGather(Record(4, std::byte{4})).ok());
  Record record, all;
  int src = -1;
  EXPECT_TRUE(PollAllUntil([&] { links[0]->Progress(); },
                           [&] { return others[1]->PollPost(&src, &record); }));
  EXPECT_EQ(record, Record(1, std::byte{2}));
  EXPECT_TRUE(PollAllUntil([&] { links[0]->Progress(); },
                           [&] { return ones[1]->PollPost(&src, &record); }));
  EXPECT_EQ(record, Record(1, std::byte{1}));
  EXPECT_FALSE(ones[0]->PollAllGather(&all, nullptr).value_or(true));
  EXPECT_FALSE(others[1]->PollAllGather(&all, nullptr).value_or(true));
  const auto one = ones[0]->OpenTransport();
  const auto other = others[0]->OpenTransport();
  EXPECT_TRUE(one.ok() && other.ok());
}

// Others hear what this rank has said before they notice that its payload has ended.
TEST(TcpFabricTest, LinksEndBeforeWhatPayloadCrossesBy) {
  auto links = MakeTcpLinks(2);
  const std::weak_ptr<TcpLinks> own = links[0];
  bool links_had_ended = false;
  std::shared_ptr<int> payload(new int, [&](const int* memory) {
    links_had_ended = own.expired();
    delete memory;
  });
  TcpFabricOptions options;
  options.links = links[0];
  options.node_of_rank = {0, 1};
  options.open_transport =
      [payload = std::move(payload)](int) -> absl::StatusOr<std::unique_ptr<Transport>> {
    return absl::UnimplementedError("none");
  };
  auto fabric = *MakeTcpFabric(std::move(options));
  links[0] = nullptr;
  fabric = nullptr;
  EXPECT_TRUE(own.expired());
  EXPECT_TRUE(links_had_ended);
}

TEST(TcpFabricTest, AsksWhoElseKnowsWhoHasEnded) {
  TcpFabricOptions options;
  options.links = MakeTcpLinks(1)[0];
  options.node_of_rank = {0};
  int opened = -1;
  options.open_transport = [&opened](int number) -> absl::StatusOr<std::unique_ptr<Transport>> {
    opened = number;
    return absl::UnimplementedError("none");
  };
  options.check_ranks = [] { return absl::UnavailableError("a lease ran out"); };
  const auto fabric = *MakeTcpFabric(options);
  EXPECT_EQ(fabric->CheckRanks(), absl::UnavailableError("a lease ran out"));
  EXPECT_TRUE(absl::IsUnimplemented(fabric->OpenTransport().status()));
  EXPECT_EQ(opened, 0);
  EXPECT_FALSE(fabric->OpenTransport().ok());
  EXPECT_EQ(opened, 1);
}

TEST(TcpFabricTest, RefusesWhatCannotBe) {
  TcpFabricOptions options;
  EXPECT_TRUE(absl::IsInvalidArgument(MakeTcpFabric(options).status()));
  options.links = MakeTcpLinks(1)[0];
  EXPECT_TRUE(absl::IsInvalidArgument(MakeTcpFabric(options).status()));
  options.node_of_rank = {0};
  EXPECT_TRUE(MakeTcpFabric(options).ok());
  for (const int number : {-1, kMaxTcpFabrics}) {
    options.number = number;
    EXPECT_TRUE(absl::IsInvalidArgument(MakeTcpFabric(options).status()));
  }
}

// A rank that has left takes no posts, and keeps nobody waiting for the others.
TEST(TcpFabricTest, PostsToARankThatHasLeftAreDropped) {
  auto links = MakeTcpLinks(3);
  auto fabrics = MakeTcpFabrics(links);
  ASSERT_TRUE(fabrics[0]->Post(1, Record(1)).ok());
  Record record;
  int src = -1;
  EXPECT_TRUE(PollAllUntil([&] { links[0]->Progress(); },
                           [&] { return fabrics[1]->PollPost(&src, &record); }));
  fabrics[1] = nullptr;
  links[1] = nullptr;
  EXPECT_TRUE(PollAllUntil([&] { links[0]->Progress(); }, [&] { return links[0]->HasLeft(1); }));
  for (int n = 0; n < 20; ++n) EXPECT_TRUE(fabrics[0]->Post(1, Record(1)).ok());
  ASSERT_TRUE(fabrics[0]->Post(2, Record(7)).ok());
  EXPECT_TRUE(PollAllUntil([&] { links[0]->Progress(); },
                           [&] { return fabrics[2]->PollPost(&src, &record); }));
  EXPECT_EQ(record, Record(7));
}

// What is sent right before a rank's end comes: others need it to end the gather themselves.
TEST(TcpFabricTest, AGatherThatHasEndedHereEndsElsewhere) {
  for (int round = 0; round < 20; ++round) {
    auto links = MakeTcpLinks(4);
    auto fabrics = MakeTcpFabrics(links);
    for (const auto& fabric : fabrics) {
      ASSERT_TRUE(fabric->StartAllGather(Record(100, std::byte{9})).ok());
    }
    size_t left = fabrics.size();
    EXPECT_TRUE(PollAllUntil([] {},
                             [&] {
                               for (size_t rank = 0; rank < fabrics.size(); ++rank) {
                                 if (fabrics[rank] == nullptr) continue;
                                 Record all;
                                 auto done = fabrics[rank]->PollAllGather(&all, nullptr);
                                 EXPECT_TRUE(done.ok()) << done.status();
                                 if (!done.value_or(true)) continue;
                                 EXPECT_EQ(all, Record(400, std::byte{9}));
                                 fabrics[rank] = nullptr;  // calls nothing any more
                                 --left;
                               }
                               return left == 0;
                             }));
  }
}

struct Job {
  std::vector<std::shared_ptr<TcpLinks>> links;
  std::vector<std::unique_ptr<Fabric>> fabrics;
  absl::Status ends;  // what else knows of ranks that have ended

  explicit Job(const std::vector<int>& nodes)
      : links(MakeTcpLinks(static_cast<int>(nodes.size()))) {
    std::vector<std::shared_ptr<NodeRecords>> near;
    std::vector<SharedSegmentName> names;
    for (const auto& each : links) {
      near.push_back(*NodeRecords::Make(each->rank(), nodes));
      names.push_back(near.back()->name());
    }
    for (const auto& each : links) {
      const auto rank = static_cast<size_t>(each->rank());
      near[rank]->Attach(names);
      TcpFabricOptions options;
      options.links = each;
      options.node_of_rank = nodes;
      options.near = near[rank];
      options.check_ranks = [this] { return ends; };
      fabrics.push_back(*MakeTcpFabric(std::move(options)));
    }
  }
  void Progress() const {
    for (const auto& each : links) each->Progress();
  }
};

TEST(TcpNearTest, OnlyRanksOfOtherNodesAreConnected) {
  Job job({0, 0, 1});
  int src = -1;
  Record record;
  for (int dst = 1; dst < 3; ++dst) {
    ASSERT_TRUE(job.fabrics[0]->Post(dst, Record(3, std::byte{9})).ok());
    EXPECT_TRUE(PollAllUntil(
        [&] { job.Progress(); },
        [&] { return job.fabrics[static_cast<size_t>(dst)]->PollPost(&src, &record); }));
    EXPECT_EQ(src, 0);
    EXPECT_EQ(record, Record(3, std::byte{9}));
  }
  EXPECT_FALSE(job.links[0]->IsConnected(1));
  EXPECT_TRUE(job.links[0]->IsConnected(2));
}

TEST(TcpNearTest, GathersCrossBothWays) {
  const std::vector<int> nodes = {0, 1, 0, 0, 1, 2, 0, 1, 1, 0, 0};
  Job job(nodes);
  const size_t size = nodes.size();
  for (size_t round = 0; round < 20; ++round) {
    const size_t bytes = round % 2 == 0 ? 5 : Fabric::kMaxRecordBytes;
    Record expected;
    for (size_t rank = 0; rank < size; ++rank) {
      const Record own(bytes, static_cast<std::byte>(16 * round + rank));
      expected.insert(expected.end(), own.begin(), own.end());
      ASSERT_TRUE(job.fabrics[rank]->StartAllGather(own).ok());
    }
    std::vector<bool> done(size);
    size_t left = size;
    EXPECT_TRUE(PollAllUntil(
        [&] {
          for (size_t rank = 0; rank < size; ++rank) {
            Record all;
            if (done[rank] || !*job.fabrics[rank]->PollAllGather(&all, nullptr)) continue;
            EXPECT_EQ(all, expected) << rank;
            done[rank] = true;
            --left;
          }
        },
        [&] { return left == 0; }));
  }
}

TEST(TcpNearTest, ANearRankThatTakesNothingIsPostedLittle) {
  Job job({0, 0});
  for (int i = 0; i < Fabric::kMaxPostsPending; ++i) {
    ASSERT_TRUE(job.fabrics[0]->Post(1, Record(Fabric::kMaxPostBytes)).ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(job.fabrics[0]->Post(1, Record(1))));
  int src = -1;
  Record record;
  ASSERT_TRUE(job.fabrics[1]->PollPost(&src, &record));
  EXPECT_TRUE(job.fabrics[0]->Post(1, Record(1)).ok());
}

// Its cause says more than its end.
TEST(TcpNearTest, WhatANearRankHasSaidComesBeforeItsEnd) {
  Job job({0, 0});
  ASSERT_TRUE(job.fabrics[1]->Post(0, Record(2)).ok());
  job.ends = absl::UnavailableError("rank 1 has ended");
  EXPECT_TRUE(job.fabrics[0]->CheckRanks().ok());
  int src = -1;
  Record record;
  EXPECT_TRUE(job.fabrics[0]->PollPost(&src, &record));
  EXPECT_TRUE(absl::IsUnavailable(job.fabrics[0]->CheckRanks()));
}

// But whoever does not ask for it hears of the end.
TEST(TcpNearTest, AnEndIsNotKeptBackForLong) {
  Job job({0, 0});
  ASSERT_TRUE(job.fabrics[1]->Post(0, Record(2)).ok());
  job.ends = absl::UnavailableError("rank 1 has ended");
  EXPECT_TRUE(job.fabrics[0]->CheckRanks().ok());
  EXPECT_TRUE(absl::IsUnavailable(job.fabrics[0]->CheckRanks()));
}

}  // namespace
}  // namespace sluice
