// Gives a store of no more than the five calls the others: leases by heartbeat, and watching by
// asking again.
#include "sluice/store.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "tensor/error_text.h"
#include "tensor/stable_hash.h"
#include "world/store/store_beats.h"
#include "world/store/store_check.h"
#include "world/store/store_clock.h"

namespace sluice {
namespace {

constexpr int64_t kAskAgainNs = 100'000'000;

// Never 0.
uint64_t VersionOf(const StoreEntries& entries) {
  StableHash hash;
  for (const auto& [key, value] : entries) {
    hash.AddText(key);
    hash.AddText(value);
  }
  return std::max(hash.value(), uint64_t{1});
}

// Looks once: removes what has died, and leaves it out.
absl::StatusOr<StoreEntries> LookAtLiving(Store& store, StoreBeats& beats,
                                          absl::string_view prefix) {
  // Beats first. So a key whose beat is gone by then has been removed before the keys are listed.
  StoreBeats::Look look;
  look.asked_ns = MonotonicNs();
  SLUICE_ASSIGN_OR_RETURN(const auto all_beats, store.List(absl::StrCat(kStoreBeatPrefix, prefix)));
  look.answered_ns = MonotonicNs();
  auto entries = store.List(prefix);
  if (!entries.ok()) return entries.status();
  std::set<std::string, std::less<>> dead;
  for (const auto& [beat_key, beat] : beats.Over(prefix, all_beats, look)) {
    if (!RemoveDeadKey(store, beat_key, beat)) continue;
    dead.insert(beat_key.substr(kStoreBeatPrefix.size()));
  }
  const auto is_out = [&](const auto& entry) {
    return dead.count(entry.first) > 0 || absl::StartsWith(entry.first, kStoreBeatPrefix);
  };
  entries->erase(std::remove_if(entries->begin(), entries->end(), is_out), entries->end());
  return entries;
}

}  // namespace

Store::Store() : beats_(std::make_unique<StoreBeats>()) {}
Store::~Store() = default;

absl::StatusOr<StoreView> Store::Watch(absl::string_view prefix, uint64_t version,
                                       absl::Duration timeout) {
  const int64_t end_ns = MonotonicNs() + StoreWaitNs(version == 0 ? absl::ZeroDuration() : timeout);
  while (true) {
    SLUICE_ASSIGN_OR_RETURN(auto entries, LookAtLiving(*this, *beats_, prefix));
    const uint64_t now_version = VersionOf(entries);
    const int64_t now_ns = MonotonicNs();
    if (now_version != version || now_ns >= end_ns) {
      return StoreView{now_version, std::move(entries)};
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(kAskAgainNs, end_ns - now_ns)));
  }
}

}  // namespace sluice
