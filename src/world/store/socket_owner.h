// Asks the system about sockets: whose one is at the other end of a connection within this host,
// and which ports this process has open.
#ifndef SLUICE_SRC_WORLD_STORE_SOCKET_OWNER_H_
#define SLUICE_SRC_WORLD_STORE_SOCKET_OWNER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "net/address.h"

namespace sluice {

// OK: the peer of a connected socket of the loopback interface is of this process's user, or root.
// PermissionDenied: it is another user's. Unavailable: it has closed the connection.
// FailedPrecondition: the system does not tell. The errors call the peer `peer`, and ask for a
// token. Waits for nothing. The peer has to have said something before: the system takes a
// connection that nobody has accepted for root's.
absl::Status CheckPeerUser(int fd, absl::string_view peer);

// The addresses at which this process takes connections over TCP, as far as the system tells.
std::vector<SocketAddress> OwnListeners();

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_SOCKET_OWNER_H_
