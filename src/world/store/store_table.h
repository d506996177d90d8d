// The table of a store: keys, values, who holds what, and what has changed. No I/O and no clock.
#ifndef SLUICE_SRC_WORLD_STORE_STORE_TABLE_H_
#define SLUICE_SRC_WORLD_STORE_STORE_TABLE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sluice/store.h"

namespace sluice {

// As long as a List may get: what it takes in memory is bounded for each who asks.
inline constexpr size_t kMaxStoreListBytes = size_t{16} << 20;

// Thread: one at a time.
class StoreTable {
 public:
  StoreTable(int64_t max_keys, int64_t max_bytes) : max_keys_(max_keys), max_bytes_(max_bytes) {}

  // As the calls of Store.
  absl::Status Set(absl::string_view key, absl::string_view value);
  absl::StatusOr<int64_t> Add(absl::string_view key, int64_t delta);
  absl::StatusOr<std::string> CompareSet(absl::string_view key, absl::string_view expected,
                                         absl::string_view desired);
  absl::StatusOr<StoreEntries> List(absl::string_view prefix) const;

  // Sets a key that has no value; returns the number of the hold, from 1 on.
  absl::StatusOr<uint64_t> Hold(absl::string_view key, absl::string_view value);
  // Removes the key, if this hold has not ended.
  void Release(absl::string_view key, uint64_t hold);

  // Until the next change; nothing: the key has no value.
  const std::string* Find(absl::string_view key) const;

  // Rises with each change. Never 0.
  uint64_t version() const { return version_; }
  // Whether something below the prefix has changed since this version. It may say so wrongly, of
  // versions of long ago.
  bool ChangedSince(absl::string_view prefix, uint64_t version) const;

  // Is called after each change, with its key. It must not change the table.
  void OnChange(std::function<void(absl::string_view key)> on_change) {
    on_change_ = std::move(on_change);
  }

 private:
  struct Entry {
    std::string value;
    uint64_t hold = 0;  // 0: nobody holds it
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  absl::Status Put(absl::string_view key, absl::string_view value, uint64_t hold);
  void Note(absl::string_view key);

  const int64_t max_keys_;
  const int64_t max_bytes_;
  Entries entries_;
  int64_t bytes_ = 0;
  uint64_t version_ = 1;
  uint64_t holds_ = 0;
  std::deque<std::string> changed_;  // the keys of the last changes, the newest last
  std::function<void(absl::string_view key)> on_change_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_STORE_TABLE_H_
