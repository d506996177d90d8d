// Watching with a limit, and passing calls on.
#include "world/store/store_tools.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

class FiveCalls : public Store {
 public:
  explicit FiveCalls(std::shared_ptr<Store> inner) : inner_(std::move(inner)) {}

  absl::Status Set(absl::string_view key, absl::string_view value) override {
    return inner_->Set(key, value);
  }
  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration timeout) override {
    return inner_->Get(key, timeout);
  }
  absl::StatusOr<int64_t> Add(absl::string_view key, int64_t delta) override {
    return inner_->Add(key, delta);
  }
  absl::StatusOr<std::string> CompareSet(absl::string_view key, absl::string_view expected,
                                         absl::string_view desired) override {
    return inner_->CompareSet(key, expected, desired);
  }
  absl::StatusOr<StoreEntries> List(absl::string_view prefix) override {
    return inner_->List(prefix);
  }

 private:
  const std::shared_ptr<Store> inner_;
};

}  // namespace

bool Shows(const StoreView& view, const std::string& key, const std::string& value) {
  return std::count(view.entries.begin(), view.entries.end(), std::make_pair(key, value)) == 1;
}

StoreView WatchUntil(Store& store, const std::string& prefix,
                     const std::function<bool(const StoreView&)>& is_right) {
  const absl::Time end = absl::Now() + absl::Seconds(120);
  StoreView view;
  while (absl::Now() < end) {
    auto next = store.Watch(prefix, view.version, end - absl::Now());
    if (!next.ok()) {
      ADD_FAILURE() << next.status();
      return view;
    }
    view = *std::move(next);
    if (is_right(view)) return view;
  }
  ADD_FAILURE() << "what lies below " << prefix << " never was as it should be";
  return view;
}

std::unique_ptr<Store> MakeFiveCalls(std::shared_ptr<Store> inner) {
  return std::make_unique<FiveCalls>(std::move(inner));
}

}  // namespace sluice
