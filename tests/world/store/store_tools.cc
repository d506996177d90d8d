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

bool IsGone(Store& store, const std::string& key) {
  WatchUntil(store, key, [](const StoreView& view) { return view.entries.empty(); });
  return absl::IsDeadlineExceeded(store.Get(key, absl::ZeroDuration()).status());
}

std::unique_ptr<Store> MakeFiveCalls(std::shared_ptr<Store> inner) {
  return std::make_unique<FiveCalls>(std::move(inner));
}

}  // namespace sluice
