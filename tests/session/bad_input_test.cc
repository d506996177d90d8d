// What the caller can get wrong: an error on every rank, nothing moved, the session usable again.
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "session/job.h"
#include "sluice/testing.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

constexpr int kSize = 4;

// What a message must contain.
using Texts = std::vector<std::string>;

void ExpectError(const absl::Status& status, StatusCode code, const Texts& texts) {
  EXPECT_EQ(status.code(), code) << status;
  for (const std::string& text : texts) EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

// Expects Create to fail alike on all ranks.
void ExpectCreateFails(const std::function<SessionOptions(int)>& options, StatusCode code,
                       const Texts& texts) {
  RunRanks(kSize, [&](Rank& self) {
    ExpectError(Session::Create(std::move(self.fabric), options(self.rank)).status(), code, texts);
  });
}

// Runs `spec` once, to show that the session works.
void ExpectUsable(Session* session) {
  Bound bound = CompileBound(session, AllToAll(kSize, 1024));
  RunOnce(session, &bound, 7);
  EXPECT_TRUE(session->Close().ok());
}

// Expects Compile to fail on all ranks, and the session to work afterwards.
void ExpectCompileFails(const std::function<TransferSpec(int)>& spec, StatusCode code,
                        const Texts& texts) {
  RunRanks(kSize, [&](Rank& self) {
    const auto session = OpenSession(self, {});
    ExpectError(session->Compile(spec(self.rank)).status(), code, texts);
    ExpectUsable(session.get());
  });
}

TEST(CreateTest, KnobsThatDifferAreNamed) {
  const auto expect = [](const std::function<void(SessionOptions*)>& change,
                         const std::string& text) {
    ExpectCreateFails(
        [&](int rank) {
          SessionOptions options;
          if (rank == 2) change(&options);
          return options;
        },
        StatusCode::kFailedPrecondition, {text});
  };
  expect([](SessionOptions* o) { o->bucket_bytes = 4096; },
         "bucket_bytes (0: automatic) in Create: 0 on ranks 0, 1, 3, 4096 on rank 2");
  expect([](SessionOptions* o) { o->max_in_flight = 3; },
         "max_in_flight (0: automatic) in Create: 0 on ranks 0, 1, 3, 3 on rank 2");
  expect([](SessionOptions* o) { o->budget_buckets = kNoLimit; },
         "budget_buckets (-1: no limit) in Create: 16 on ranks 0, 1, 3, -1 on rank 2");
  expect([](SessionOptions* o) { o->budget_bytes = 1 << 30; },
         "budget_bytes (0: automatic, -1: no limit) in Create: 0 on ranks 0, 1, 3, 1073741824 on "
         "rank 2");
  expect([](SessionOptions* o) { o->coalesce = false; },
         "coalesce in Create: 1 on ranks 0, 1, 3, 0 on rank 2");
  expect([](SessionOptions* o) { o->timeout = absl::Seconds(20); }, "timeout");
}

TEST(CreateTest, PlansThatDifferAreNamed) {
  RunRanks(kSize, [](Rank& self) {
    const auto session = self.rank == 2 ? CreateNaiveSession(std::move(self.fabric), {})
                                        : Session::Create(std::move(self.fabric), {});
    ExpectError(session.status(), StatusCode::kFailedPrecondition,
                {"relay in Create: 1 on ranks 0, 1, 3, 0 on rank 2"});
  });
}

TEST(CreateTest, LimitsWithoutRoomPrintTheBreakdownOnAllRanks) {
  const auto options = [](bool bad) {
    SessionOptions result = {.bucket_bytes = 8 << 20};
    if (bad) result.budget_bytes = 1000;
    return result;
  };
  ExpectCreateFails([&](int) { return options(true); }, StatusCode::kInvalidArgument,
                    {"budget_bytes 1000 / bucket_bytes 8388608 = 0 slots"});
  ExpectCreateFails([&](int rank) { return options(rank == 1); }, StatusCode::kInvalidArgument,
                    {"rank 1", "budget_bytes 1000"});
}

TEST(CreateTest, NeedsAFabricOrAWorld) {
  for (const absl::Status& status : {Session::Create(std::unique_ptr<Fabric>(), {}).status(),
                                     Session::Create(static_cast<World*>(nullptr), {}).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  }
}

// A timeout that is none does not keep the ranks from telling each other.
TEST(CreateTest, NeedsATimeout) {
  SessionOptions bad;
  for (const absl::Duration timeout : {absl::ZeroDuration(), -absl::InfiniteDuration()}) {
    bad.timeout = timeout;
    ExpectCreateFails([&](int) { return bad; }, StatusCode::kInvalidArgument,
                      {"timeout must be positive"});
    ExpectCreateFails([&](int rank) { return rank == 1 ? bad : SessionOptions(); },
                      StatusCode::kInvalidArgument, {"rank 1", "timeout must be positive"});
  }
}

TEST(CreateTest, MayWaitForEver) {
  RunRanks(kSize, [](Rank& self) {
    const auto session = OpenSession(self, {.timeout = absl::InfiniteDuration()});
    if (session != nullptr) ExpectUsable(session.get());
  });
}

TEST(CompileTest, WhatDiffersIsNamed) {
  const auto expect = [](const std::function<void(TransferSpec*)>& change,
                         const std::string& text) {
    ExpectCompileFails(
        [&](int rank) {
          TransferSpec spec = AllToAll(kSize, 1024);
          if (rank == 3) change(&spec);
          return spec;
        },
        StatusCode::kFailedPrecondition, {text, "rank 3"});
  };
  expect([](TransferSpec* s) { s->tensors.push_back(s->tensors[0]); },
         "the number of tensors in Compile: 1 on ranks 0-2, 2 on rank 3");
  expect([](TransferSpec* s) { s->tensors[0].name.push_back('u'); }, "names");
  expect([](TransferSpec* s) { ++s->tensors[0].shape[0]; }, "shapes or dtypes");
  expect([](TransferSpec* s) { s->tensors[0].src_dtype = s->tensors[0].dst_dtype = DType::kI64; },
         "shapes or dtypes");
  expect([](TransferSpec* s) { s->tensors[0].src.placements[0] = Placement::Replicate(); },
         "meshes, ranks or placements");
  expect(
      [](TransferSpec* s) {
        s->tensors[0].dst = MakeLayout({4}, {0, 1, 3, 2}, "S(1)");
      },
      "meshes, ranks or placements");
  expect(
      [](TransferSpec* s) {
        s->tensors[0].dst = MakeLayout({2, 2}, {0, 1, 2, 3}, "S(1),R");
      },
      "meshes, ranks or placements");
}

TEST(CompileTest, WhatIsInvalidIsNamed) {
  const auto expect = [](const std::function<void(TensorTransfer*)>& change,
                         const std::string& text) {
    const auto spec = [&](bool bad) {
      TransferSpec result = AllToAll(kSize, 1024);
      if (bad) change(&result.tensors[0]);
      return result;
    };
    ExpectCompileFails([&](int) { return spec(true); }, StatusCode::kInvalidArgument, {text});
    ExpectCompileFails([&](int rank) { return spec(rank == 2); }, StatusCode::kInvalidArgument,
                       {text, "Compile failed on rank 2"});
  };
  expect(
      [](TensorTransfer* t) {
        t->src = MakeLayout({2}, {0, 4}, "S(0)");
      },
      "source: rank 4 is outside the job's ranks 0..3");
  expect([](TensorTransfer* t) { t->dst.placements = {Placement::Partial(ReduceOp::kSum)}; },
         "only a source may be Partial");
  expect([](TensorTransfer* t) { t->dst.placements = {Placement::Shard(2)}; }, "target");
  expect([](TensorTransfer* t) { t->src_dtype = DType::kI64; }, "no cast from i64 to f64");
  expect([](TensorTransfer* t) { t->shape[1] = -1; }, "tensor 0 't'");
}

TEST(CompileTest, StagingThatCannotBeHadLeavesEarlierTransfersUsable) {
  RunRanks(kSize, [](Rank& self) {
    const auto session = OpenSession(self, {.bucket_bytes = 1 << 30,
                                            .max_in_flight = 1 << 16,
                                            .budget_buckets = kNoLimit,
                                            .budget_bytes = kNoLimit});
    Bound bound = CompileBound(session.get(), AllToAll(kSize, 1024));
    RunOnce(session.get(), &bound, 1);
    // 512 TiB, planned only: no address space holds the slots.
    TransferSpec huge = AllToAll(kSize, 1024);
    huge.tensors[0].shape = {int64_t{1} << 18, int64_t{1} << 28};
    ExpectError(session->Compile(huge).status(), StatusCode::kResourceExhausted,
                {"slots x", "staging"});
    RunOnce(session.get(), &bound, 2);
    ExpectUsable(session.get());
  });
}

// Starts a transfer's first run with `change` made to the memory of rank 1 (or of all ranks), and
// expects all ranks to refuse it.
void ExpectFirstRunRefused(
    bool everywhere,
    const std::function<void(std::vector<TensorView>*, std::vector<TensorView>*)>& change,
    const std::string& text) {
  RunRanks(kSize, [&](Rank& self) {
    const auto session = OpenSession(self, {});
    Bound bound = CompileBound(session.get(), AllToAll(kSize, 1024));
    bound.memory.Prepare(1);
    std::vector<TensorView> src = bound.memory.src(), dst = bound.memory.dst();
    if (everywhere || self.rank == 1) change(&src, &dst);
    const auto run = session->Start(bound.transfer, src, dst).value();
    const absl::Status refusal = run.Wait();
    ExpectError(refusal, StatusCode::kInvalidArgument, {text});
    if (!everywhere) {
      EXPECT_THAT(std::string(refusal.message()), HasSubstr("Start failed on rank 1"));
    }
    EXPECT_TRUE(run.IsDone());
    EXPECT_TRUE(bound.memory.Untouched(1));
    EXPECT_TRUE(session->Poll().ok());
    RunOnce(session.get(), &bound, 2);
    EXPECT_EQ(run.Wait(), refusal) << "a refused run stays refused";
    ExpectUsable(session.get());
  });
}

TEST(FirstRunTest, WrongViewsAreRefusedByAllRanks) {
  for (const bool everywhere : {false, true}) {
    const auto expect = [&](const auto& change, const std::string& text) {
      ExpectFirstRunRefused(everywhere, change, text);
    };
    using Views = std::vector<TensorView>;
    expect([](Views* src, Views*) { src->clear(); }, "0 source and 1 destination views");
    expect([](Views*, Views* dst) { ++(*dst)[0].shape[0]; },
           "destination of tensor 0 't': view has");
    expect([](Views* src, Views*) { (*src)[0].device = DeviceKind::kCuda; }, "not in host memory");
    expect([](Views*, Views* dst) { (*dst)[0].strides = {0, 1}; }, "overlaps itself");
    expect([](Views* src, Views*) { (*src)[0].data = nullptr; }, "no data");
    expect([](Views* src, Views* dst) { (*dst)[0].data = (*src)[0].data; }, "share memory");
  }
}

TEST(LaterRunTest, WrongViewsPoisonAllRanks) {
  RunRanks(kSize, [](Rank& self) {
    const auto session = OpenSession(self, {});
    Bound bound = CompileBound(session.get(), AllToAll(kSize, 1024));
    const auto first = RunOnce(session.get(), &bound, 1);
    self.meet();
    std::vector<TensorView> dst = bound.memory.dst();
    if (self.rank == 1) dst[0].dtype = DType::kI64;
    const auto run = session->Start(bound.transfer, bound.memory.src(), dst);
    absl::Status status = run.status();
    if (self.rank == 1) {
      EXPECT_FALSE(run.ok());
    } else if (run.ok()) {
      // The alarm may have come before.
      status = run->Wait();
      EXPECT_TRUE(run->IsDone());
    }
    ExpectError(status, StatusCode::kInvalidArgument, {"view has dtype i64"});
    if (self.rank != 1) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 failed"));
    }
    EXPECT_EQ(session->Poll(), status);
    EXPECT_EQ(session->Compile({}).status(), status);
    EXPECT_EQ(first.Wait(), absl::OkStatus()) << "what was done stays done";
  });
}

// As wrong views do: of a first run and of a later one.
TEST(RefusalTest, EveryRankHearsOfIt) {
  RunRanks(kSize, [](Rank& self) {
    const auto session = OpenSession(self, {});
    Bound bound = CompileBound(session.get(), AllToAll(kSize, 1024));
    StartOptions options;
    if (self.rank == 1) options.refusal = absl::InvalidArgumentError("'t' was freed");
    const auto start = [&] {
      return session->Start(bound.transfer, bound.memory.src(), bound.memory.dst(), options);
    };
    bound.memory.Prepare(1);
    const auto first = start().value();
    ExpectError(first.Wait(), StatusCode::kInvalidArgument,
                {"Start failed on rank 1", "'t' was freed"});
    EXPECT_TRUE(bound.memory.Untouched(1));
    RunOnce(session.get(), &bound, 2);
    self.meet();
    const auto later = start();
    const absl::Status status = later.ok() ? later->Wait() : later.status();
    ExpectError(status, StatusCode::kInvalidArgument, {"'t' was freed"});
    EXPECT_EQ(session->Poll(), status);
  });
}

TEST(MisuseTest, NothingEndsWhileARunIsInFlight) {
  RunSessions(kSize, {}, [](Rank&, Session* session) {
    Bound bound = CompileBound(session, AllToAll(kSize, 1024));
    for (uint64_t round = 0; round < 2; ++round) {
      const auto run = StartRun(session, &bound, round);
      EXPECT_FALSE(run.IsDone());
      ExpectError(session->Compile({}).status(), StatusCode::kFailedPrecondition, {"in flight"});
      ExpectError(session->Close(), StatusCode::kFailedPrecondition, {"in flight"});
      EXPECT_EQ(sluice::Run().Wait().code(), StatusCode::kInvalidArgument);
      ASSERT_TRUE(run.Wait().ok());
      EXPECT_EQ(bound.memory.Check(round), "");
    }
  });
}

TEST(MisuseTest, ForeignTransfersAreRefused) {
  Transfer* foreign = nullptr;
  std::unique_ptr<Session> other;
  RunRanks(1, [&](Rank& self) {
    other = OpenSession(self, {});
    foreign = CompileBound(other.get(), Ring(1, 1)).transfer;
  });
  RunRanks(kSize, [&](Rank& self) {
    const auto session = OpenSession(self, {});
    for (Transfer* wrong : {foreign, static_cast<Transfer*>(nullptr)}) {
      ExpectError(session->Start(wrong, {}, {}).status(), StatusCode::kInvalidArgument,
                  {"not this session's"});
    }
    ExpectUsable(session.get());
  });
}

TEST(MisuseTest, DifferentTransfersAreNamed) {
  RunRanks(kSize, [](Rank& self) {
    const auto session = OpenSession(self, {});
    std::array<Bound, 2> bounds = {CompileBound(session.get(), Ring(kSize, 1)),
                                   CompileBound(session.get(), Ring(kSize, 1))};
    Bound& mine = bounds[self.rank == 2 ? 1 : 0];
    const auto run = StartRun(session.get(), &mine, 1);
    ExpectError(run.Wait(), StatusCode::kFailedPrecondition,
                {"the transfer to start as run 1 in Start: 0 on ranks 0, 1, 3, 1 on rank 2"});
    EXPECT_TRUE(mine.memory.Untouched(1));
    for (Bound& bound : bounds) RunOnce(session.get(), &bound, 2);
  });
}

}  // namespace
}  // namespace sluice::session_test
