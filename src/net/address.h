// Addresses of TCP sockets as text of digits, and those of this host.
#ifndef SLUICE_SRC_NET_ADDRESS_H_
#define SLUICE_SRC_NET_ADDRESS_H_

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

struct TcpAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// How many addresses of one rank are tried.
inline constexpr size_t kMaxTcpAddresses = 1000;

// Of "10.0.0.1", "::1" or "[::1]". InvalidArgument: nothing else is an address, no name either.
absl::StatusOr<TcpAddress> MakeTcpAddress(absl::string_view host, int port);

// Of "10.0.0.1:4711,[2001:db8::1]:4711": one to kMaxTcpAddresses, in their order.
absl::StatusOr<std::vector<TcpAddress>> ParseTcpAddresses(absl::string_view text);

// "10.0.0.1:4711", "[2001:db8::1]:4711".
std::string TcpAddressText(const TcpAddress& address);

// Of this host's interfaces that are up, as digits without a port: IPv4, IPv6 that is valid beyond
// its link, and 127.0.0.1 at last. `first`, unless it is empty, leads them.
std::vector<std::string> HostAddresses(bool with_ipv6, const std::string& first = "");

}  // namespace sluice

#endif  // SLUICE_SRC_NET_ADDRESS_H_
