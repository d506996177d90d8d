// What a session records of its buckets' stages.
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "session/job.h"
#include "session/launch.h"
#include "trace/serialize.h"

namespace sluice::session_test {
namespace {

SessionOptions Traced(int64_t events) {
  return {.bucket_bytes = 1024, .budget_buckets = 4, .trace_events = events};
}

using Stages = std::map<TraceKind, TraceEvent>;

// The spans of each bucket; each stage at most once.
std::map<BucketId, Stages> StagesOf(const TraceContent& content) {
  std::map<BucketId, Stages> stages;
  for (const TraceEvent& event : content.events) {
    EXPECT_LE(event.begin_ns, event.end_ns);
    if (event.kind == TraceKind::kSample) continue;
    EXPECT_TRUE(stages[event.id].emplace(event.kind, event).second) << event.id.ToString();
    EXPECT_LT(event.count, 4) << "a slot";
    EXPECT_LE(event.bytes, 1024);
  }
  return stages;
}

void ExpectInOrder(const Stages& stages) {
  const bool moves = stages.count(TraceKind::kMove) > 0;
  const bool drains = stages.count(TraceKind::kDrain) > 0;
  EXPECT_TRUE(moves || (drains && stages.size() == 1)) << "a bucket crosses, or stays in its rank";
  int64_t last_ns = 0;
  int slot = -1;
  for (const auto& [kind, event] : stages) {  // in the order of the stages
    EXPECT_GE(event.begin_ns, last_ns);
    EXPECT_TRUE(slot < 0 || slot == event.count) << "a bucket keeps its slot";
    last_ns = event.end_ns;
    slot = event.count;
  }
}

// A move is the receipt of a destination, or the gift of a contributor, or neither: then others
// come to this rank.
void ExpectNeighbours(const Stages& stages, int rank) {
  for (const auto& [kind, event] : stages) {
    const TraceStage stage = event.stage();
    EXPECT_NE(stage.from, rank);
    EXPECT_NE(stage.to, rank);
    if (kind != TraceKind::kMove) {
      EXPECT_LT(stage.from, 0);
      EXPECT_LT(stage.to, 0);
    } else if (static_cast<int>(event.id.fields().src) != rank) {
      EXPECT_TRUE(stage.from >= 0 || stage.to >= 0) << event.id.ToString();
    }
  }
}

// Samples end with nothing in flight and have never more than the budget.
void ExpectSamples(const TraceContent& content) {
  const TraceEvent* last = nullptr;
  for (const TraceEvent& event : content.events) {
    if (event.kind != TraceKind::kSample) continue;
    EXPECT_LE(event.count, 4);
    EXPECT_LE(event.bytes, 4 * 1024);
    last = &event;
  }
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(last->count, 0);
  EXPECT_EQ(last->bytes, 0);
}

TransferSpec Mixed(int size) {
  TransferSpec spec = AllToAll(size, 4096);
  spec.tensors[0].name = "moved";
  spec.tensors.push_back(spec.tensors[0]);
  spec.tensors[1].name = "added";
  spec.tensors[1].src = MakeLayout({size}, Ranks(0, size), "P(sum)");
  spec.tensors[1].dst = MakeLayout({size}, Ranks(0, size), "R");
  return spec;
}

TEST(StageTraceTest, EveryStageOfEveryBucketIsThereOnce) {
  RunSessions(3, Traced(1 << 16), [](Rank& self, Session* session) {
    Bound bound = CompileBound(session, Mixed(3));
    TraceLog* const log = session->trace();
    ASSERT_NE(log, nullptr);
    for (uint64_t round = 1; round <= 3; ++round) RunOnce(session, &bound, round);
    EXPECT_EQ(log->rank(), self.rank);
    EXPECT_EQ(log->dropped(), 0);
    const auto content = DecodeTrace(log->Serialize()).value();
    EXPECT_EQ(static_cast<int64_t>(content.events.size()), log->size());
    const std::map<BucketId, Stages> stages = StagesOf(content);
    EXPECT_EQ(static_cast<int64_t>(stages.size()), 3 * bound.transfer->stats().buckets);
    std::set<uint64_t> runs;
    std::set<TraceKind> kinds;
    std::set<std::string> names;
    for (const auto& [id, of_bucket] : stages) {
      ExpectInOrder(of_bucket);
      ExpectNeighbours(of_bucket, self.rank);
      for (const auto& [kind, event] : of_bucket) {
        EXPECT_EQ(event.stage().tensors, 1) << "chunks of 1024 bytes fill a bucket";
        names.insert(content.tensors.at(static_cast<size_t>(event.stage().tensor)));
      }
      runs.insert(id.fields().run);
      for (const auto& [kind, event] : of_bucket) kinds.insert(kind);
    }
    EXPECT_EQ(runs, (std::set<uint64_t>{1, 2, 3}));
    EXPECT_EQ(kinds.size(), 3u);
    EXPECT_EQ(names, (std::set<std::string>{"added", "moved"}));
    ExpectSamples(content);
  });
}

TEST(StageTraceTest, WhatFindsNoRoomIsCounted) {
  RunRanks(2, [](Rank& self) {
    const auto session = OpenSession(self, Traced(self.rank == 0 ? 10 : 1));
    Bound bound = CompileBound(session.get(), AllToAll(2, 8192));
    RunOnce(session.get(), &bound, 1);
    TraceLog* const log = session->trace();
    ASSERT_NE(log, nullptr);
    EXPECT_EQ(log->capacity(), self.rank == 0 ? 10 : 1);
    EXPECT_EQ(log->size(), log->capacity());
    EXPECT_GE(log->size() + log->dropped(), bound.transfer->stats().buckets);
    const int64_t dropped = log->dropped();
    EXPECT_GT(dropped, 0);
    log->Clear();
    EXPECT_EQ(log->size(), 0);
    RunOnce(session.get(), &bound, 2);
    EXPECT_EQ(log->size(), log->capacity());
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(StageTraceTest, ThereIsNoneUnlessAskedFor) {
  RunRanks(2, [](Rank& self) {
    const auto session = OpenSession(self, Traced(self.rank == 0 ? 0 : 100));
    Bound bound = CompileBound(session.get(), AllToAll(2, 1024));
    RunOnce(session.get(), &bound, 1);
    EXPECT_EQ(session->trace() == nullptr, self.rank == 0);
    EXPECT_TRUE(session->Close().ok());
  });
}

}  // namespace
}  // namespace sluice::session_test
