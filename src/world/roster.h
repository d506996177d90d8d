// The members of a world as one of them has seen them at the store.
#ifndef SLUICE_SRC_WORLD_ROSTER_H_
#define SLUICE_SRC_WORLD_ROSTER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "sluice/store.h"
#include "transport/deadline.h"
#include "world/attendance.h"
#include "world/registration.h"

namespace sluice {

// Whether a step can do nothing without the store.
enum class NeedsStore { kYes, kNo };

// Whether the members are still there. With kNo, the store may be gone.
using MembersCheck = absl::FunctionRef<absl::Status(NeedsStore needs_store)>;

// Thread: one at a time.
class Roster {
 public:
  // `address`: the store's, for messages; "": not known.
  Roster(std::shared_ptr<Store> store, std::string world,
         std::unique_ptr<Registration> registration, std::string address = "");

  const StoredMember& own() const { return registration_->member(); }
  bool is_held() const { return registration_->is_held(); }
  // Whether the last look has seen this member.
  bool is_present() const;
  // As of the last look.
  const Attendance& attendance() const { return attendance_; }

  // Looks at the store. May wait for a change there, but at most `wait`. FailedPrecondition: roles
  // or sizes in conflict.
  absl::Status Look(absl::Duration wait);

  // Waits until nobody is missing. Unavailable names members that this roster has seen alive and
  // that are lost. Each of them is named once, and is then waited for as a member that has not
  // come.
  absl::Status WaitForAll(const Deadline& limit);

  // Whether these members are there still. Unavailable names those that are lost, and Aborted
  // those that have left or joined anew. If the store is not needed, a store that is gone is no
  // error, and is not asked again.
  absl::Status Check(absl::Span<const StoredMember> members, NeedsStore needs_store);

  // 'world "sluice" at tcp://10.0.0.1:29600'.
  std::string WorldInWords() const;

  // As of the last look, for whom a call waits, as a line of LongWait. Empty on members other than
  // the first one of its role: one of them is enough.
  std::string WaitedFor() const;

  // Sleeps before another look for somebody's arrival: the longer, the more members there are,
  // because all of them look.
  void Pause(const Deadline& limit) const;

  // How long the store may take to say that something has changed, at most.
  static constexpr absl::Duration kLook = absl::Seconds(1);

 private:
  // Compares the last look with the one before.
  void NoteLosses();
  // The error for losses that have not been told.
  absl::Status TellLosses();

  const std::shared_ptr<Store> store_;
  const std::string world_;
  const std::string address_;
  const std::unique_ptr<Registration> registration_;
  Attendance attendance_;
  uint64_t version_ = 0;
  bool store_is_gone_ = false;                  // as Check has found
  std::map<std::string, StoredMember> seen_;    // by name: present at the last look
  std::map<std::string, StoredMember> untold_;  // by name: lost, and WaitForAll has not said so
};

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_ROSTER_H_
