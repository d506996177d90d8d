// A watcher's memory of heartbeats that others leave in a store, to see when they stop.
//
// A lease by heartbeats is two keys: the one that is held, and one of the same name below
// kStoreBeatPrefix. The latter's value names the holder, the time of the lease, and a count that
// the holder raises. Only who has set the beat may change the held key.
#ifndef SLUICE_SRC_WORLD_STORE_STORE_BEATS_H_
#define SLUICE_SRC_WORLD_STORE_STORE_BEATS_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sluice/store.h"

namespace sluice {

// The value of a beat's key.
struct StoreBeat {
  std::string holder;  // a random text
  int64_t lease_ms = 0;
  int64_t count = 0;

  std::string Text() const;
  // Makes a holder without a name, with the default lease, of a text that is no beat.
  static StoreBeat Parse(absl::string_view text);
};

// A name for a holder that no other has. Unavailable: the system has no random numbers.
absl::StatusOr<std::string> MakeHolderName();

// Thread: any.
class StoreBeats {
 public:
  // When the store was asked, and when the answer was here. A watcher that was stopped in between
  // takes nobody for dead.
  struct Look {
    int64_t asked_ns = 0;
    int64_t answered_ns = 0;
  };

  // Notes the value that a beat's key has. True if it has been the same for longer than its lease:
  // nobody renews it.
  bool IsOver(absl::string_view beat_key, absl::string_view value, const Look& look);

  // Notes all beats below a prefix (that of the held keys), and forgets those that are no more.
  // Returns those that are over.
  StoreEntries Over(absl::string_view prefix, const StoreEntries& beats, const Look& look);

 private:
  struct Seen {
    std::string value;
    int64_t since_ns = 0;
  };

  bool IsOverLocked(absl::string_view beat_key, absl::string_view value, const Look& look);

  std::mutex mutex_;
  std::map<std::string, Seen, std::less<>> seen_;
};

// Removes a key whose holder's beat is over, unless somebody else is about to. Returns whether the
// holder is dead: false if it came back. Errors are left to the next who looks.
bool RemoveDeadKey(Store& store, absl::string_view beat_key, absl::string_view beat);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_STORE_BEATS_H_
