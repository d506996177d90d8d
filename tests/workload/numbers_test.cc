// Sizes, lists and ranges, good and bad.
#include "workload/numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseBytes, ReadsPlainNumbersAndPowersOf1024) {
  EXPECT_EQ(*ParseBytes("0"), 0);
  EXPECT_EQ(*ParseBytes("65536"), 65536);
  EXPECT_EQ(*ParseBytes("64K"), 64 << 10);
  EXPECT_EQ(*ParseBytes("8M"), 8 << 20);
  EXPECT_EQ(*ParseBytes("8MiB"), 8 << 20);
  EXPECT_EQ(*ParseBytes(" 1g "), int64_t{1} << 30);
  EXPECT_EQ(*ParseBytes("1.5K"), 1536);
  EXPECT_EQ(*ParseBytes("9223372036854775807"), INT64_MAX);
}

TEST(ParseBytes, RefusesWhatIsNotASizeOrDoesNotFit) {
  for (const char* text : {"", "M", "-1", "1X", "0x10", "1.3", "1 2", "1e3", "nan", "8MM"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
  for (const char* text : {"9223372036854775808", "8388608T", "99999999999.5T"}) {
    EXPECT_THAT(ParseBytes(text).status().message(), HasSubstr("do not fit")) << text;
  }
}

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

TEST(BytesName, PicksTheUnit) {
  EXPECT_EQ(BytesName(12), "12 B");
  EXPECT_EQ(BytesName(8 << 20), "8 MiB");
  EXPECT_EQ(BytesName((int64_t{3} << 30) / 2), "1.5 GiB");
}

TEST(ParseBytesOrAuto, ReadsBoth) {
  EXPECT_EQ(*ParseBytesOrAuto("64K"), 65536);
  EXPECT_EQ(*ParseBytesOrAuto(" auto "), 0);
  EXPECT_FALSE(ParseBytesOrAuto("automatic").ok());
}

}  // namespace
}  // namespace sluice::bench
