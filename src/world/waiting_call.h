// The call that a member waits in, as it tells the others at the store. So members that wait for
// each other in different calls hear of it.
#ifndef SLUICE_SRC_WORLD_WAITING_CALL_H_
#define SLUICE_SRC_WORLD_WAITING_CALL_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "sluice/store.h"
#include "transport/deadline.h"

namespace sluice {

// Below it a key for each member that waits, by its id; the value is the meeting's name.
std::string WaitsPrefix(absl::string_view world);

// One call's wait in one meeting, from now on. Thread: one.
class WaitingCall {
 public:
  // `member`: its id. `lease`: how long the others believe it when its process says nothing.
  WaitingCall(std::shared_ptr<Store> store, absl::string_view world, absl::string_view member,
              std::string meeting, absl::Duration lease);

  // Says what this member waits in, and returns what the others wait in: the names of their
  // meetings by their ids. In the first second it does neither: most waits are shorter. Others may
  // have done with what they waited in just now.
  absl::StatusOr<std::map<std::string, std::string>> Others();

 private:
  const std::shared_ptr<Store> store_;
  const std::string prefix_;
  const std::string key_;
  const std::string meeting_;
  const absl::Duration lease_length_;
  const Deadline quiet_;
  std::unique_ptr<StoreLease> lease_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_WAITING_CALL_H_
