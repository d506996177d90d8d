// The contract of the five calls and of watching.
#include "world/store/store_contract.h"

#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "main/on_threads.h"
#include "world/store/store_tools.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr absl::Duration kNoWait = absl::ZeroDuration();

absl::StatusCode CodeOf(const absl::Status& status) { return status.code(); }
template <class T>
absl::StatusCode CodeOf(const absl::StatusOr<T>& value) {
  return value.status().code();
}

}  // namespace

TEST_P(StoreContract, WhatIsSetIsThere) {
  const auto one = Open();
  const auto other = Open();
  EXPECT_TRUE(one->Set("a", "1").ok());
  EXPECT_EQ(*other->Get("a", kNoWait), "1");
  EXPECT_TRUE(other->Set("a", "2").ok());
  EXPECT_EQ(*one->Get("a", kNoWait), "2");
  EXPECT_TRUE(one->Set("a", "").ok());
  EXPECT_EQ(CodeOf(other->Get("a", kNoWait)), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(one->Set("a", "").ok());  // again
}

TEST_P(StoreContract, KeysAndValuesMayBeAnyBytes) {
  const auto store = Open();
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  EXPECT_TRUE(store->Set(all, all).ok());
  EXPECT_EQ(*store->Get(all, kNoWait), all);
  const std::string zeros(3, '\0');
  EXPECT_TRUE(store->Set(zeros, zeros + zeros).ok());
  EXPECT_EQ(*store->Get(zeros, kNoWait), zeros + zeros);
  EXPECT_EQ(CodeOf(store->Get(std::string(2, '\0'), kNoWait)), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(*store->List(std::string(1, '\0')),
              ElementsAre(Pair(zeros, zeros + zeros), Pair(all, all)));
}

TEST_P(StoreContract, KeysAndValuesHaveLimits) {
  const auto store = Open();
  const std::string key(kMaxStoreKeyBytes, 'k');
  const std::string value(kMaxStoreValueBytes, 'v');
  EXPECT_TRUE(store->Set(key, value).ok());
  EXPECT_EQ(*store->Get(key, kNoWait), value);
  EXPECT_EQ(*store->CompareSet(key, value, value), value);
  constexpr auto kBad = absl::StatusCode::kInvalidArgument;
  for (const std::string& bad : {std::string(), key + "k"}) {
    EXPECT_EQ(CodeOf(store->Set(bad, "1")), kBad);
    EXPECT_EQ(CodeOf(store->Get(bad, kNoWait)), kBad);
    EXPECT_EQ(CodeOf(store->Add(bad, 1)), kBad);
    EXPECT_EQ(CodeOf(store->CompareSet(bad, "", "1")), kBad);
    EXPECT_EQ(CodeOf(store->Hold(bad, "1")), kBad);
  }
  EXPECT_EQ(CodeOf(store->List(key + "k")), kBad);
  EXPECT_EQ(CodeOf(store->Set("a", value + "v")), kBad);
  EXPECT_EQ(CodeOf(store->CompareSet("a", "", value + "v")), kBad);
  EXPECT_EQ(CodeOf(store->Get("a", kNoWait)), absl::StatusCode::kDeadlineExceeded);
}

TEST_P(StoreContract, GetWaits) {
  const auto one = Open();
  const auto other = Open();
  std::thread setter([&] { EXPECT_TRUE(other->Set("late", "here").ok()); });
  const auto value = one->Get("late", kHang);
  setter.join();
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, "here");
}

TEST_P(StoreContract, GetGivesUp) {
  const auto store = Open();
  const auto value = store->Get("never", absl::Milliseconds(20));
  EXPECT_EQ(CodeOf(value), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(value.status().message()), testing::HasSubstr("never"));
  EXPECT_EQ(CodeOf(store->Get("never", -absl::Seconds(1))), absl::StatusCode::kDeadlineExceeded);
}

TEST_P(StoreContract, CallsDoNotWaitForOthers) {
  const auto store = Open();
  std::thread waits([&] { EXPECT_EQ(*store->Get("end", kHang), "now"); });
  std::thread watches([&] {
    WatchUntil(*store, "end", [](const StoreView& view) { return !view.entries.empty(); });
  });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(store->Set("other", absl::StrCat(i)).ok());
  EXPECT_TRUE(store->Set("end", "now").ok());
  waits.join();
  watches.join();
}

TEST_P(StoreContract, AddsNumbers) {
  const auto store = Open();
  EXPECT_EQ(*store->Add("n", 5), 5);
  EXPECT_EQ(*store->Add("n", -7), -2);
  EXPECT_EQ(*store->Get("n", kNoWait), "-2");
  EXPECT_EQ(*store->Add("n", 0), -2);
  EXPECT_TRUE(store->Set("n", "40").ok());
  EXPECT_EQ(*store->Add("n", 2), 42);
  EXPECT_EQ(*store->Add("zero", 0), 0);
  EXPECT_EQ(*store->Get("zero", kNoWait), "0");
}

TEST_P(StoreContract, AddsNothingToWhatIsNoNumber) {
  const auto store = Open();
  for (const std::string text : {"x", "1x", "9223372036854775808", "1.5"}) {
    EXPECT_TRUE(store->Set("n", text).ok());
    EXPECT_EQ(CodeOf(store->Add("n", 1)), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(*store->Get("n", kNoWait), text);
  }
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(store->Set("n", absl::StrCat(kMost)).ok());
  EXPECT_EQ(CodeOf(store->Add("n", 1)), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(*store->Add("n", -1), kMost - 1);
  EXPECT_EQ(*store->Add("m", std::numeric_limits<int64_t>::min()),
            std::numeric_limits<int64_t>::min());
}

TEST_P(StoreContract, AddsOfManyAllCount) {
  constexpr int kThreads = 8;
  constexpr int kAdds = 50;
  std::mutex mutex;
  std::set<int64_t> sums;
  OnThreads(kThreads, [&](int) {
    const auto store = Open();
    for (int i = 0; i < kAdds; ++i) {
      const auto sum = store->Add("n", 1);
      ASSERT_TRUE(sum.ok()) << sum.status();
      const std::lock_guard<std::mutex> lock(mutex);
      sums.insert(*sum);
    }
  });
  EXPECT_EQ(sums.size(), static_cast<size_t>(kThreads * kAdds));
  EXPECT_EQ(*sums.rbegin(), kThreads * kAdds);
}

TEST_P(StoreContract, ComparesAndSets) {
  const auto store = Open();
  EXPECT_EQ(*store->CompareSet("k", "x", "1"), "");
  EXPECT_EQ(*store->CompareSet("k", "", "1"), "1");
  EXPECT_EQ(*store->CompareSet("k", "", "2"), "1");
  EXPECT_EQ(*store->CompareSet("k", "1", "2"), "2");
  EXPECT_EQ(*store->CompareSet("k", "2", ""), "");
  EXPECT_EQ(CodeOf(store->Get("k", kNoWait)), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(*store->CompareSet("k", "", ""), "");
}

TEST_P(StoreContract, OneOfManyWins) {
  constexpr int kThreads = 8;
  std::mutex mutex;
  std::set<std::string> values;
  int winners = 0;
  OnThreads(kThreads, [&](int i) {
    const auto store = Open();
    const std::string own = absl::StrCat("member ", i);
    const auto value = store->CompareSet("first", "", own);
    ASSERT_TRUE(value.ok()) << value.status();
    const std::lock_guard<std::mutex> lock(mutex);
    values.insert(*value);
    winners += *value == own ? 1 : 0;
  });
  EXPECT_EQ(values.size(), 1u);
  EXPECT_EQ(winners, 1);
}

TEST_P(StoreContract, ListsWhatLiesBelowAPrefix) {
  const auto store = Open();
  for (const std::string key : {"b/2", "b/10", "b", "a/1", "c", "b/1"}) {
    EXPECT_TRUE(store->Set(key, "v" + key).ok());
  }
  EXPECT_THAT(*store->List("b/"),
              ElementsAre(Pair("b/1", "vb/1"), Pair("b/10", "vb/10"), Pair("b/2", "vb/2")));
  EXPECT_EQ(store->List("")->size(), 6u);
  EXPECT_THAT(*store->List("d"), IsEmpty());
}

TEST_P(StoreContract, WatchesForChanges) {
  const auto one = Open();
  const auto other = Open();
  auto view = one->Watch("w/", 0, kHang);  // the first look does not wait
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_THAT(view->entries, IsEmpty());
  std::thread changes([&] {
    EXPECT_TRUE(other->Set("elsewhere", "x").ok());
    EXPECT_TRUE(other->Set("w/1", "x").ok());
    EXPECT_TRUE(other->Set("w/2", "y").ok());
    EXPECT_TRUE(other->Set("w/1", "").ok());
  });
  const StoreView last = WatchUntil(*one, "w/", [](const StoreView& now) {
    return Shows(now, "w/2", "y") && now.entries.size() == 1;
  });
  changes.join();
  EXPECT_TRUE(other->Set("w/2", "z").ok());
  const auto next = one->Watch("w/", last.version, kHang).value();
  EXPECT_TRUE(Shows(next, "w/2", "z"));
}

TEST_P(StoreContract, AWatchEndsInTime) {
  const auto store = Open();
  EXPECT_TRUE(store->Set("w/1", "x").ok());
  const auto view = store->Watch("w/", 0, kHang).value();
  const auto same = store->Watch("w/", view.version, absl::Milliseconds(30)).value();
  EXPECT_EQ(same.entries, view.entries);
}

TEST_P(StoreContract, ManyClientsAtOnce) {
  constexpr int kClients = 64;
  OnThreads(kClients, [&](int i) {
    const auto store = Open();
    ASSERT_TRUE(store->Set(absl::StrCat("here/", i), absl::StrCat(i)).ok());
    const auto count = store->Add("count", 1);
    ASSERT_TRUE(count.ok());
    if (*count == kClients) {
      ASSERT_TRUE(store->Set("all", "here").ok());
    }
    const auto all = store->Get("all", kHang);
    ASSERT_TRUE(all.ok()) << all.status();
    const auto members = store->List("here/");
    ASSERT_TRUE(members.ok()) << members.status();
    EXPECT_EQ(members->size(), static_cast<size_t>(kClients));
  });
}

}  // namespace sluice
