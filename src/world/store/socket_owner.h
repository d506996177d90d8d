// Users of sockets: whose process is at the other end of a connection within this host.
#ifndef SLUICE_SRC_WORLD_STORE_SOCKET_OWNER_H_
#define SLUICE_SRC_WORLD_STORE_SOCKET_OWNER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sluice {

// OK: the peer of a connected socket of the loopback interface is of this process's user, or root.
// PermissionDenied: it is another user's. FailedPrecondition: the system does not tell. The errors
// call the peer `peer`, and ask for a token. Waits for nothing. The peer has to have said something
// before: the system takes a connection that nobody has accepted for root's.
absl::Status CheckPeerUser(int fd, absl::string_view peer);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_SOCKET_OWNER_H_
