// Cases from flags, and sweeps over sizes.
#include "workload/inline_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

InlineFlags Flags() {
  InlineFlags flags;
  flags.shape = "4096,4096";
  flags.dtype = "f32";
  flags.src_mesh = "2,2";
  flags.src_ranks = "0-3";
  flags.src_placements = "R,S(0)";
  flags.dst_mesh = "4";
  flags.dst_ranks = "4-7";
  flags.dst_placements = "S(1)";
  return flags;
}

TEST(InlineCase, MakesOneCaseOfTheFlags) {
  const auto workload = MakeInlineCases(Flags());
  ASSERT_TRUE(workload.ok()) << workload.status();
  ASSERT_EQ(workload->cases.size(), 1u);
  EXPECT_EQ(workload->cases[0].id, "inline");
  const TensorTransfer& tensor = workload->cases[0].spec.tensors.at(0);
  EXPECT_THAT(tensor.shape, ElementsAre(4096, 4096));
  EXPECT_THAT(tensor.src.mesh.ranks(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(tensor.dst.placements, ElementsAre(Placement::Shard(1)));
}

TEST(InlineCase, SweepsTheFirstDimensionByBytesOfTheWholeTensor) {
  InlineFlags flags = Flags();
  flags.begin_bytes = "1M";
  flags.end_bytes = "64M";
  flags.factor = "4";
  const auto workload = MakeInlineCases(flags);
  ASSERT_TRUE(workload.ok()) << workload.status();
  std::vector<int64_t> rows;
  for (const Case& entry : workload->cases) rows.push_back(entry.spec.tensors.at(0).shape[0]);
  EXPECT_THAT(rows, ElementsAre(64, 256, 1024, 4096));
  EXPECT_EQ(workload->cases[1].id, "inline/4194304");
}

TEST(InlineCase, SweepsByStepsOfBytes) {
  InlineFlags flags = Flags();
  flags.begin_bytes = "1M";
  flags.end_bytes = "2M";
  flags.step = "384K";
  const auto workload = MakeInlineCases(flags);
  ASSERT_TRUE(workload.ok()) << workload.status();
  std::vector<std::string> ids;
  for (const Case& entry : workload->cases) ids.push_back(entry.id);
  EXPECT_THAT(ids, ElementsAre("inline/1048576", "inline/1441792", "inline/1835008"));
  EXPECT_EQ(workload->cases[1].spec.tensors.at(0).shape[0], 88);
  flags.factor = "2";
  EXPECT_THAT(MakeInlineCases(flags).status().message(), HasSubstr("-i takes the place of -f"));
  flags.factor.clear();
  flags.step = "0";
  EXPECT_THAT(MakeInlineCases(flags).status().message(), HasSubstr("-i > 0"));
}

TEST(InlineCase, ASizeSmallerThanARowKeepsOne) {
  InlineFlags flags = Flags();
  flags.begin_bytes = "1K";
  EXPECT_EQ(MakeInlineCases(flags)->cases[0].spec.tensors.at(0).shape[0], 1);
}

TEST(InlineCase, ErrorsNameTheFlag) {
  const struct {
    std::string InlineFlags::*flag;
    const char* value;
    const char* named;
  } kWrong[] = {
      {&InlineFlags::shape, "", "--shape"},
      {&InlineFlags::shape, "4096x4096", "--shape"},
      {&InlineFlags::dtype, "float", "--dtype"},
      {&InlineFlags::src_mesh, "2,3", "--src-mesh"},
      {&InlineFlags::src, "2:R", "--src takes the place"},
      {&InlineFlags::src_ranks, "", "--src-ranks"},
      {&InlineFlags::src_ranks, "0-2,2", "--src-ranks"},
      {&InlineFlags::dst_ranks, "7-4", "--dst-ranks"},
      {&InlineFlags::dst_placements, "S(", "--dst-placements"},
      {&InlineFlags::end_bytes, "1M", "-b"},
      {&InlineFlags::factor, "2", "-b"},
      {&InlineFlags::step, "1M", "-b"},
      {&InlineFlags::begin_bytes, "0", "-b"},
      {&InlineFlags::begin_bytes, "huge", "-b"},
  };
  for (const auto& wrong : kWrong) {
    InlineFlags flags = Flags();
    flags.*wrong.flag = wrong.value;
    EXPECT_THAT(MakeInlineCases(flags).status().message(), HasSubstr(wrong.named)) << wrong.value;
  }
  InlineFlags endless = Flags();
  endless.begin_bytes = "1M";
  endless.end_bytes = "2M";
  endless.factor = "1";
  EXPECT_THAT(MakeInlineCases(endless).status().message(), HasSubstr("-f"));
}

InlineFlags Compact(const std::string& src, const std::string& dst) {
  InlineFlags flags;
  flags.shape = "8,8";
  flags.src = src;
  flags.dst = dst;
  return flags;
}

std::vector<int> TargetRanks(const InlineFlags& flags) {
  const auto workload = MakeInlineCases(flags);
  if (!workload.ok()) return {};
  const auto ranks = workload->cases.at(0).spec.tensors.at(0).dst.mesh.ranks();
  return {ranks.begin(), ranks.end()};
}

TEST(InlineCase, ReadsLayoutsFromOneText) {
  const auto workload = MakeInlineCases(Compact("2,2@4-7:R,S(0)", "2:S(1)"));
  ASSERT_TRUE(workload.ok()) << workload.status();
  const TensorTransfer& tensor = workload->cases.at(0).spec.tensors.at(0);
  EXPECT_THAT(tensor.src.mesh.ranks(), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(tensor.dst.mesh.ranks(), ElementsAre(0, 1));
  EXPECT_THAT(tensor.dst.placements, ElementsAre(Placement::Shard(1)));
}

TEST(InlineCase, ADisjointTargetBeginsAfterTheSource) {
  InlineFlags flags = Compact("2@5,3:S(0)", "3:R");
  flags.disjoint = true;
  EXPECT_THAT(TargetRanks(flags), ElementsAre(6, 7, 8));
  flags.dst = "3@0-2:R";
  EXPECT_THAT(MakeInlineCases(flags).status().message(), HasSubstr("--disjoint"));
}

TEST(InlineCase, EachSideIsGivenOnceInOneOfTwoWays) {
  InlineFlags flags = Compact("2:S(0)", "");
  EXPECT_EQ(MakeInlineCases(flags).status().message(), "--dst is missing");
  flags.dst_mesh = "2";
  flags.dst_ranks = "2-3";
  flags.dst_placements = "R";
  EXPECT_THAT(TargetRanks(flags), ElementsAre(2, 3));
  flags.dst = "2:R";
  EXPECT_THAT(MakeInlineCases(flags).status().message(),
              HasSubstr("--dst takes the place of --dst-mesh"));
}

TEST(InlineCase, LayoutsThatDoNotFitAreErrorsOfTheCase) {
  InlineFlags flags = Flags();
  flags.dst_placements = "S(2)";
  const auto workload = MakeInlineCases(flags);
  ASSERT_TRUE(workload.ok());
  EXPECT_FALSE(workload->cases[0].status.ok());
}

}  // namespace
}  // namespace sluice::bench
