// What tests of stores share: waiting for what a watcher sees, and a store of five calls.
#ifndef SLUICE_TESTS_WORLD_STORE_STORE_TOOLS_H_
#define SLUICE_TESTS_WORLD_STORE_STORE_TOOLS_H_

#include <functional>
#include <memory>
#include <string>

#include "sluice/store.h"

namespace sluice {

// Whether the view has the key, with this value.
bool Shows(const StoreView& view, const std::string& key, const std::string& value);

// Watches until the view below the prefix is as `is_right` asks. Fails after a long time.
StoreView WatchUntil(Store& store, const std::string& prefix,
                     const std::function<bool(const StoreView&)>& is_right);

// Passes the five calls on, and has nothing else.
std::unique_ptr<Store> MakeFiveCalls(std::shared_ptr<Store> inner);

}  // namespace sluice

#endif  // SLUICE_TESTS_WORLD_STORE_STORE_TOOLS_H_
