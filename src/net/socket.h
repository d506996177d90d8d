// Sockets as the links need them.
#ifndef SLUICE_SRC_NET_SOCKET_H_
#define SLUICE_SRC_NET_SOCKET_H_

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "net/address.h"
#include "net/fd.h"

namespace sluice {

struct TcpListener {
  Fd fd;
  std::string address;  // as TcpLinks::address() has it
};

// Listens at `bind`, or at all addresses of this host if it is empty, of which `first` is told
// first. InvalidArgument: it has more than kMaxTcpAddresses.
absl::StatusOr<TcpListener> ListenTcp(const std::string& bind, int port,
                                      const std::string& first = "");

// Begins to connect; the result is there when the descriptor is writable.
absl::StatusOr<Fd> ConnectTcp(const TcpAddress& address);

// What became of a connect: 0, EINPROGRESS while it is under way, or the error.
int ConnectOutcome(int fd);

// Small frames go at once, and a peer's host that is gone is noticed after `silence` while nothing
// is under way.
void PrepareTcp(int fd, absl::Duration silence);

// Whether bytes or probes are under way that the peer's host has not answered for `silence`.
bool IsSilent(int fd, absl::Duration silence);

// As read and write, of what is there or has room; -1 with EAGAIN: nothing. Never a signal.
ssize_t ReadTcp(int fd, void* data, size_t bytes);
ssize_t WriteTcp(int fd, const void* data, size_t bytes);

// "Connection refused".
std::string ErrnoText(int error);

}  // namespace sluice

#endif  // SLUICE_SRC_NET_SOCKET_H_
