// Calls of the system that make and use sockets. No socket waits.
#ifndef SLUICE_SRC_NET_SOCKET_H_
#define SLUICE_SRC_NET_SOCKET_H_

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "net/address.h"
#include "net/fd.h"

namespace sluice {

// Both: none is open where the system refuses; then errno is that of the call that `call` names.
// So many connections wait to be accepted. `again`: another one may listen there after this one's
// end, though connections of before still hold the port. Two sockets that get any free port may
// with this get the same one, and then one cannot listen.
Fd ListenAt(const SocketAddress& address, int backlog, bool again, const char** call);
// Begins to connect; ConnectOutcome has the result when the descriptor is writable.
Fd ConnectTo(const SocketAddress& address, const char** call);

// The result of a connect: 0, EINPROGRESS while it is under way, or the error.
int ConnectOutcome(int fd);

// The address of the socket's own end. Its length is 0 if the system does not tell.
SocketAddress AddressOfSocket(int fd);

// Whether the address, of any port, is one of this host's.
bool CanBind(const SocketAddress& address);

// Sends small pieces at once, and notices a host that is gone after `silence` while nothing is
// under way.
void PrepareConnection(int fd, absl::Duration silence);
void SetSocketOption(int fd, int level, int name, int value);

// Whether bytes or probes are under way that the peer's host has not answered for `silence`.
bool IsSilent(int fd, absl::Duration silence);

// As read and write, of what is there or has room; -1 with EAGAIN: nothing. Never a signal.
ssize_t ReadSocket(int fd, void* data, size_t bytes);
ssize_t WriteSocket(int fd, const void* data, size_t bytes);

// The same with texts.
struct SocketIo {
  size_t bytes = 0;
  bool ended = false;  // by the other side, or by an error: nothing comes or goes any more
};
// Appends what has come, at most `most` bytes, and 64 KiB.
SocketIo ReadSome(int fd, std::string* bytes, size_t most = size_t{64} << 10);
SocketIo WriteSome(int fd, absl::string_view bytes);

// "Connection refused", and "connect at 10.0.0.7:4711: Connection refused".
std::string ErrnoText(int error);
std::string SocketErrorText(const char* call, const SocketAddress& address, int error);

}  // namespace sluice

#endif  // SLUICE_SRC_NET_SOCKET_H_
