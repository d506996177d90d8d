// A fabric over TCP links whose records to near ranks go through shared memory.
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "transport/direct/node_records.h"
#include "transport/tcp/tcp_fabric.h"
#include "transport/tcp_ranks.h"

namespace sluice {
namespace {

using Record = std::vector<std::byte>;

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
