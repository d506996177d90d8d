// Leases over nothing but the five calls of a store: claims a key by its beat, which a thread
// renews, and others see it stop.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "sluice/store.h"
#include "storage/own_thread.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"
#include "world/store/store_beats.h"
#include "world/store/store_check.h"
#include "world/store/store_clock.h"

namespace sluice {
namespace {

// So often is a beat renewed within its lease.
constexpr int kBeatsPerLease = 5;
constexpr std::chrono::milliseconds kClaimAgain(50);
// So often is a key changed for which others are quicker.
constexpr int kChangeTries = 100;
// A holder that dies while others look on is noticed after its lease, and this.
constexpr int64_t kClaimSlackNs = 2'000'000'000;

// Changes the key that belongs to a beat; an empty value removes the key. `renew` renews the beat,
// or says with Aborted that the beat is another's by now. The value that is changed was read before
// that. So if another holder has come, the value is still this one's, or is not changed.
absl::Status ChangeHeld(Store& store, absl::string_view key, absl::string_view value,
                        absl::FunctionRef<absl::Status()> renew) {
  for (int tries = 0; tries < kChangeTries; ++tries) {
    absl::StatusOr<std::string> before = store.Get(key, absl::ZeroDuration());
    if (absl::IsDeadlineExceeded(before.status())) before = std::string();
    if (!before.ok()) return before.status();
    SLUICE_RETURN_IF_ERROR(renew());
    SLUICE_ASSIGN_OR_RETURN(const auto now, store.CompareSet(key, *before, value));
    if (now == value) return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("the store's key ", Quoted(key), " is changed by others all the time"));
}

class BeatLease : public StoreLease {
 public:
  BeatLease(Store& store, absl::string_view key, StoreBeat beat)
      : store_(store),
        key_(key),
        beat_key_(absl::StrCat(kStoreBeatPrefix, key)),
        beat_(std::move(beat)),
        text_(beat_.Text()),
        state_(std::make_unique<State>()) {}

  ~BeatLease() override {
    static_cast<void>(BeatLease::Release());
    // A child has neither the thread nor a use of its lock.
    if (InChild()) static_cast<void>(state_.release());
  }

  absl::Status Start() {
    SLUICE_ASSIGN_OR_RETURN(state_->thread, StartOwnThread([this] { Renew(); }, "sluice-lease"));
    return absl::OkStatus();
  }

  absl::Status status() const override {
    if (InChild()) return StoreForkedError();
    const std::lock_guard<std::mutex> lock(state_->mutex);
    return CopyForThread(state_->status);
  }

  absl::Status Release() override {
    if (InChild()) return StoreForkedError();
    std::thread thread;
    {
      std::unique_lock<std::mutex> lock(state_->mutex);
      if (std::exchange(state_->stopped, true)) {
        // Another caller is about to know.
        state_->changed.wait(lock, [this] { return state_->is_released; });
        return CopyForThread(state_->released);
      }
      thread = std::move(state_->thread);
    }
    state_->changed.notify_all();
    if (thread.joinable()) thread.join();
    absl::Status released = Remove();
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->released = CopyForThread(released);
    state_->is_released = true;
    state_->changed.notify_all();
    return released;
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::thread thread;
    bool stopped = false;
    absl::Status status;  // of the lease
    bool is_released = false;
    absl::Status released;  // what Release came to
  };

  bool InChild() const { return getpid() != process_; }

  // The thread has ended.
  absl::Status Remove() {
    if (absl::IsAborted(state_->status)) return absl::OkStatus();  // others have removed it
    absl::Status status = ChangeHeld(store_, key_, "", [this] { return RenewOnce(); });
    if (absl::IsAborted(status)) return absl::OkStatus();  // likewise
    if (!status.ok()) return status;
    return store_.CompareSet(beat_key_, text_, "").status();
  }

  // Counts on; the new text.
  std::string Next() {
    ++beat_.count;
    text_ = beat_.Text();
    return text_;
  }

  // The thread's.
  void Renew() {
    const int64_t lease_ns = beat_.lease_ms * kStoreNsPerMs;
    int64_t renewed_ns = MonotonicNs();
    std::unique_lock<std::mutex> lock(state_->mutex);
    while (true) {
      state_->changed.wait_until(lock, StoreTimePoint(MonotonicNs() + lease_ns / kBeatsPerLease),
                                 [this] { return state_->stopped; });
      if (state_->stopped) return;
      lock.unlock();
      const int64_t before_ns = MonotonicNs();
      absl::Status lost = RenewOnce();
      const bool renewed = lost.ok();
      if (renewed) renewed_ns = before_ns;
      const bool over = !renewed && MonotonicNs() - renewed_ns > lease_ns;
      lock.lock();
      if (absl::IsAborted(lost) || over) {
        state_->status = std::move(lost);
        return;
      }
    }
  }

  // Aborted: the key is not this holder's any more.
  absl::Status RenewOnce() {
    const std::string before = text_;
    const auto now = store_.CompareSet(beat_key_, before, Next());
    if (!now.ok()) {
      return MakeError(absl::StatusCode::kUnavailable, "the lease of the store's key ",
                       Quoted(key_), " cannot be renewed: ", now.status());
    }
    if (*now == text_) return absl::OkStatus();
    const StoreBeat other = StoreBeat::Parse(*now);
    if (other.holder == beat_.holder) {
      // An earlier renewal was carried out though its call failed.
      beat_.count = other.count;
      text_ = *now;
      return absl::OkStatus();
    }
    return absl::AbortedError(absl::StrCat("the lease of the store's key ", Quoted(key_),
                                           " is over: it was not renewed for ", beat_.lease_ms,
                                           " ms, and others were told"));
  }

  const pid_t process_ = getpid();
  Store& store_;
  const std::string key_;
  const std::string beat_key_;
  // The thread's while it runs.
  StoreBeat beat_;
  std::string text_;
  std::unique_ptr<State> state_;
};

absl::Status HeldAlready(absl::string_view key) {
  return absl::AlreadyExistsError(
      absl::StrCat("the store's key ", Quoted(key), " is held already, by one who lives"));
}

// Sets the beat, as soon as nobody lives who has it. Returns whether a dead holder had it.
absl::StatusOr<bool> Claim(Store& store, StoreBeats& beats, absl::string_view key,
                           const std::string& own) {
  const std::string beat_key = absl::StrCat(kStoreBeatPrefix, key);
  const int64_t begin_ns = MonotonicNs();
  StoreBeat first;
  while (true) {
    StoreBeats::Look look;
    look.asked_ns = MonotonicNs();
    SLUICE_ASSIGN_OR_RETURN(const auto now, store.CompareSet(beat_key, "", own));
    if (now == own) return false;
    look.answered_ns = MonotonicNs();
    if (beats.IsOver(beat_key, now, look)) {
      SLUICE_ASSIGN_OR_RETURN(const auto taken, store.CompareSet(beat_key, now, own));
      if (taken == own) return true;
    }
    const StoreBeat other = StoreBeat::Parse(now);
    if (!first.holder.empty() && other.holder == first.holder && other.count != first.count) {
      return HeldAlready(key);
    }
    first = other;
    if (look.answered_ns - begin_ns > 2 * other.lease_ms * kStoreNsPerMs + kClaimSlackNs) {
      return HeldAlready(key);
    }
    std::this_thread::sleep_for(kClaimAgain);
  }
}

// Sets the key itself, once the beat is this holder's.
absl::Status SetHeld(Store& store, absl::string_view key, absl::string_view value, bool was_held,
                     StoreBeat* beat) {
  if (was_held) {
    // A dead holder's value may be there. This process may have been stopped since it took the
    // beat, and be taken for dead itself.
    const absl::Status status = ChangeHeld(store, key, value, [&]() -> absl::Status {
      const std::string before = beat->Text();
      ++beat->count;
      SLUICE_ASSIGN_OR_RETURN(const auto now, store.CompareSet(absl::StrCat(kStoreBeatPrefix, key),
                                                               before, beat->Text()));
      return now == beat->Text() ? absl::OkStatus() : absl::AbortedError("");
    });
    return absl::IsAborted(status) ? HeldAlready(key) : status;
  }
  const auto before = store.Get(key, absl::ZeroDuration());
  if (!before.ok() && !absl::IsDeadlineExceeded(before.status())) return before.status();
  if (!before.ok()) {
    SLUICE_ASSIGN_OR_RETURN(const auto now, store.CompareSet(key, "", value));
    if (now == value) return absl::OkStatus();
  }
  return absl::AlreadyExistsError(
      absl::StrCat("the store's key ", Quoted(key), " has a value already, which nobody holds"));
}

}  // namespace

// The store, and what it has seen of others' beats, stay beyond the lease.
absl::StatusOr<std::unique_ptr<StoreLease>> Store::Hold(absl::string_view key,
                                                        absl::string_view value,
                                                        absl::Duration lease) {
  SLUICE_RETURN_IF_ERROR(CheckStoreHold(key, value, lease));
  SLUICE_RETURN_IF_ERROR(CheckStoreKey(absl::StrCat(kStoreBeatPrefix, key)));
  SLUICE_ASSIGN_OR_RETURN(auto name, MakeHolderName());
  StoreBeat beat = {std::move(name), absl::ToInt64Milliseconds(lease), 0};
  SLUICE_ASSIGN_OR_RETURN(const auto was_held, Claim(*this, *beats_, key, beat.Text()));
  if (absl::Status status = SetHeld(*this, key, value, was_held, &beat); !status.ok()) {
    static_cast<void>(CompareSet(absl::StrCat(kStoreBeatPrefix, key), beat.Text(), ""));
    return status;
  }
  auto held = std::make_unique<BeatLease>(*this, key, beat);
  SLUICE_RETURN_IF_ERROR(held->Start());
  return held;
}

}  // namespace sluice
