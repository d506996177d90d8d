// Layouts, and the lists in them, as texts.
#include "mesh/layout_text.h"

#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/layout.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseIntegers, ReadsListsAndRefusesOverflow) {
  EXPECT_THAT(*ParseIntegers("4096, -1,7"), ElementsAre(4096, -1, 7));
  for (const char* text : {"", "1,", "1,,2", "9223372036854775808", "1.5", "a"}) {
    EXPECT_FALSE(ParseIntegers(text).ok()) << text;
  }
}

TEST(ParseRanks, KeepsTheOrderOfRangesAndSingles) {
  EXPECT_THAT(*ParseRanks("0-3,6"), ElementsAre(0, 1, 2, 3, 6));
  EXPECT_THAT(*ParseRanks("5,2-3,0"), ElementsAre(5, 2, 3, 0));
}

TEST(ParseRanks, RefusesDescendingNegativeAndHugeRanges) {
  for (const char* text : {"", "3-1", "-1", "1-2-3", "a", "0-2000000000", "99999999999"}) {
    EXPECT_FALSE(ParseRanks(text).ok()) << text;
  }
}

TEST(LayoutText, ReadsMeshRanksAndPlacements) {
  const auto layout = Layout::Parse("2,3@7,1-5:R,SS(0,2)").value();
  EXPECT_THAT(layout.mesh.sizes(), ElementsAre(2, 3));
  EXPECT_THAT(layout.mesh.ranks(), ElementsAre(7, 1, 2, 3, 4, 5));
  EXPECT_THAT(layout.placements,
              ElementsAre(Placement::Replicate(), Placement::StridedShard(0, 2)));
}

TEST(LayoutText, WithoutRanksTheyAreConsecutive) {
  EXPECT_THAT(Layout::Parse("2,2:R,S(1)")->mesh.ranks(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ParseLayout("3:P(sum)", 5)->mesh.ranks(), ElementsAre(5, 6, 7));
  EXPECT_FALSE(NamesRanks("3:P(sum)"));
  EXPECT_TRUE(NamesRanks("3@0-2:P(sum)"));
}

TEST(LayoutText, AnOrderMayFollow) {
  EXPECT_THAT(Layout::Parse("3,2:S(0),S(0):1, 0")->order, ElementsAre(1, 0));
  EXPECT_THAT(Layout::Parse("3,2:S(0),S(0)")->order, ElementsAre());
}

TEST(LayoutText, IsWrittenAsItIsRead) {
  for (const char* text : {"1@0:R", "2,3@7,1-5:R,SS(0,2)", "4@3,2,1,0:P(max)", "2,2@0-3:S(1),S(0)",
                           "3,2@0-5:S(0),S(0):1,0"}) {
    const auto layout = Layout::Parse(text).value();
    EXPECT_EQ(LayoutName(layout), text);
  }
}

TEST(LayoutText, ErrorsSayWhatIsWrong) {
  const struct {
    const char* text;
    const char* said;
  } kWrong[] = {
      {"", "is not MESH@RANKS:PLACEMENTS"},
      {"4", "is not MESH@RANKS:PLACEMENTS"},
      {"x:R", "\"x\""},
      {"0:R", "\"0\" is no mesh"},
      {"999999999,999999999:R", "is no mesh of 1 to"},
      {"2@:R", "neither a rank"},
      {"2@0-2:R", "\"2@0-2:R\""},
      {"2@1,1:R", "\"2@1,1:R\""},
      {"2:Q", "Q"},
      {"2:R:", "order"},
      {"2:R:x", "order"},
      {"2:R:1", "there is no mesh dimension 1"},
  };
  for (const auto& wrong : kWrong) {
    EXPECT_THAT(std::string(Layout::Parse(wrong.text).status().message()), HasSubstr(wrong.said))
        << wrong.text;
  }
}

}  // namespace
}  // namespace sluice
