// The text of placements.
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/layout.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PlacementTest, NamesAreReadBack) {
  const struct {
    Placement placement;
    const char* name;
  } cases[] = {
      {Placement::Replicate(), "R"},
      {Placement::Shard(0), "S(0)"},
      {Placement::Shard(7), "S(7)"},
      {Placement::StridedShard(0, 2), "SS(0,2)"},
      {Placement::StridedShard(3, 1), "SS(3,1)"},
      {Placement::StridedShard(1, 123456789012), "SS(1,123456789012)"},
      {Placement::Partial(ReduceOp::kSum), "P(sum)"},
      {Placement::Partial(ReduceOp::kAvg), "P(avg)"},
      {Placement::Partial(ReduceOp::kMax), "P(max)"},
      {Placement::Partial(ReduceOp::kMin), "P(min)"},
      {Placement::Partial(ReduceOp::kProduct), "P(product)"},
  };
  for (const auto& good : cases) {
    EXPECT_EQ(PlacementName(good.placement), good.name);
    const auto parsed = ParsePlacement(good.name).value();
    EXPECT_EQ(parsed, good.placement) << good.name;
  }
}

TEST(PlacementTest, BlanksAreIgnored) {
  for (const char* text : {" SS(0,2)", "SS(0,2) ", "SS( 0 , 2 )", "SS (0, 2)", "\tSS(0,2)"}) {
    const auto parsed = ParsePlacement(text).value();
    EXPECT_EQ(parsed, Placement::StridedShard(0, 2)) << text;
  }
}

TEST(PlacementTest, BadTextsAreQuoted) {
  for (const char* text : {"S",
                           "S()",
                           "S(x)",
                           "S(0",
                           "S 0)",
                           "S(0))",
                           "S(0)x",
                           "S(1.5)",
                           "S(0,1)",
                           "S(99999999999999999999)",
                           "S(4294967296)",
                           "S(-1)",
                           "SS",
                           "SS()",
                           "SS(0)",
                           "SS(0,)",
                           "SS(,2)",
                           "SS(0,2,3)",
                           "SS(0,x)",
                           "SS(0,99999999999999999999)",
                           "Q",
                           "Q(0)",
                           "R(0)",
                           "R()",
                           "RR",
                           "P",
                           "P()",
                           "P(median)",
                           "P(0)",
                           "(0)",
                           "0",
                           "R S(0)"}) {
    const auto parsed = ParsePlacement(text);
    ASSERT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(text));
  }
  EXPECT_EQ(ParsePlacement("").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PlacementsTest, CommasInsideParenthesesDoNotSeparate) {
  const auto parsed = ParsePlacements("R, S(0),SS(0,2) ,P(sum),R").value();
  EXPECT_THAT(parsed, ElementsAre(Placement::Replicate(), Placement::Shard(0),
                                  Placement::StridedShard(0, 2), Placement::Partial(ReduceOp::kSum),
                                  Placement::Replicate()));
}

TEST(PlacementsTest, OneIsAList) {
  const auto parsed = ParsePlacements("SS(1,3)").value();
  EXPECT_THAT(parsed, ElementsAre(Placement::StridedShard(1, 3)));
}

TEST(PlacementsTest, BadLists) {
  for (const char* text : {"R,", ",R", "R,,R", "R;R", "R,S(", "R,S(0", "R S(0)", "R,Q,R", ","}) {
    EXPECT_EQ(ParsePlacements(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace sluice
