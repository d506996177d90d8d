// Records through shared memory: order, bytes of any length, what is taken, and what makes no
// sense.
#include "transport/direct/node_records.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/direct/record_ring.h"
#include "transport/direct/shared_segment.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::byte>;
using Rank = std::unique_ptr<NodeRecords>;

std::vector<Rank> MakeNode(const std::vector<int>& nodes) {
  std::vector<Rank> ranks;
  std::vector<SharedSegmentName> names;
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    auto made = NodeRecords::Make(static_cast<int>(rank), nodes);
    EXPECT_TRUE(made.ok()) << made.status();
    ranks.push_back(*std::move(made));
    names.push_back(ranks.back()->name());
  }
  for (const Rank& rank : ranks) rank->Attach(names);
  return ranks;
}

Bytes Text(const std::string& text) {
  Bytes bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// Record number `n` from `src` to `dst`: its length and its bytes follow from that.
Bytes Drawn(int src, int dst, int n, size_t longest) {
  std::seed_seq seed{src, dst, n};
  std::minstd_rand random(seed);
  Bytes bytes(random() % (longest + 1));
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

TEST(NodeRecordsTest, RanksOfOneNodeReachEachOther) {
  const std::vector<int> nodes = {0, 1, 0, 1, 1};
  const auto ranks = MakeNode(nodes);
  for (size_t a = 0; a < nodes.size(); ++a) {
    for (size_t b = 0; b < nodes.size(); ++b) {
      EXPECT_EQ(ranks[a]->Reaches(static_cast<int>(b)), a != b && nodes[a] == nodes[b]);
    }
  }
  int src = -1;
  Bytes record;
  ASSERT_TRUE(ranks[4]->Send(3, 0, Text("from 4")).ok());
  ASSERT_TRUE(ranks[3]->Poll(0, &src, &record));
  EXPECT_EQ(src, 4);
  EXPECT_EQ(record, Text("from 4"));
  EXPECT_FALSE(ranks[1]->Poll(0, &src, &record));
}

TEST(NodeRecordsTest, ARankWithoutAnInboxIsNotReachedAndReachesOthers) {
  std::vector<Rank> ranks;
  const std::vector<int> nodes = {0, 0};
  ranks.reserve(2);
  for (int rank = 0; rank < 2; ++rank) ranks.push_back(*NodeRecords::Make(rank, nodes));
  SharedSegmentName gone = ranks[1]->name();
  gone.inode += 1;
  for (const SharedSegmentName& name : {SharedSegmentName(), gone}) {
    const auto one = *NodeRecords::Make(0, nodes);
    one->Attach({one->name(), name});
    EXPECT_FALSE(one->Reaches(1));
  }
  ranks[0]->Attach({ranks[0]->name(), SharedSegmentName()});
  ranks[1]->Attach({ranks[0]->name(), ranks[1]->name()});
  EXPECT_FALSE(ranks[0]->Reaches(1));
  ASSERT_TRUE(ranks[1]->Reaches(0));
  ASSERT_TRUE(ranks[1]->Send(0, 1, Text("one way")).ok());
  int src = -1;
  Bytes record;
  EXPECT_TRUE(ranks[0]->HasArrived(1));
  EXPECT_TRUE(ranks[0]->Poll(1, &src, &record));
  EXPECT_EQ(record, Text("one way"));
}

TEST(NodeRecordsTest, KindsDoNotWaitForEachOther) {
  const auto ranks = MakeNode({0, 0});
  ASSERT_TRUE(ranks[0]->Send(1, 0, Text("a")).ok());
  ASSERT_TRUE(ranks[0]->Send(1, 1, Text("")).ok());
  ASSERT_TRUE(ranks[0]->Send(1, 0, Text("b")).ok());
  EXPECT_EQ(ranks[0]->Untaken(1, 0), 2);
  EXPECT_EQ(ranks[0]->Untaken(1, 1), 1);
  int src = -1;
  Bytes record(3);
  ASSERT_TRUE(ranks[1]->Poll(1, &src, &record));
  EXPECT_EQ(record, Bytes());
  EXPECT_FALSE(ranks[1]->Poll(1, &src, &record));
  EXPECT_EQ(ranks[0]->Untaken(1, 0), 2);
  EXPECT_EQ(ranks[0]->Untaken(1, 1), 0);
  for (const char* text : {"a", "b"}) {
    ASSERT_TRUE(ranks[1]->Poll(0, &src, &record));
    EXPECT_EQ(record, Text(text));
  }
  EXPECT_EQ(ranks[0]->Untaken(1, 0), 0);
}

// A ring has room for less, so its sender keeps the rest until there is room.
TEST(NodeRecordsTest, LongRecordsComeInParts) {
  const auto ranks = MakeNode({0, 0});
  const Bytes whole(NearRecords::kMaxBytes, std::byte{7});
  const uint64_t before = ranks[0]->Mark(1);
  EXPECT_TRUE(ranks[0]->IsSent(1, before));
  ASSERT_TRUE(ranks[0]->Send(1, 0, whole).ok());
  const uint64_t mark = ranks[0]->Mark(1);
  EXPECT_FALSE(ranks[0]->IsSent(1, mark));
  int src = -1;
  Bytes record;
  EXPECT_FALSE(ranks[1]->Poll(0, &src, &record));
  int polls = 0;
  for (; !ranks[1]->Poll(0, &src, &record); ++polls) {
    ASSERT_LT(polls, 1000);
    ranks[0]->HasArrived(0);  // any call moves what is kept
  }
  EXPECT_GT(polls, 10);
  EXPECT_EQ(record, whole);
  EXPECT_TRUE(ranks[0]->IsSent(1, mark));
  EXPECT_EQ(ranks[0]->Untaken(1, 0), 0);
}

// As gathers of many ranks send them.
TEST(NodeRecordsTest, EightLargeRecordsFillTheRoom) {
  const auto ranks = MakeNode({0, 0});
  const Bytes eighth(NearRecords::kMaxBytes / 8, std::byte{1});
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(ranks[0]->Send(1, 0, eighth).ok()) << i;
  EXPECT_TRUE(absl::IsResourceExhausted(ranks[0]->Send(1, 0, Text("x"))));
  int src = -1;
  Bytes record;
  for (int taken = 0; taken < 8;) {
    if (ranks[1]->Poll(0, &src, &record)) {
      EXPECT_EQ(record, eighth);
      ++taken;
    } else {
      ranks[0]->HasArrived(0);
    }
  }
  EXPECT_TRUE(ranks[1]->Check().ok());
}

TEST(NodeRecordsTest, WhatIsNotTakenHasABound) {
  const auto ranks = MakeNode({0, 0});
  ASSERT_TRUE(ranks[0]->Send(1, 0, Bytes(NearRecords::kMaxBytes - 100)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(ranks[0]->Send(1, 0, Bytes(1000))));
  ASSERT_TRUE(ranks[0]->Send(1, 1, Bytes(1000)).ok());  // room of its own
  int src = -1;
  Bytes record;
  while (!ranks[1]->Poll(0, &src, &record)) ranks[0]->HasArrived(0);
  EXPECT_TRUE(ranks[0]->Send(1, 0, Bytes(1000)).ok());
  int sent = 1;
  while (ranks[0]->Send(1, 1, {}).ok()) ++sent;
  EXPECT_EQ(sent, static_cast<int>(NearRecords::kMaxRecords));  // empty ones count, too
  for (int taken = 0; taken < sent;) {
    if (ranks[1]->Poll(1, &src, &record)) {
      EXPECT_EQ(record.size(), taken == 0 ? 1000 : 0);
      ++taken;
    } else {
      ranks[0]->HasArrived(0);
    }
  }
  EXPECT_TRUE(ranks[1]->Check().ok());
}

// Each rank is a thread, sends to all others at once, and takes now this kind, now the other one.
void SendAll(int count, int records, size_t longest) {
  const auto ranks = MakeNode(std::vector<int>(static_cast<size_t>(count), 3));
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int self = 0; self < count; ++self) {
    threads.emplace_back([&, self] {
      NodeRecords& own = *ranks[static_cast<size_t>(self)];
      std::vector<int> sent(static_cast<size_t>(count));
      std::vector<std::array<int, NearRecords::kKinds>> taken(static_cast<size_t>(count));
      int left = 2 * (count - 1) * records;  // to send, and to take
      while (left > 0) {
        for (int dst = 0; dst < count; ++dst) {
          int& next = sent[static_cast<size_t>(dst)];
          if (dst == self || next == records) continue;
          if (!own.Send(dst, next % NearRecords::kKinds, Drawn(self, dst, next, longest)).ok()) {
            continue;
          }
          ++next;
          --left;
        }
        for (int kind = 0; kind < NearRecords::kKinds; ++kind) {
          int src = -1;
          Bytes record;
          if (!own.Poll(kind, &src, &record)) continue;
          int& next = taken[static_cast<size_t>(src)][static_cast<size_t>(kind)];
          ASSERT_EQ(record, Drawn(src, self, NearRecords::kKinds * next + kind, longest));
          ++next;
          --left;
        }
        std::this_thread::yield();
      }
      // Nobody's record may be kept here for want of a call.
      for (int dst = 0; dst < count; ++dst) {
        while (dst != self && !own.IsSent(dst, own.Mark(dst))) std::this_thread::yield();
      }
      EXPECT_TRUE(own.Check().ok()) << own.Check();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(NodeRecordsTest, AllSendToAllAtOnce) {
  SendAll(4, 300, 300);
  SendAll(3, 40, 50'000);
  SendAll(2, 5'000, 40);
}

TEST(NodeRecordsTest, MoreRanksThanAWordHasBits) {
  constexpr int kRanks = 130;
  const auto ranks = MakeNode(std::vector<int>(kRanks, 0));
  for (int src = 0; src < kRanks; ++src) {
    if (src == 64) continue;
    const Bytes record = Drawn(src, 64, 0, 9);
    ASSERT_TRUE(ranks[static_cast<size_t>(src)]->Send(64, 0, record).ok());
  }
  for (int src = 0; src < kRanks; ++src) {
    if (src == 64) continue;
    int from = -1;
    Bytes record;
    ASSERT_TRUE(ranks[64]->Poll(0, &from, &record));
    EXPECT_EQ(from, src);
    EXPECT_EQ(record, Drawn(src, 64, 0, 9));
  }
}

TEST(NodeRecordsTest, WhatAProcessHasSentComesAfterItsEnd) {
  const auto inbox = *NodeRecords::Make(0, std::vector<int>{0, 0});
  const pid_t child = fork();
  if (child == 0) {
    const auto sender = NodeRecords::Make(1, std::vector<int>{0, 0});
    (*sender)->Attach({inbox->name(), (*sender)->name()});
    const bool sent =
        (*sender)->Send(0, 0, Text("last words")).ok() && (*sender)->IsSent(0, (*sender)->Mark(0));
    _exit(sent ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  int src = -1;
  Bytes record;
  ASSERT_TRUE(inbox->Poll(0, &src, &record));
  EXPECT_EQ(record, Text("last words"));
}

// The segment as another process may spoil it. It has the bell's line first, then a ring of each
// rank.
RecordRing* RingOf(const NodeRecords& inbox, const std::shared_ptr<SharedSegment>& mapped,
                   size_t place) {
  EXPECT_EQ(inbox.name().bytes % sizeof(RecordRing), 64);
  return reinterpret_cast<RecordRing*>(mapped->data() + 64) + place;
}

void Ring(const std::shared_ptr<SharedSegment>& mapped) {
  reinterpret_cast<std::atomic<uint64_t>*>(mapped->data())->store(2);
}

TEST(NodeRecordsTest, WhatMakesNoSenseIsNamedAndNothingMoreIsTaken) {
  struct Head {
    uint32_t bytes, kind;
  };
  const auto spoil = [](auto&& how, const char* says) {
    const auto ranks = MakeNode({0, 0});
    const auto mapped = *SharedSegment::Attach(ranks[0]->name());
    RecordRing* const ring = RingOf(*ranks[0], mapped, 1);
    how(ring);
    Ring(mapped);
    int src = -1;
    Bytes record;
    EXPECT_FALSE(ranks[0]->Poll(0, &src, &record));
    EXPECT_TRUE(absl::IsDataLoss(ranks[0]->Check())) << ranks[0]->Check();
    EXPECT_THAT(std::string(ranks[0]->Check().message()), HasSubstr("rank 1"));
    EXPECT_THAT(std::string(ranks[0]->Check().message()), HasSubstr(says));
    // Nothing hangs on it, in either direction.
    EXPECT_TRUE(ranks[0]->Send(1, 0, Text("x")).ok());
    EXPECT_TRUE(ranks[0]->IsSent(1, ranks[0]->Mark(1)));
    EXPECT_EQ(ranks[0]->Untaken(1, 0), 0);
    static_cast<void>(ranks[1]->Send(0, 0, Text("x")));
    EXPECT_FALSE(ranks[0]->Poll(0, &src, &record));
  };
  const auto write = [](RecordRing* ring, Head head) {
    ring->Write(0, reinterpret_cast<const std::byte*>(&head), sizeof(head));
  };
  spoil([&](RecordRing* ring) { write(ring, {8, NearRecords::kKinds}); }, "no record");
  spoil([&](RecordRing* ring) { write(ring, {~0u, 0}); }, "no record");
  spoil([&](RecordRing* ring) { write(ring, {NearRecords::kMaxBytes + 1, 1}); }, "no record");
  const std::byte bytes[8] = {};
  spoil([&](RecordRing* ring) { ring->Write(RecordRing::kBytes, bytes, 8); }, "beyond its ring");
  spoil([&](RecordRing* ring) { ring->Write(0, bytes, 3); }, "beyond its ring");
  spoil([&](RecordRing* ring) { ring->Write(uint64_t{0} - 16, bytes, 8); }, "beyond its ring");
}

TEST(NodeRecordsTest, AReaderThatMakesNoSenseIsNamed) {
  for (const bool takes : {false, true}) {
    const auto ranks = MakeNode({0, 0});
    const auto mapped = *SharedSegment::Attach(ranks[1]->name());
    RecordRing* const ring = RingOf(*ranks[1], mapped, 0);
    if (takes) {
      ring->Take(0);
    } else {
      ring->Read(800, nullptr, 8);
    }
    EXPECT_TRUE(ranks[0]->Send(1, 0, Text("x")).ok());
    EXPECT_TRUE(absl::IsDataLoss(ranks[0]->Check())) << ranks[0]->Check();
    EXPECT_TRUE(ranks[0]->IsSent(1, ranks[0]->Mark(1)));
  }
}

}  // namespace
}  // namespace sluice
