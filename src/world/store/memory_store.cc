// A store of one process: a table under a lock.
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "sluice/store.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"
#include "world/store/store_check.h"
#include "world/store/store_clock.h"
#include "world/store/store_table.h"

namespace sluice {
namespace {

// Shared by the store and its leases.
struct MemoryTable {
  const pid_t process = getpid();
  std::mutex mutex;
  std::condition_variable changed;
  StoreTable table{StoreLimits().keys, StoreLimits().bytes};

  bool InChild() const { return getpid() != process; }
};

class MemoryLease : public StoreLease {
 public:
  MemoryLease(std::shared_ptr<MemoryTable> shared, absl::string_view key, uint64_t hold)
      : shared_(std::move(shared)), key_(key), hold_(hold) {}
  ~MemoryLease() override { static_cast<void>(MemoryLease::Release()); }

  absl::Status status() const override {
    return shared_->InChild() ? StoreForkedError() : absl::OkStatus();
  }

  absl::Status Release() override {
    if (shared_->InChild()) return StoreForkedError();
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    shared_->table.Release(key_, hold_);
    shared_->changed.notify_all();
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<MemoryTable> shared_;
  const std::string key_;
  const uint64_t hold_;
};

class MemoryStore : public Store {
 public:
  ~MemoryStore() override {
    // A child has no use of a lock that another thread may have held.
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): without memory a child may end
    if (shared_->InChild()) new std::shared_ptr<MemoryTable>(shared_);
  }

  absl::Status Set(absl::string_view key, absl::string_view value) override {
    return Change<absl::Status>([&](StoreTable& table) { return table.Set(key, value); });
  }

  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration timeout) override {
    SLUICE_RETURN_IF_ERROR(CheckStoreKey(key));
    std::string value;
    const auto found = [&](const StoreTable& table) {
      const std::string* const now = table.Find(key);
      if (now != nullptr) value = *now;
      return now != nullptr;
    };
    if (shared_->InChild()) return StoreForkedError();
    std::unique_lock<std::mutex> lock(shared_->mutex);
    if (Await(lock, timeout, found)) return value;
    return absl::DeadlineExceededError(absl::StrCat(
        "the store's key ", Quoted(key), " had no value within ", DurationText(timeout)));
  }

  absl::StatusOr<int64_t> Add(absl::string_view key, int64_t delta) override {
    return Change<absl::StatusOr<int64_t>>(
        [&](StoreTable& table) { return table.Add(key, delta); });
  }

  absl::StatusOr<std::string> CompareSet(absl::string_view key, absl::string_view expected,
                                         absl::string_view desired) override {
    return Change<absl::StatusOr<std::string>>(
        [&](StoreTable& table) { return table.CompareSet(key, expected, desired); });
  }

  absl::StatusOr<StoreEntries> List(absl::string_view prefix) override {
    if (shared_->InChild()) return StoreForkedError();
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    return shared_->table.List(prefix);
  }

  absl::StatusOr<std::unique_ptr<StoreLease>> Hold(absl::string_view key, absl::string_view value,
                                                   absl::Duration lease) override {
    SLUICE_RETURN_IF_ERROR(CheckStoreHold(key, value, lease));
    SLUICE_ASSIGN_OR_RETURN(const auto hold,
                            Change<absl::StatusOr<uint64_t>>(
                                [&](StoreTable& table) { return table.Hold(key, value); }));
    return std::make_unique<MemoryLease>(shared_, key, hold);
  }

  absl::StatusOr<StoreView> Watch(absl::string_view prefix, uint64_t version,
                                  absl::Duration timeout) override {
    if (shared_->InChild()) return StoreForkedError();
    std::unique_lock<std::mutex> lock(shared_->mutex);
    Await(lock, version == 0 ? absl::ZeroDuration() : timeout,
          [&](const StoreTable& table) { return table.ChangedSince(prefix, version); });
    SLUICE_ASSIGN_OR_RETURN(auto entries, shared_->table.List(prefix));
    return StoreView{shared_->table.version(), std::move(entries)};
  }

 private:
  template <class Result, class Work>
  Result Change(const Work& work) {
    if (shared_->InChild()) return StoreForkedError();
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    Result result = work(shared_->table);
    shared_->changed.notify_all();
    return result;
  }

  // Whether it came true in time.
  template <class Condition>
  bool Await(std::unique_lock<std::mutex>& lock, absl::Duration timeout,
             const Condition& condition) {
    return shared_->changed.wait_until(lock, StoreTimePoint(MonotonicNs() + StoreWaitNs(timeout)),
                                       [&] { return condition(shared_->table); });
  }

  const std::shared_ptr<MemoryTable> shared_ = std::make_shared<MemoryTable>();
};

}  // namespace

std::unique_ptr<Store> MakeMemoryStore() { return std::make_unique<MemoryStore>(); }

}  // namespace sluice
