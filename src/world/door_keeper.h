// Shows strangers out of a member's port while nobody polls its session.
#ifndef SLUICE_SRC_WORLD_DOOR_KEEPER_H_
#define SLUICE_SRC_WORLD_DOOR_KEEPER_H_

#include <sys/types.h>

#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "net/socket.h"
#include "transport/tcp/tcp_links.h"

namespace sluice {

// A thread that sleeps as long as nobody comes. Then it leaves the door to those who poll, and
// serves it where nobody does. Ends with its destructor; a forked child has no part in it.
class DoorKeeper {
 public:
  static constexpr absl::Duration kIdle = absl::Seconds(1);

  // `idle`: how long nobody has to poll before the keeper serves. ResourceExhausted: the system has
  // no thread, or no descriptor.
  static absl::StatusOr<std::unique_ptr<DoorKeeper>> Make(std::shared_ptr<TcpLinks> links,
                                                          absl::Duration idle = kIdle);
  ~DoorKeeper();
  DoorKeeper(const DoorKeeper&) = delete;
  DoorKeeper& operator=(const DoorKeeper&) = delete;

 private:
  DoorKeeper(std::shared_ptr<TcpLinks> links, Fd stop, absl::Duration idle);
  void Run();

  const std::shared_ptr<TcpLinks> links_;
  const Fd stop_;
  const int idle_ms_;
  const pid_t process_;
  std::thread thread_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_DOOR_KEEPER_H_
