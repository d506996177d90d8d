// The table by itself: limits, holds, and what has changed.
#include "world/store/store_table.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using testing::ElementsAre;

TEST(StoreTableTest, TakesNoMoreKeysThanItsLimit) {
  StoreTable table(2, 1000);
  EXPECT_TRUE(table.Set("a", "1").ok());
  EXPECT_TRUE(table.Set("b", "1").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(table.Set("c", "1")));
  EXPECT_TRUE(absl::IsResourceExhausted(table.Add("c", 1).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(table.CompareSet("c", "", "1").status()));
  EXPECT_TRUE(absl::IsResourceExhausted(table.Hold("c", "1").status()));
  EXPECT_EQ(table.Find("c"), nullptr);
  EXPECT_TRUE(table.Set("a", "2").ok());  // no new key
  EXPECT_TRUE(table.Set("b", "").ok());
  EXPECT_TRUE(table.Hold("c", "1").ok());
}

// In quotes, as names of other things are: what is in a key does not read like the message.
TEST(StoreTableTest, ErrorsShowKeysAndValuesAsText) {
  StoreTable table(2, 1000);
  EXPECT_TRUE(table.Set("caf\303\251 \"1\"\x1b", "one\xff").ok());
  EXPECT_THAT(std::string(table.Add("caf\303\251 \"1\"\x1b", 1).status().message()),
              testing::HasSubstr("key \"caf\303\251 \\\"1\\\"\\x1b\" is no number to add to: "
                                 "\"one\\xff\""));
}

TEST(StoreTableTest, TakesNoMoreBytesThanItsLimit) {
  StoreTable table(100, 10);
  EXPECT_TRUE(table.Set("a", "12345").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(table.Set("b", "1234")));
  EXPECT_TRUE(table.Set("b", "123").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(table.Set("b", "1234")));
  EXPECT_EQ(*table.Find("b"), "123");
  EXPECT_TRUE(table.Set("a", "1234").ok());
  EXPECT_TRUE(table.Set("b", "1234").ok());
  EXPECT_TRUE(table.Set("a", "").ok());
  EXPECT_TRUE(table.Set("c", "1234").ok());
}

TEST(StoreTableTest, ListsNoMoreThanAReplyHolds) {
  StoreTable table(1000, int64_t{64} << 20);
  const std::string value(kMaxStoreValueBytes, 'v');
  int keys = 0;
  const auto set_next = [&] { ASSERT_TRUE(table.Set(absl::StrCat("k", keys++), value).ok()); };
  while (keys < 250) set_next();
  while (table.List("k").ok()) set_next();
  EXPECT_TRUE(absl::IsResourceExhausted(table.List("k").status()));
  EXPECT_GE(static_cast<size_t>(keys) * value.size(), kMaxStoreListBytes - (1 << 20));
  EXPECT_TRUE(table.List("k1").ok());
}

TEST(StoreTableTest, AHoldEndsOnce) {
  StoreTable table(10, 1000);
  const uint64_t first = *table.Hold("a", "1");
  EXPECT_TRUE(absl::IsAlreadyExists(table.Hold("a", "1").status()));
  table.Release("a", first + 1);  // another's
  EXPECT_NE(table.Find("a"), nullptr);
  table.Release("a", first);
  EXPECT_EQ(table.Find("a"), nullptr);
  const uint64_t second = *table.Hold("a", "1");
  EXPECT_NE(second, first);
  table.Release("a", first);
  EXPECT_NE(table.Find("a"), nullptr);
  // Who removes the key ends the hold; what is set afterwards is nobody's.
  EXPECT_TRUE(table.Set("a", "").ok());
  EXPECT_TRUE(table.Set("a", "2").ok());
  table.Release("a", second);
  EXPECT_EQ(*table.Find("a"), "2");
}

TEST(StoreTableTest, SaysWhatChanges) {
  StoreTable table(10, 1000);
  std::vector<std::string> changed;
  table.OnChange([&](absl::string_view key) { changed.emplace_back(key); });
  const uint64_t before = table.version();
  EXPECT_TRUE(table.Set("a/1", "1").ok());
  EXPECT_TRUE(table.Set("a/1", "1").ok());  // as it was
  EXPECT_TRUE(table.Set("b", "").ok());     // likewise
  EXPECT_THAT(changed, ElementsAre("a/1"));
  EXPECT_TRUE(table.ChangedSince("a/", before));
  EXPECT_TRUE(table.ChangedSince("", before));
  EXPECT_FALSE(table.ChangedSince("b", before));
  EXPECT_FALSE(table.ChangedSince("a/", table.version()));
  table.Release("a/1", 1);
  EXPECT_THAT(changed, ElementsAre("a/1"));  // nobody held it
  EXPECT_TRUE(table.ChangedSince("a/", 0));
  EXPECT_TRUE(table.ChangedSince("a/", table.version() + 1));  // of another table
}

TEST(StoreTableTest, ForgetsChangesOfLongAgo) {
  StoreTable table(10, 1000);
  const uint64_t before = table.version();
  for (int i = 0; i < 10000; ++i) ASSERT_TRUE(table.Set("a", absl::StrCat(i)).ok());
  EXPECT_TRUE(table.ChangedSince("b", before));  // cannot tell
  EXPECT_FALSE(table.ChangedSince("b", table.version() - 100));
  EXPECT_TRUE(table.ChangedSince("a", table.version() - 100));
}

}  // namespace
}  // namespace sluice
