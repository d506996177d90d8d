// Reading beats, and judging by the watcher's own clock.
#include "world/store/store_beats.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "net/hmac.h"
#include "tensor/error_text.h"
#include "world/store/store_clock.h"

namespace sluice {
namespace {

constexpr int64_t kLongestLeaseMs = 3'600'000;
// So often is a dead holder's key removed for which others are quicker.
constexpr int kRemoveTries = 100;

}  // namespace

std::string StoreBeat::Text() const { return absl::StrCat(holder, " ", lease_ms, " ", count); }

StoreBeat StoreBeat::Parse(absl::string_view text) {
  StoreBeat beat;
  beat.lease_ms = absl::ToInt64Milliseconds(kDefaultStoreLease);
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ' ');
  int64_t lease_ms = 0;
  int64_t count = 0;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[1], &lease_ms) ||
      !absl::SimpleAtoi(parts[2], &count) || lease_ms <= 0 || lease_ms > kLongestLeaseMs) {
    return beat;
  }
  beat.holder = std::string(parts[0]);
  beat.lease_ms = lease_ms;
  beat.count = count;
  return beat;
}

absl::StatusOr<std::string> MakeHolderName() {
  constexpr size_t kNameBytes = 12;
  SLUICE_ASSIGN_OR_RETURN(const std::string bytes, MakeRandom(kNameBytes));
  return absl::BytesToHexString(bytes);
}

bool StoreBeats::IsOverLocked(absl::string_view beat_key, absl::string_view value,
                              const Look& look) {
  auto at = seen_.find(beat_key);
  if (at == seen_.end()) at = seen_.emplace(std::string(beat_key), Seen()).first;
  Seen& seen = at->second;
  if (seen.value != value) {
    seen = {std::string(value), look.answered_ns};
    return false;
  }
  return look.asked_ns - seen.since_ns > StoreBeat::Parse(value).lease_ms * kStoreNsPerMs;
}

bool StoreBeats::IsOver(absl::string_view beat_key, absl::string_view value, const Look& look) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return IsOverLocked(beat_key, value, look);
}

StoreEntries StoreBeats::Over(absl::string_view prefix, const StoreEntries& beats,
                              const Look& look) {
  const std::string below = absl::StrCat(kStoreBeatPrefix, prefix);
  const std::lock_guard<std::mutex> lock(mutex_);
  StoreEntries over;
  std::map<std::string, Seen, std::less<>> kept;
  for (const auto& [key, value] : beats) {
    if (IsOverLocked(key, value, look)) over.emplace_back(key, value);
    kept.insert(seen_.extract(key));
  }
  // Beats that are left in `seen_` have gone from the store.
  auto at = seen_.lower_bound(below);
  while (at != seen_.end() && absl::StartsWith(at->first, below)) at = seen_.erase(at);
  seen_.merge(kept);
  return over;
}

bool RemoveDeadKey(Store& store, absl::string_view beat_key, absl::string_view beat) {
  // Only one can change the beat from what it was. That one removes the key, and nobody holds it
  // meanwhile. If that one dies in between, its own beat is over one day.
  const auto name = MakeHolderName();
  if (!name.ok()) return true;
  const StoreBeat dead = StoreBeat::Parse(beat);
  const std::string own = StoreBeat{*name, dead.lease_ms, 0}.Text();
  const auto now = store.CompareSet(beat_key, beat, own);
  if (!now.ok()) return true;
  if (*now != own) return StoreBeat::Parse(*now).holder != dead.holder;
  // A change of the key meanwhile leaves it the dead holder's.
  const absl::string_view key = beat_key.substr(kStoreBeatPrefix.size());
  for (int tries = 0; tries < kRemoveTries; ++tries) {
    const auto value = store.Get(key, absl::ZeroDuration());
    bool is_gone = absl::IsDeadlineExceeded(value.status());
    if (value.ok()) {
      const auto left = store.CompareSet(key, *value, "");
      if (!left.ok()) return true;
      is_gone = left->empty();
    }
    if (is_gone) {
      static_cast<void>(store.CompareSet(beat_key, own, ""));
      return true;
    }
    if (!value.ok()) return true;
  }
  return true;
}

}  // namespace sluice
