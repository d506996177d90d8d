// A member's place at the store of its world.
#ifndef SLUICE_SRC_WORLD_SEAT_H_
#define SLUICE_SRC_WORLD_SEAT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "world/epochs.h"
#include "world/meeting.h"
#include "world/registration.h"
#include "world/roster.h"

namespace sluice {

// A store, and the server if this process has it. The server ends after the store.
struct StoreDoor {
  std::string address;   // "tcp://HOST:PORT"; "" for a store of the caller's
  std::string token;     // "": none
  std::string own_host;  // this host's address on the way to the store, as digits; "": not known
  std::unique_ptr<StoreServer> server;
  std::shared_ptr<Store> store;
};

// Fabrics that some members have tried to make. They are counted by the list of members: whoever
// joins later has counted none of an older list.
struct Tries {
  int count = 0;
  std::vector<std::string> keys;  // that this member has left at the store

  // Keep remembers the meeting's keys of this member, and Clear removes them from the store.
  void Keep(const Meeting& meeting);
  void Clear(Store& store);
};

// Whether calls of the store fail, and not for want of an answer alone.
bool IsStoreGone(Store& store);

// A member's place at one store, and what it has come to know there. The place is given back at the
// end, and then the store, if this member serves it. A world whose store has ended takes another
// seat. Thread: its world's.
class Seat {
 public:
  // Reaches the store or serves it, and registers this member, all within the options' time for the
  // store. Takes the next store where the first one ends meanwhile, as that of an earlier world.
  // AlreadyExists: another process is this member. FailedPrecondition: others declare other roles
  // or sizes. Unavailable: no store in time.
  // `passed`: the number of the last epoch that this member has passed, at a store before this one.
  // Numbers go on from there on all members. `former`: the ranks there.
  static absl::StatusOr<std::unique_ptr<Seat>> Take(WorldOptions options, int64_t passed,
                                                    const FormerRanks& former = {});

  Seat(const std::string& name, StoreDoor opened, std::string key,
       std::unique_ptr<Registration> registration, bool is_later, int64_t passed);

  // Says to whoever joins from now on that all members of this world have come once.
  absl::Status NoteMet();
  // Removes what all tries have left at the store, and what was said.
  void Clear();
  // As World::Say.
  void Say(absl::string_view text);

  const StoreDoor door;
  const std::string secret;  // of the links between members
  Roster roster;
  Epochs epochs;
  // All members of this world had come once before this one joined. The store may be that of a
  // world that is about to end.
  const bool follows;
  Tries epoch_tries;
  std::map<std::string, Tries> tries;  // by the name of the list of members

 private:
  static absl::StatusOr<std::unique_ptr<Seat>> TakeAt(const WorldOptions& options, StoreDoor door,
                                                      int64_t passed, const FormerRanks& former);
  void PostSaid(absl::string_view value);

  const std::string name_;
  double may_say_ = 8;  // so many texts at once; one more each second
  int64_t said_ns_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_SEAT_H_
