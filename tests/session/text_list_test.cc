// Texts as one text, and back.
#include "session/base/text_list.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(TextListTest, LengthsTellTextsApart) {
  const std::vector<std::string> texts = {"a b", "", "1 x", std::string("\0\n", 2)};
  const std::string joined = JoinTexts(texts);
  EXPECT_EQ(joined, std::string("3 a b0 3 1 x2 \0\n", 16));
  const absl::StatusOr<std::vector<std::string>> split = SplitTexts(joined);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(*split, texts);
}

TEST(TextListTest, NoTextsAreAnEmptyText) {
  EXPECT_EQ(JoinTexts({}), "");
  const absl::StatusOr<std::vector<std::string>> split = SplitTexts("");
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_TRUE(split->empty());
}

TEST(TextListTest, DamagedTextsAreInternal) {
  for (const char* damaged : {"3 ab", "x a", "5", "-1 a", " a", "1 a2 b", "18446744073709551615 a",
                              "18446744073709551616 a"}) {
    EXPECT_EQ(SplitTexts(damaged).status().code(), absl::StatusCode::kInternal) << damaged;
  }
}

}  // namespace
}  // namespace sluice
