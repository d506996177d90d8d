// A member's place in a world, from its arrival to its farewell.
#ifndef SLUICE_SRC_WORLD_REGISTRATION_H_
#define SLUICE_SRC_WORLD_REGISTRATION_H_

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sluice/store.h"
#include "world/member.h"

namespace sluice {

// Ranks of a member's role at the store before this one.
struct FormerRanks {
  int own = kAnyRank;
  std::set<int> others;  // whose members may come to this store, too
};

// Thread: one at a time.
class Registration {
 public:
  // Numbers `member` and holds its place. One whose rank is kAnyRank gets a free place: that of its
  // former rank, or the lowest one that is not of `former.others`, or any. For a few seconds the
  // store may not have heard of a process's end, so a place that is kept is waited for as long.
  // AlreadyExists then names the process that has it, or says that all places are kept.
  static absl::StatusOr<std::unique_ptr<Registration>> Make(const std::shared_ptr<Store>& store,
                                                            const std::string& world,
                                                            StoredMember member,
                                                            absl::Duration lease,
                                                            const FormerRanks& former = {});
  // Farewell, as far as the store can be reached.
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  const StoredMember& member() const { return member_; }
  // Whether the place is held still, as far as is known. Does not wait.
  bool is_held() const { return lease_ != nullptr && lease_->status().ok(); }

  // Takes the place again if it was lost meanwhile: this process was stopped, or its connection
  // broke. Others may have named it as lost. AlreadyExists: another process has taken the place.
  absl::Status Keep();

 private:
  Registration(std::shared_ptr<Store> store, std::string world, StoredMember member,
               absl::Duration lease)
      : store_(std::move(store)),
        world_(std::move(world)),
        member_(std::move(member)),
        lease_length_(lease) {}
  // Waits so long for another process that has the place, and may have ended.
  absl::Status Hold(absl::Duration wait);

  const std::shared_ptr<Store> store_;
  const std::string world_;
  const StoredMember member_;
  const absl::Duration lease_length_;
  std::unique_ptr<StoreLease> lease_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_REGISTRATION_H_
