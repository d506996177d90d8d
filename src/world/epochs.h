// How members agree at the store who is in the next epoch of their world.
//
// Epochs have numbers, and each number one list of members, which the first one that asks writes
// down. A member outside the list waits for the next number. A list with a member that is gone is
// passed over by all. Each member that begins an epoch says its number, so that whoever still waits
// for an older one learns that the others went on.
#ifndef SLUICE_SRC_WORLD_EPOCHS_H_
#define SLUICE_SRC_WORLD_EPOCHS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "transport/deadline.h"
#include "world/member.h"
#include "world/roster.h"

namespace sluice {

// The name of an epoch's meeting, and the number in such a name; 0: the name is another's.
std::string EpochName(int64_t number);
int64_t EpochNumber(absl::string_view name);

// Says at the store that the epoch has begun, unless it knows of a later one. Best effort.
void RaiseBegun(Store& store, absl::string_view world, int64_t number);
// The keys of the newest epoch's number, and of the ids of an epoch's members.
std::string EpochBegunKey(absl::string_view world);
std::string EpochListKey(absl::string_view world, int64_t number);

struct Epoch {
  int64_t number = 0;
  std::vector<StoredMember> members;  // in the order of fabric ranks
  int rank = -1;                      // of this member
  bool is_whole = true;  // false: one of them is gone, of which no more than the id is known
};

// Thread: one at a time.
class Epochs {
 public:
  // `roster` must outlive this object. `passed`: epochs up to this number are over for this member.
  Epochs(std::shared_ptr<Store> store, std::string world, Roster* roster, int64_t passed)
      : store_(std::move(store)), world_(std::move(world)), roster_(roster), passed_(passed) {}

  // The first epoch after those that this member has passed in which it is. Waits until each role
  // has as many members as `at_least` says, or all, if it does not say.
  absl::StatusOr<Epoch> Agree(absl::Span<const RoleSize> at_least, const Deadline& limit);

  // The epoch has failed, or is over: the next one counts.
  void Pass(const Epoch& epoch) { passed_ = epoch.number; }
  int64_t passed() const { return passed_; }

  // The epoch has begun on all members. New members find the next one. Removes old epochs' keys
  // from the store.
  void Begin(const Epoch& epoch);

  // Whether this member has yet to come to an epoch in whose list it is: the others wait for it.
  absl::StatusOr<bool> IsAwaited(int64_t number);

  // Whether a later epoch has begun, on any member: nobody comes to this one any more.
  absl::StatusOr<bool> HasBegunAfter(int64_t number);

  // Says after which version an epoch ends, unless somebody has; and what was said. The word stays
  // for as long as some later epochs last.
  absl::Status End(int64_t number, int64_t after_version);
  absl::StatusOr<absl::optional<int64_t>> EndsAfter(int64_t number);

 private:
  absl::Status WaitForEnough(absl::Span<const RoleSize> at_least, const Deadline& limit);
  // The newest epoch that has begun; 0: none.
  absl::StatusOr<int64_t> Begun();
  void RemoveUpTo(int64_t number);
  std::string ListKey(int64_t number) const { return EpochListKey(world_, number); }
  std::string EndKey(int64_t number) const;

  const std::shared_ptr<Store> store_;
  const std::string world_;
  Roster* const roster_;
  int64_t passed_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_EPOCHS_H_
