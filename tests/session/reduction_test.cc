// Reductions of contributions that lie on one node or on several, every element compared with the
// same additions in mesh order.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "session/job.h"
#include "transport/loopback/loopback.h"

namespace sluice::session_test {
namespace {

// Runs `body` on `size` ranks, in nodes of `ranks_per_node`.
void RunRanksByNode(int size, int ranks_per_node, const RankBody& body) {
  std::vector<int> node_of_rank;
  node_of_rank.reserve(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) node_of_rank.push_back(rank / ranks_per_node);
  RunRanksOn(MakeLoopbackFabrics(node_of_rank), body, WantsDirect());
}

struct Case {
  int sources;  // ranks 0, 1, ...
  std::vector<int64_t> mesh;
  const char* src;
  int targets;
  const char* dst;
  std::vector<int64_t> shape = {96, 160};
  int inside = 0;  // of the targets; the last ones of the sources. The others come after these

  int size() const { return sources + targets - inside; }
  std::string Describe() const {
    return absl::StrCat(src, " of ", sources, " to ", dst, " of ", targets, ", ", inside,
                        " of them sources");
  }
};

TransferSpec SpecOf(const Case& of, DType src_dtype, DType dst_dtype) {
  TransferSpec spec;
  for (const char* name : {"first", "second"}) {
    spec.tensors.push_back(
        {.name = name,
         .shape = of.shape,
         .src_dtype = src_dtype,
         .dst_dtype = dst_dtype,
         .src = MakeLayout(of.mesh, Ranks(0, of.sources), of.src),
         .dst = MakeLayout({of.targets}, Ranks(of.sources - of.inside, of.size()), of.dst)});
  }
  return spec;
}

// All of them where tests are thorough. Else a third for each number of ranks of a node, other ones
// for each.
std::vector<Case> Cases(int ranks_per_node) {
  const std::vector<Case> all = {{2, {2}, "P(sum)", 2, "S(0)"},
                                 {2, {2}, "P(avg)", 3, "R"},
                                 {3, {3}, "P(max)", 3, "S(1)"},
                                 {4, {2, 2}, "P(sum),S(1)", 4, "R"},
                                 {4, {2, 2}, "S(0),P(product)", 5, "S(0)", {97, 33}},
                                 {4, {2, 2}, "P(sum),P(max)", 4, "S(0)"},
                                 {5, {5}, "P(sum)", 3, "S(0)"},
                                 {6, {2, 3}, "R,P(avg)", 2, "R"},
                                 {6, {6}, "P(min)", 6, "S(0)", {5, 3}},
                                 {6, {6}, "P(avg)", 2, "S(0)", {256, 160}},
                                 {4, {2, 2}, "P(sum),P(sum)", 4, "S(0)"},
                                 {4, {2, 2}, "P(avg),P(avg)", 4, "R", {96, 160}, 4},
                                 {4, {4}, "P(sum)", 4, "R", {96, 160}, 4},
                                 {4, {4}, "P(avg)", 4, "S(0)", {384, 192}, 4},
                                 {6, {6}, "P(sum)", 6, "S(1)", {192, 384}, 6},
                                 {6, {3, 2}, "P(max),P(max)", 6, "R", {96, 160}, 6},
                                 {6, {6}, "P(avg)", 6, "R", {256, 96}, 6},
                                 {5, {5}, "P(sum)", 5, "R", {256, 80}, 3}};
  const size_t stride = oracle::kSanitized || !oracle::IsThorough() ? 3 : 1;
  std::vector<Case> cases;
  for (size_t i = static_cast<size_t>(ranks_per_node) % stride; i < all.size(); i += stride) {
    cases.push_back(all[i]);
  }
  return cases;
}

class ReductionTest : public testing::TestWithParam<int> {};

TEST_P(ReductionTest, EveryElementIsRight) {
  const struct {
    DType src, dst;
  } dtypes[] = {{DType::kF32, DType::kF32},
                {DType::kF32, DType::kBF16},
                {DType::kBF16, DType::kF32},
                {DType::kI64, DType::kI64}};
  size_t next = 0;  // where not all are tried with each case, each comes with some
  for (const Case& of : Cases(GetParam())) {
    for (int tried = 0; tried < oracle::Thinned(4); ++tried) {
      const auto& [src, dst] = dtypes[next++ % std::size(dtypes)];
      SCOPED_TRACE(absl::StrCat(of.Describe(), ", ", DTypeName(src), " to ", DTypeName(dst)));
      const TransferSpec spec = SpecOf(of, src, dst);
      RunRanksByNode(of.size(), GetParam(), [&](Rank& self) {
        const std::unique_ptr<Session> session = OpenSession(self, {.bucket_bytes = 8 << 10});
        for (const uint64_t style : {0, 1}) {
          Bound bound = CompileBound(session.get(), spec, style);
          RunOnce(session.get(), &bound, style);
        }
        ExpectWithinLimits(*session);
        EXPECT_TRUE(session->Close().ok());
      });
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST_P(ReductionTest, OneSlotIsEnough) {
  for (const Case& of : Cases(GetParam())) {
    const TransferSpec spec = SpecOf(of, DType::kF32, DType::kF32);
    SCOPED_TRACE(of.Describe());
    RunRanksByNode(of.size(), GetParam(), [&](Rank& self) { RunThroughOneSlot(self, spec); });
    ASSERT_FALSE(HasFailure());
  }
}

INSTANTIATE_TEST_SUITE_P(RanksPerNode, ReductionTest, testing::Values(2, 3, 16),
                         testing::PrintToStringParamName());

// Over direct copies, targets beside the sources add up what lies there into what lies here.
TEST(ReductionInPlaceTest, TakesNoStaging) {
  RunRanksByNode(4, 4, [](Rank& self) {
    const std::unique_ptr<Session> session = OpenSession(self, SessionOptions());
    const TransferSpec spec =
        SpecOf({2, {2}, "P(sum)", 2, "S(0)", {512, 512}}, DType::kF32, DType::kF32);
    Bound bound = CompileBound(session.get(), spec);
    for (uint64_t round = 0; round < 3; ++round) RunOnce(session.get(), &bound, round);
    const int64_t staging = session->counters().staging_bytes_peak;
    if (WantsDirect() || self.rank < 2) {
      EXPECT_EQ(staging, 0);
    } else {
      EXPECT_GT(staging, 0);
    }
    EXPECT_TRUE(session->Close().ok());
  });
}

}  // namespace
}  // namespace sluice::session_test
