// What tests of stores share: waiting for what a watcher sees, and a store of five calls.
#ifndef SLUICE_TESTS_WORLD_STORE_STORE_TOOLS_H_
#define SLUICE_TESTS_WORLD_STORE_STORE_TOOLS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "sluice/store.h"

namespace sluice {

// Whether the view has the key, with this value.
bool Shows(const StoreView& view, const std::string& key, const std::string& value);

// Watches until the view below the prefix is as `is_right` asks. Fails after a long time.
StoreView WatchUntil(Store& store, const std::string& prefix,
                     const std::function<bool(const StoreView&)>& is_right);

// Waits until so many entries, or more, lie below the prefix; until none does.
StoreEntries AwaitEntries(Store& store, const std::string& prefix, size_t count);
void AwaitNone(Store& store, const std::string& prefix);

// Waits until the lease says that it is lost, but not for ever. What it says.
absl::Status AwaitLoss(const StoreLease& lease);

// Waits until nothing lies below the key, and looks whether it has no value either.
bool IsGone(Store& store, const std::string& key);

// Passes the five calls on, and has nothing else. Those that derive from it may be asked before.
class FiveCalls : public Store {
 public:
  explicit FiveCalls(std::shared_ptr<Store> inner) : inner_(std::move(inner)) {}

  absl::Status Set(absl::string_view key, absl::string_view value) override {
    if (absl::Status status = Ask(key); !status.ok()) return status;
    return inner_->Set(key, value);
  }
  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration timeout) override {
    if (absl::Status status = Ask(key); !status.ok()) return status;
    return inner_->Get(key, timeout);
  }
  absl::StatusOr<int64_t> Add(absl::string_view key, int64_t delta) override {
    if (absl::Status status = Ask(key); !status.ok()) return status;
    return inner_->Add(key, delta);
  }
  absl::StatusOr<std::string> CompareSet(absl::string_view key, absl::string_view expected,
                                         absl::string_view desired) override {
    if (absl::Status status = Ask(key); !status.ok()) return status;
    return inner_->CompareSet(key, expected, desired);
  }
  absl::StatusOr<StoreEntries> List(absl::string_view prefix) override {
    if (absl::Status status = Ask(prefix); !status.ok()) return status;
    return inner_->List(prefix);
  }

 protected:
  // Of each call, by its key or prefix. An error is what the call comes to.
  virtual absl::Status Ask(absl::string_view /*key*/) { return absl::OkStatus(); }

  const std::shared_ptr<Store> inner_;
};

// Another end of a store, which passes all calls on.
class SharedStore : public FiveCalls {
 public:
  using FiveCalls::FiveCalls;

  absl::StatusOr<std::unique_ptr<StoreLease>> Hold(absl::string_view key, absl::string_view value,
                                                   absl::Duration lease) override {
    if (absl::Status status = Ask(key); !status.ok()) return status;
    return inner_->Hold(key, value, lease);
  }
  absl::StatusOr<StoreView> Watch(absl::string_view prefix, uint64_t version,
                                  absl::Duration timeout) override {
    if (absl::Status status = Ask(prefix); !status.ok()) return status;
    return inner_->Watch(prefix, version, timeout);
  }
};

std::unique_ptr<Store> MakeFiveCalls(std::shared_ptr<Store> inner);

}  // namespace sluice

#endif  // SLUICE_TESTS_WORLD_STORE_STORE_TOOLS_H_
