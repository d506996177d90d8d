// Halves that do not fit together: the same error on every rank, nothing moved, and the session
// goes on.
#include <array>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/connect_job.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

constexpr int kSize = 4;

using Texts = std::vector<std::string>;

// Ranks 0 and 1 have "w" by rows, ranks 2 and 3 want it by columns.
struct Own {
  std::array<float, 64> memory{};
  ConnectSpec spec;

  explicit Own(int rank) {
    const bool is_source = rank < 2;
    ConnectTensor tensor = {
        "w",         {4, 8},
        DType::kF32, is_source ? MakeLayout({2}, {0, 1}, "S(0)") : MakeLayout({2}, {2, 3}, "S(1)"),
        {},          absl::nullopt};
    tensor.view =
        DenseView(memory.data(),
                  is_source ? std::vector<int64_t>{2, 8} : std::vector<int64_t>{4, 4}, DType::kF32);
    (is_source ? spec.sources : spec.targets).push_back(tensor);
  }
  ConnectTensor& tensor() {
    return spec.sources.empty() ? spec.targets.front() : spec.sources.front();
  }
};

using Change = std::function<void(int rank, Own* own)>;

void RunGood(Session* session, int rank) {
  Own own(rank);
  own.memory.fill(rank < 2 ? static_cast<float>(rank + 1) : 0.0f);
  const auto connection = Connect(session, own.spec);
  ASSERT_TRUE(connection.ok()) << connection.status();
  const auto run = (*connection)->Run(1);
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_TRUE(run->Wait().ok());
  if (rank < 2) return;
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(own.memory[i], i < 8 ? 1 : 2) << i;
}

// Expects Connect to fail alike on all ranks, and to work afterwards. With `alike` false, each rank
// has its own words.
void ExpectFails(const Change& change, StatusCode code, const Texts& texts, bool alike = true,
                 bool progress_thread = false) {
  std::mutex mutex;
  std::vector<std::string> errors;
  RunRanks(kSize, [&](Rank& self) {
    SessionOptions options;
    options.progress_thread = progress_thread;
    const auto session = OpenSession(self, options);
    ASSERT_NE(session, nullptr);
    Own own(self.rank);
    change(self.rank, &own);
    const absl::Status status = Connect(session.get(), own.spec).status();
    EXPECT_EQ(status.code(), code) << status;
    for (const std::string& text : texts) {
      EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    }
    EXPECT_LT(status.message().size(), 2000u);
    {
      const std::lock_guard<std::mutex> lock(mutex);
      errors.push_back(status.ToString());
    }
    RunGood(session.get(), self.rank);
    EXPECT_TRUE(session->Close().ok());
  });
  for (const std::string& error : errors) {
    if (alike) {
      EXPECT_EQ(error, errors.front());
    }
  }
}

// The change is made on one rank alone.
Change On(int rank, const std::function<void(Own*)>& change) {
  return [rank, change](int self, Own* own) {
    if (self == rank) change(own);
  };
}

TEST(ConnectBadInputTest, GoodInputIsGood) {
  RunRanks(kSize, [](Rank& self) {
    const auto session = OpenSession(self, {});
    ASSERT_NE(session, nullptr);
    RunGood(session.get(), self.rank);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(ConnectBadInputTest, TargetsWithoutASource) {
  ExpectFails(
      [](int rank, Own* own) {
        if (rank >= 2) own->tensor().name = "v";
      },
      StatusCode::kNotFound,
      {"no rank has a source for target 'v' of ranks 2, 3",
       "no target asks for source 'w' of ranks 0, 1"});
  ExpectFails(
      [](int rank, Own* own) {
        if (rank < 2) own->spec.sources.clear();
      },
      StatusCode::kNotFound, {"no rank has a source for target 'w' of ranks 2, 3"});
}

TEST(ConnectBadInputTest, SourcesWithoutATarget) {
  ExpectFails(
      [](int rank, Own* own) {
        if (rank >= 2) own->spec.targets.clear();
      },
      StatusCode::kInvalidArgument,
      {"no target asks for source 'w' of ranks 0, 1", "ignore_unused_sources"});
}

TEST(ConnectBadInputTest, RenamesThatLeadNowhereOrApart) {
  ExpectFails(
      [](int rank, Own* own) {
        if (rank == 2) own->spec.renames["w"] = "v";
      },
      StatusCode::kNotFound, {"'w' of ranks 2, 3 (renamed from 'v')"});
  ExpectFails(
      [](int rank, Own* own) {
        if (rank >= 2) own->spec.renames["w"] = rank == 2 ? "w" : "v";
      },
      StatusCode::kFailedPrecondition,
      {"ranks disagree on the source of target 'w': 'w' on rank 2, 'v' on rank 3"});
  ExpectFails(On(1, [](Own* own) { own->spec.renames["t"] = ""; }), StatusCode::kInvalidArgument,
              {"Connect failed on rank 1: the rename of 't' to '': it has no name"});
}

TEST(ConnectBadInputTest, SidesThatDiffer) {
  ExpectFails(
      [](int rank, Own* own) {
        if (rank < 2) return;
        own->tensor().shape = {8, 4};
        own->tensor().view = DenseView(own->memory.data(), {8, 2}, DType::kF32);
      },
      StatusCode::kInvalidArgument,
      {"shapes differ: source 'w' of ranks 0, 1 has shape [4,8], target 'w' of ranks 2, 3 [8,4]"});
  ExpectFails(
      [](int rank, Own* own) {
        if (rank < 2) return;
        own->tensor().dtype = own->tensor().view.dtype = DType::kI32;
      },
      StatusCode::kInvalidArgument,
      {"no cast exists", "'w' of ranks 0, 1 is f32, target 'w' of ranks 2, 3 i32"});
}

TEST(ConnectBadInputTest, RanksOfOneSideThatDisagree) {
  ExpectFails(On(1,
                 [](Own* own) {
                   own->tensor().shape = {4, 6};
                   own->tensor().view = DenseView(own->memory.data(), {2, 6}, DType::kF32);
                 }),
              StatusCode::kFailedPrecondition,
              {"ranks disagree on source 'w': shape [4,8] on rank 0, [4,6] on rank 1"});
  ExpectFails(
      On(3, [](Own* own) { own->tensor().dtype = own->tensor().view.dtype = DType::kBF16; }),
      StatusCode::kFailedPrecondition,
      {"ranks disagree on target 'w': f32 on rank 2, bf16 on rank 3"});
  ExpectFails(On(3,
                 [](Own* own) {
                   own->tensor().layout = MakeLayout({2}, {3, 2}, "S(1)");
                 }),
              StatusCode::kFailedPrecondition,
              {"ranks disagree on target 'w': S(1) on mesh [2] of ranks 2, 3 on rank 2, S(1) on "
               "mesh [2] of ranks 2, 3 in another order on rank 3"});
  ExpectFails(On(3, [](Own* own) { own->tensor().window = 4; }), StatusCode::kFailedPrecondition,
              {"ranks disagree on target 'w': no window on rank 2, window 4 on rank 3"});
  ExpectFails([](int rank, Own* own) { own->spec.priority_class = rank == 3 ? 1 : 2; },
              StatusCode::kFailedPrecondition,
              {"ranks disagree on priority_class: 2 on ranks 0, 1, 1 on rank 3"});
}

TEST(ConnectBadInputTest, MeshesAndTheRanksThatGive) {
  ExpectFails(On(1, [](Own* own) { own->spec.sources.clear(); }), StatusCode::kInvalidArgument,
              {"source 'w' of rank 0 lies on rank 1, too, which does not give it"});
  ExpectFails(On(2, [](Own* own) { own->spec.targets.clear(); }), StatusCode::kInvalidArgument,
              {"target 'w' of rank 3 lies on rank 2, too, which does not give it"});
  ExpectFails(On(2, [](Own* own) { own->spec.sources.push_back(Own(0).tensor()); }),
              StatusCode::kInvalidArgument,
              {"Connect failed on rank 2: source 'w': rank 2 gives it, but its mesh is of ranks "
               "0, 1"});
  ExpectFails(On(2,
                 [](Own* own) {
                   own->tensor().layout = MakeLayout({2}, {2, 4}, "S(1)");
                 }),
              StatusCode::kInvalidArgument,
              {"Connect failed on rank 2: target 'w': rank 4 is outside the job's ranks 0..3"});
}

TEST(ConnectBadInputTest, TensorsThatMakeNoSense) {
  const auto expect = [](const std::function<void(Own*)>& change, const std::string& text) {
    ExpectFails(On(2, change), StatusCode::kInvalidArgument, {"Connect failed on rank 2", text});
  };
  expect([](Own* own) { own->spec.targets.push_back(own->tensor()); },
         "target 'w': it is given twice");
  expect([](Own* own) { own->tensor().name = ""; }, "target '': it has no name");
  expect([](Own* own) { own->tensor().name = std::string(2000, 'n'); },
         "its name has 2000 bytes; at most 1024 are possible");
  expect(
      [](Own* own) {
        own->tensor().name = "a\nb";
        own->tensor().shape = {};
      },
      "'a\\nb'");
  expect([](Own* own) { own->tensor().shape = {-1, 8}; }, "negative size");
  expect([](Own* own) { own->tensor().shape = {}; }, "dimensions");
  expect([](Own* own) { own->tensor().layout = {}; }, "the mesh is empty");
  expect([](Own* own) { own->tensor().layout.placements.clear(); }, "0 placements for a mesh of 1");
  expect(
      [](Own* own) {
        own->tensor().layout = MakeLayout({2}, {2, 3}, "S(2)");
      },
      "cuts dimension 2");
  expect(
      [](Own* own) {
        own->tensor().layout = MakeLayout({2}, {2, 3}, "P(sum)");
      },
      "only a source may be Partial");
  expect([](Own* own) { own->tensor().window = -1; }, "window is -1");
  expect([](Own* own) { own->tensor().window = kMaxWindow + 1; }, "window is 65536");
  expect([](Own* own) { own->spec.priority_class = kPriorityClasses; }, "priority_class is 4");
  ExpectFails(On(0,
                 [](Own* own) {
                   own->tensor().dtype = own->tensor().view.dtype = DType::kBool;
                   own->tensor().layout = MakeLayout({2}, {0, 1}, "P(max)");
                 }),
              StatusCode::kInvalidArgument, {"rank 0", "there is no reduction of bool"});
}

TEST(ConnectBadInputTest, ViewsThatDoNotFit) {
  const auto expect = [](const std::function<void(Own*)>& change, const Texts& texts) {
    ExpectFails(On(3, change), StatusCode::kInvalidArgument, texts);
  };
  expect(
      [](Own* own) {
        own->tensor().view.shape = {4, 3};
      },
      {"Connect failed on rank 3: target 'w': view has shape [4,3], the layout needs [4,4]"});
  expect([](Own* own) { own->tensor().view.dtype = DType::kF64; },
         {"rank 3: target 'w': view has dtype f64"});
  expect([](Own* own) { own->tensor().view.data = nullptr; },
         {"rank 3: target 'w': view has no data"});
  expect(
      [](Own* own) {
        own->tensor().view.strides = {1, 1};
      },
      {"rank 3: target 'w': destination view of shape [4,4]", "overlaps itself"});
  expect([](Own* own) { own->tensor().view.device = DeviceKind::kCuda; }, {"rank 3: target 'w'"});
}

TEST(ConnectBadInputTest, MemoryThatIsUsedTwice) {
  ExpectFails(
      [](int rank, Own* own) {
        if (rank < 2) return;
        ConnectTensor again = own->tensor();
        again.name = "again";
        again.view.byte_offset = rank == 2 ? 256 : 4;
        own->spec.renames["again"] = "w";
        own->memory.fill(0);
        own->spec.targets.push_back(again);
        if (rank == 2)
          own->spec.targets.back().view = DenseView(&own->memory[16], {4, 4}, DType::kF32);
      },
      StatusCode::kInvalidArgument,
      {"Connect failed on rank 3: destination of tensor 0 'w' and destination of tensor 1 'again' "
       "share memory"});
}

TEST(ConnectBadInputTest, AllRanksAreBad) {
  ExpectFails([](int, Own* own) { own->tensor().name = ""; }, StatusCode::kInvalidArgument,
              {"it has no name"}, /*alike=*/false);
}

TEST(ConnectBadInputTest, ManyFaultsAreCounted) {
  ExpectFails(
      [](int rank, Own* own) {
        if (rank < 2) return;
        for (int i = 0; i < 100; ++i) {
          ConnectTensor more = own->tensor();
          more.name = "more" + std::to_string(i);
          more.view = DenseView(nullptr, more.view.shape, more.dtype);
          own->spec.targets.push_back(more);
        }
        own->spec.late_targets = true;
      },
      StatusCode::kNotFound,
      {"no rank has a source for target 'more0' of ranks 2, 3, 'more1' of ranks 2, 3",
       "and 96 more"});
}

TEST(ConnectBadInputTest, WithAProgressThread) {
  ExpectFails(On(1, [](Own* own) { own->spec.sources.clear(); }), StatusCode::kInvalidArgument,
              {"lies on rank 1"}, true, true);
}

TEST(ConnectBadInputTest, NoSession) {
  EXPECT_EQ(Connect(nullptr, {}).status().code(), StatusCode::kInvalidArgument);
}

TEST(ConnectBadInputTest, OneRankMakesAnotherCall) {
  RunRanks(kSize, [](Rank& self) {
    const auto session = OpenSession(self, {});
    ASSERT_NE(session, nullptr);
    Own own(self.rank);
    const absl::Status status =
        self.rank == 2 ? session->Compile({}).status() : Connect(session.get(), own.spec).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("Connect on ranks 0, 1, 3, Compile on rank 2"));
    RunGood(session.get(), self.rank);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(ConnectBadInputTest, ARunIsInFlight) {
  RunRanks(kSize, [](Rank& self) {
    const auto session = OpenSession(self, {});
    ASSERT_NE(session, nullptr);
    Own own(self.rank);
    const auto connection = Connect(session.get(), own.spec);
    ASSERT_TRUE(connection.ok()) << connection.status();
    const auto run = (*connection)->Run(1);
    ASSERT_TRUE(run.ok()) << run.status();
    for (const absl::Status& status :
         {Connect(session.get(), own.spec).status(), (*connection)->Drop()}) {
      EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
    }
    ASSERT_TRUE(run->Wait().ok());
    self.meet();  // nobody calls Drop before all have been refused
    EXPECT_TRUE((*connection)->Drop().ok());
    RunGood(session.get(), self.rank);
    EXPECT_TRUE(session->Close().ok());
  });
}

TEST(ConnectBadInputTest, ARankThatDoesNotCallIsNamed) {
  RunRanks(3, [](Rank& self) {
    SessionOptions options;
    options.timeout = absl::Seconds(5);
    const auto session = OpenSession(self, options);
    ASSERT_NE(session, nullptr);
    if (self.rank != 1) {
      const absl::Status status = Connect(session.get(), {}).status();
      EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 did not call Connect"));
    }
    self.meet();
  });
}

}  // namespace
}  // namespace sluice::session_test
