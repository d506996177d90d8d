// Leases by heartbeat when others come in between two calls of theirs: nobody's key is lost.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "sluice/store.h"
#include "world/store/store_beats.h"
#include "world/store/store_tools.h"

namespace sluice {
namespace {

constexpr absl::Duration kNone = absl::ZeroDuration();
constexpr absl::Duration kLease = absl::Milliseconds(400);

// Before it changes a key in a way that a test names, once, something else happens.
class InterruptedStore : public FiveCalls {
 public:
  using FiveCalls::FiveCalls;

  // `value` is the new one.
  void BeforeChange(const std::string& key, const std::string& value,
                    std::function<void()> happens) {
    key_ = key;
    value_ = value;
    happens_ = std::move(happens);
  }
  void FailRemovals(bool fail) { fail_removals_ = fail; }
  int removals() const { return removals_; }

  absl::Status Set(absl::string_view key, absl::string_view value) override {
    if (absl::Status status = Interrupt(key, value); !status.ok()) return status;
    return inner_->Set(key, value);
  }
  absl::StatusOr<std::string> CompareSet(absl::string_view key, absl::string_view expected,
                                         absl::string_view desired) override {
    if (absl::Status status = Interrupt(key, desired); !status.ok()) return status;
    return inner_->CompareSet(key, expected, desired);
  }

 private:
  absl::Status Interrupt(absl::string_view key, absl::string_view value) {
    if (happens_ != nullptr && key == key_ && value == value_) std::exchange(happens_, nullptr)();
    if (!value.empty() || key != "m/1") return absl::OkStatus();
    ++removals_;
    // For another caller to come meanwhile. One that comes later hears the same.
    if (fail_removals_) absl::SleepFor(absl::Milliseconds(200));
    return fail_removals_ ? absl::UnavailableError("out of reach") : absl::OkStatus();
  }

  std::string key_;
  std::string value_;
  std::function<void()> happens_;
  std::atomic<bool> fail_removals_ = false;
  std::atomic<int> removals_ = 0;
};

class BeatRaceTest : public testing::Test {
 protected:
  // A third one takes the key, as soon as its holder seems to be dead.
  void ThirdTakesIt() {
    auto lease = third_.Hold("m/1", "third", absl::Minutes(1));
    ASSERT_TRUE(lease.ok()) << lease.status();
    third_lease_ = *std::move(lease);
  }

  // A holder whose process has died without a word.
  void LeaveDeadHolder() {
    EXPECT_TRUE(table_->Set("m/1", "dead").ok());
    EXPECT_TRUE(table_
                    ->Set(absl::StrCat(kStoreBeatPrefix, "m/1"),
                          StoreBeat{"dead", absl::ToInt64Milliseconds(kLease), 7}.Text())
                    .ok());
  }

  void ExpectThirdHasIt() {
    ASSERT_NE(third_lease_, nullptr);
    EXPECT_EQ(table_->Get("m/1", kNone).value_or("nothing"), "third");
    EXPECT_TRUE(third_lease_->status().ok()) << third_lease_->status();
  }

  const std::shared_ptr<Store> table_ = MakeMemoryStore();
  InterruptedStore holder_{table_};
  FiveCalls third_{table_};
  std::unique_ptr<StoreLease> third_lease_;
};

// It was stopped after it took the dead one's beat, and was taken for dead itself.
TEST_F(BeatRaceTest, WhoIsLateToSetItsValueDoesNotTouchTheNextHolders) {
  LeaveDeadHolder();
  holder_.BeforeChange("m/1", "late", [this] { ThirdTakesIt(); });
  const auto lease = holder_.Hold("m/1", "late", kLease);
  EXPECT_FALSE(lease.ok() && (*lease)->status().ok() && *table_->Get("m/1", kNone) == "late");
  ExpectThirdHasIt();
}

TEST_F(BeatRaceTest, ADeadHoldersValueIsReplacedThoughOthersChangeIt) {
  LeaveDeadHolder();
  holder_.BeforeChange("m/1", "next", [this] { EXPECT_TRUE(table_->Set("m/1", "odd").ok()); });
  const auto lease = holder_.Hold("m/1", "next", absl::Minutes(1)).value();
  EXPECT_EQ(*table_->Get("m/1", kNone), "next");
}

TEST_F(BeatRaceTest, WhoIsLateToReleaseDoesNotTouchTheNextHoldersKey) {
  const auto lease = holder_.Hold("m/1", "late", kLease).value();
  holder_.BeforeChange("m/1", "", [this] { ThirdTakesIt(); });
  EXPECT_TRUE(lease->Release().ok());
  ExpectThirdHasIt();
}

TEST_F(BeatRaceTest, AReleaseRemovesWhatOthersHaveChanged) {
  const auto lease = holder_.Hold("m/1", "here", absl::Minutes(1)).value();
  EXPECT_TRUE(table_->Set("m/1", "changed").ok());
  holder_.BeforeChange("m/1", "", [this] { EXPECT_TRUE(table_->Set("m/1", "again").ok()); });
  EXPECT_TRUE(lease->Release().ok());
  EXPECT_TRUE(table_->List("")->empty());
}

// Each caller hears what the release came to, not what it was before.
TEST_F(BeatRaceTest, ReleasesAtOnceComeToTheSame) {
  const auto lease = holder_.Hold("m/1", "here", absl::Minutes(1)).value();
  holder_.FailRemovals(true);
  absl::Status first;
  std::thread releases([&] { first = lease->Release(); });
  while (holder_.removals() == 0) std::this_thread::yield();
  const absl::Status second = lease->Release();
  releases.join();
  EXPECT_TRUE(absl::IsUnavailable(first)) << first;
  EXPECT_TRUE(absl::IsUnavailable(second)) << second;
}

// Somebody changes the key of a dead holder while a watcher removes it.
TEST_F(BeatRaceTest, ADeadHoldersKeyIsRemovedThoughOthersChangeIt) {
  LeaveDeadHolder();
  const std::string beat_key = absl::StrCat(kStoreBeatPrefix, "m/1");
  holder_.BeforeChange("m/1", "", [this] { EXPECT_TRUE(table_->Set("m/1", "odd").ok()); });
  EXPECT_TRUE(RemoveDeadKey(holder_, beat_key, *table_->Get(beat_key, kNone)));
  EXPECT_TRUE(table_->List("")->empty());
}

}  // namespace
}  // namespace sluice
