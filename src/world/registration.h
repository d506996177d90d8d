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

// Thread: one at a time.
class Registration {
 public:
  // Numbers `member` and holds its place, or the lowest one that is free where its rank is
  // kAnyRank. AlreadyExists names the process that has kept the place for a few seconds, or says
  // that all places are kept: until then the store may not have heard of a process's end.
  // `others`: ranks of members that may come again; they are given only where no other is free.
  static absl::StatusOr<std::unique_ptr<Registration>> Make(const std::shared_ptr<Store>& store,
                                                            const std::string& world,
                                                            StoredMember member,
                                                            absl::Duration lease,
                                                            const std::set<int>& others = {});
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
