// Collectives as layouts.
#include "workload/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "workload/inline_case.h"
#include "workload/layout_text.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string TextOf(const char* name) {
  const auto layouts = LayoutsOf(*ParseCollective(name), 3);
  return LayoutText(layouts->src) + " " + LayoutText(layouts->dst);
}

TEST(Collectives, HaveTheLayoutsOfTheirMeaning) {
  EXPECT_EQ(TextOf("all-gather"), "3@0-2:S(0) 3@0-2:R");
  EXPECT_EQ(TextOf("reduce-scatter"), "3@0-2:P(sum) 3@0-2:S(0)");
  EXPECT_EQ(TextOf("all-reduce"), "3@0-2:P(sum) 3@0-2:R");
  EXPECT_EQ(TextOf("all-to-all"), "3@0-2:S(0) 3@0-2:SS(0,3)");
  EXPECT_EQ(TextOf("broadcast"), "1@0:R 3@0-2:R");
  EXPECT_EQ(TextOf("scatter"), "1@0:R 3@0-2:S(0)");
  EXPECT_EQ(TextOf("gather"), "3@0-2:S(0) 1@0:R");
}

TEST(Collectives, ARankGivesEachOtherOneStretchWhereAllSendToAll) {
  const auto layouts = LayoutsOf(Collective::kAllToAll, 3);
  const auto owned = OwnedRanges(layouts->dst, {18}, 1);
  ASSERT_TRUE(owned.ok()) << owned.status();
  std::vector<int64_t> begins;
  for (const IndexRange& range : owned->at(0)) {
    EXPECT_EQ(range.end - range.begin, 2);
    begins.push_back(range.begin);
  }
  EXPECT_THAT(begins, ElementsAre(2, 8, 14));
}

TEST(Collectives, AreRecognisedByTheirLayouts) {
  for (const std::string& name : CollectiveNames()) {
    const auto collective = ParseCollective(name);
    const auto layouts = LayoutsOf(*collective, 4);
    EXPECT_EQ(CollectiveOf(layouts->src, layouts->dst), *collective) << name;
  }
  EXPECT_EQ(CollectiveOf(*ParseLayoutText("4:S(0)"), *ParseLayoutText("4:S(1)")), std::nullopt);
  EXPECT_EQ(CollectiveOf(*ParseLayoutText("4:S(0)"), *ParseLayoutText("4@4-7:R")), std::nullopt);
}

InlineFlags Flags(const std::string& collective, int ranks) {
  InlineFlags flags;
  flags.collective = collective;
  flags.ranks = ranks;
  return flags;
}

TEST(Collectives, AreCasesOfAnySize) {
  const auto workload = MakeInlineCases(Flags("all-to-all", 3));
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_EQ(workload->cases.at(0).id, "all-to-all");
  EXPECT_THAT(workload->cases.at(0).spec.tensors.at(0).shape, ElementsAre((4 << 20) / 9 * 9));

  InlineFlags swept = Flags("gather", 3);
  swept.begin_bytes = "16";
  swept.end_bytes = "4K";
  swept.factor = "256";
  const auto cases = MakeInlineCases(swept);
  ASSERT_TRUE(cases.ok()) << cases.status();
  EXPECT_EQ(cases->cases.at(0).id, "gather/16");
  EXPECT_THAT(cases->cases.at(0).spec.tensors.at(0).shape, ElementsAre(9));
  EXPECT_THAT(cases->cases.at(1).spec.tensors.at(0).shape, ElementsAre(1017));
}

TEST(Collectives, ErrorsNameTheFlag) {
  const auto said = [](const InlineFlags& flags) {
    return std::string(MakeInlineCases(flags).status().message());
  };
  EXPECT_THAT(said(Flags("all-hands", 2)), HasSubstr("--collective: there is no \"all-hands\""));
  EXPECT_THAT(said(Flags("gather", 0)), HasSubstr("--ranks"));
  EXPECT_THAT(said(Flags("gather", -1)), HasSubstr("--ranks"));
  EXPECT_THAT(said(Flags("", 2)), HasSubstr("--collective"));
  InlineFlags both = Flags("gather", 2);
  both.dst = "2:R";
  EXPECT_THAT(said(both), HasSubstr("takes the place"));
}

}  // namespace
}  // namespace sluice::bench
