// Watching with a limit, and passing calls on.
#include "world/store/store_tools.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace sluice {

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

StoreEntries AwaitEntries(Store& store, const std::string& prefix, size_t count) {
  const auto are_there = [count](const StoreView& view) { return view.entries.size() >= count; };
  return WatchUntil(store, prefix, are_there).entries;
}

void AwaitNone(Store& store, const std::string& prefix) {
  WatchUntil(store, prefix, [](const StoreView& view) { return view.entries.empty(); });
}

absl::Status AwaitLoss(const StoreLease& lease) {
  const absl::Time end = absl::Now() + absl::Minutes(2);
  while (lease.status().ok() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(5));
  return lease.status();
}

bool IsGone(Store& store, const std::string& key) {
  AwaitNone(store, key);
  return absl::IsDeadlineExceeded(store.Get(key, absl::ZeroDuration()).status());
}

std::unique_ptr<Store> MakeFiveCalls(std::shared_ptr<Store> inner) {
  return std::make_unique<FiveCalls>(std::move(inner));
}

}  // namespace sluice
