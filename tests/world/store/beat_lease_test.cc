// Leases by heartbeat over five calls that fail: who is taken for dead, and what it is told.
#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/store.h"
#include "world/store/store_beats.h"
#include "world/store/store_tools.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

constexpr absl::Duration kNone = absl::ZeroDuration();
constexpr absl::Duration kLease = absl::Milliseconds(400);
constexpr absl::Duration kLong = absl::Minutes(10);  // for leases that no test sees the end of
constexpr int64_t kMs = 1'000'000;

// Five calls to a store that can be out of reach.
class FlakyStore : public FiveCalls {
 public:
  using FiveCalls::FiveCalls;

  // Nothing arrives.
  void Cut(bool cut) { cut_ = cut; }
  // Calls are carried out, so many of them, but their answers are lost.
  void LoseAnswers(int count) { lost_ = count; }
  int lost_left() const { return lost_; }

  absl::StatusOr<std::string> CompareSet(absl::string_view key, absl::string_view expected,
                                         absl::string_view desired) override {
    auto value = FiveCalls::CompareSet(key, expected, desired);
    if (cut_ || lost_ == 0) return value;
    --lost_;
    return Gone();
  }

 private:
  static absl::Status Gone() { return absl::UnavailableError("out of reach"); }
  absl::Status Ask(absl::string_view /*key*/) override { return cut_ ? Gone() : absl::OkStatus(); }

  std::atomic<bool> cut_ = false;
  std::atomic<int> lost_ = 0;
};

class BeatLeaseTest : public testing::Test {
 protected:
  const std::shared_ptr<Store> table_ = MakeMemoryStore();
  FlakyStore holder_{table_};
  FlakyStore other_{table_};
};

TEST_F(BeatLeaseTest, AHolderThatDiesIsSeenGoneAndItsKeyIsRemoved) {
  const auto lease = holder_.Hold("m/1", "here", kLease).value();
  const auto view = other_.Watch("m/", 0, kNone).value();
  EXPECT_TRUE(Shows(view, "m/1", "here"));
  holder_.Cut(true);
  AwaitNone(other_, "m/");
  EXPECT_THAT(*table_->List(""), IsEmpty());
}

TEST_F(BeatLeaseTest, AHolderThatComesBackIsToldThatItIsOver) {
  auto lease = holder_.Hold("m/1", "here", kLease).value();
  holder_.Cut(true);
  AwaitNone(other_, "m/");
  const auto next = other_.Hold("m/1", "next", kLong);
  ASSERT_TRUE(next.ok()) << next.status();
  holder_.Cut(false);
  const absl::Status lost = AwaitLoss(*lease);
  EXPECT_THAT(std::string(lost.message()), HasSubstr("m/1"));
  // Its end does not touch the next one's key.
  lease.reset();
  EXPECT_EQ(*table_->Get("m/1", kNone), "next");
  EXPECT_TRUE((*next)->status().ok()) << (*next)->status();
}

TEST_F(BeatLeaseTest, AHolderThatReachesNothingKnowsByItself) {
  const auto lease = holder_.Hold("m/1", "here", kLease).value();
  holder_.Cut(true);
  EXPECT_TRUE(absl::IsUnavailable(AwaitLoss(*lease)));
  holder_.Cut(false);
  EXPECT_TRUE(absl::IsUnavailable(lease->status()));  // it stays so
}

TEST_F(BeatLeaseTest, TheKeyOfADeadHolderCanBeHeldAgain) {
  const auto dead = holder_.Hold("m/1", "here", kLease).value();
  holder_.Cut(true);
  const auto next = other_.Hold("m/1", "next", kLong);  // nobody has watched
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(*table_->Get("m/1", kNone), "next");
}

// Whether a lease is renewed thrice after two answers were lost. A machine that stands still for
// the length of the lease may lose it.
bool OutlastsLostAnswers(FlakyStore& holder, Store& table, const std::string& key) {
  const auto lease = holder.Hold(key, "here", absl::Seconds(1));
  EXPECT_TRUE(lease.ok()) << lease.status();
  if (!lease.ok()) return false;
  holder.LoseAnswers(2);
  const std::string beat_key = absl::StrCat(kStoreBeatPrefix, key);
  const auto count = [&] { return StoreBeat::Parse(*table.Get(beat_key, absl::Minutes(2))).count; };
  const absl::Time end = absl::Now() + absl::Minutes(2);
  const auto goes_on = [&] { return (*lease)->status().ok() && absl::Now() < end; };
  while (holder.lost_left() > 0 && goes_on()) absl::SleepFor(absl::Milliseconds(5));
  const int64_t before = count();
  while (count() < before + 3 && goes_on()) absl::SleepFor(absl::Milliseconds(5));
  const bool outlasts = goes_on();
  holder.LoseAnswers(0);
  return outlasts;
}

TEST_F(BeatLeaseTest, ARenewalWhoseAnswerIsLostCounts) {
  constexpr int kTries = 30;
  for (int i = 0; i < kTries; ++i) {
    if (OutlastsLostAnswers(holder_, *table_, absl::StrCat("m/", i))) return;
  }
  ADD_FAILURE() << "no lease was kept";
}

TEST_F(BeatLeaseTest, WhatCannotBeReachedIsNotHeld) {
  holder_.Cut(true);
  EXPECT_TRUE(absl::IsUnavailable(holder_.Hold("m/1", "here", kLease).status()));
  EXPECT_TRUE(absl::IsUnavailable(holder_.Watch("m/", 0, kNone).status()));
  EXPECT_THAT(*table_->List(""), IsEmpty());
}

TEST_F(BeatLeaseTest, WatchingAllDoesNotShowBeats) {
  const auto lease = holder_.Hold("s", "here", kLong).value();
  EXPECT_TRUE(table_->Set("sl", "2").ok());
  for (const std::string prefix : {"", "s"}) {
    const auto view = other_.Watch(prefix, 0, kNone);
    ASSERT_TRUE(view.ok());
    EXPECT_THAT(view->entries, UnorderedElementsAre(Pair("s", "here"), Pair("sl", "2")));
  }
}

TEST_F(BeatLeaseTest, AKeyWithoutRoomForItsBeatIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      holder_.Hold(std::string(kMaxStoreKeyBytes, 'k'), "v", kLease).status()));
}

TEST(StoreBeatTest, TextsComeThrough) {
  const StoreBeat beat = {"holder", 5000, 17};
  const StoreBeat back = StoreBeat::Parse(beat.Text());
  EXPECT_EQ(back.holder, "holder");
  EXPECT_EQ(back.lease_ms, 5000);
  EXPECT_EQ(back.count, 17);
  for (const std::string text : {"", "holder", "holder 5 x", "holder -5 1", "a b c d",
                                 "holder 99999999999 1", "holder 5 1 "}) {
    const StoreBeat none = StoreBeat::Parse(text);
    EXPECT_EQ(none.holder, "") << text;
    EXPECT_EQ(none.lease_ms, 5000) << text;
  }
}

TEST(StoreBeatsTest, ABeatIsOverWhenItStops) {
  StoreBeats beats;
  const std::string one = StoreBeat{"h", 100, 1}.Text();
  const std::string two = StoreBeat{"h", 100, 2}.Text();
  EXPECT_FALSE(beats.IsOver("b", one, {0, 10 * kMs}));
  EXPECT_FALSE(beats.IsOver("b", one, {110 * kMs, 110 * kMs}));
  EXPECT_FALSE(beats.IsOver("b", two, {500 * kMs, 500 * kMs}));  // it had gone on
  EXPECT_FALSE(beats.IsOver("b", two, {600 * kMs, 600 * kMs}));
  EXPECT_TRUE(beats.IsOver("b", two, {601 * kMs, 602 * kMs}));
}

TEST(StoreBeatsTest, AWatcherThatWasStoppedTakesNobodyForDead) {
  StoreBeats beats;
  const std::string one = StoreBeat{"h", 100, 1}.Text();
  // Stopped while it asked for the first time, and while it asked for the second.
  EXPECT_FALSE(beats.IsOver("b", one, {0, 1000 * kMs}));
  EXPECT_FALSE(beats.IsOver("b", one, {1050 * kMs, 5000 * kMs}));
}

TEST(StoreBeatsTest, ForgetsBeatsThatAreNoMore) {
  StoreBeats beats;
  const std::string one = StoreBeat{"h", 100, 1}.Text();
  const std::string a = absl::StrCat(kStoreBeatPrefix, "m/a");
  const std::string b = absl::StrCat(kStoreBeatPrefix, "m/b");
  const std::string c = absl::StrCat(kStoreBeatPrefix, "n/c");
  EXPECT_THAT(beats.Over("m/", {{a, one}, {b, one}}, {0, 0}), IsEmpty());
  EXPECT_THAT(beats.Over("n/", {{c, one}}, {0, 0}), IsEmpty());
  EXPECT_THAT(beats.Over("m/", {{a, one}}, {50 * kMs, 50 * kMs}), IsEmpty());
  // b is seen for the first time again.
  EXPECT_THAT(beats.Over("m/", {{a, one}, {b, one}}, {150 * kMs, 150 * kMs}),
              UnorderedElementsAre(Pair(a, one)));
  EXPECT_THAT(beats.Over("n/", {{c, one}}, {150 * kMs, 150 * kMs}),
              UnorderedElementsAre(Pair(c, one)));
}

TEST(StoreBeatsTest, AHolderThatCameBackIsNotDead) {
  const auto store = MakeMemoryStore();
  const std::string beat_key = absl::StrCat(kStoreBeatPrefix, "m");
  const std::string stopped = StoreBeat{"h", 100, 1}.Text();
  const std::string goes_on = StoreBeat{"h", 100, 2}.Text();
  EXPECT_TRUE(store->Set("m", "v").ok());
  EXPECT_TRUE(store->Set(beat_key, goes_on).ok());
  EXPECT_FALSE(RemoveDeadKey(*store, beat_key, stopped));
  EXPECT_EQ(*store->Get("m", kNone), "v");
  EXPECT_TRUE(RemoveDeadKey(*store, beat_key, goes_on));
  EXPECT_THAT(*store->List(""), IsEmpty());
  EXPECT_TRUE(RemoveDeadKey(*store, beat_key, goes_on));  // somebody else was first
  EXPECT_THAT(*store->List(""), IsEmpty());
}

}  // namespace
}  // namespace sluice
