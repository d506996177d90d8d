// Addresses of sockets, as texts of digits too, and those of this host.
#ifndef SLUICE_SRC_NET_ADDRESS_H_
#define SLUICE_SRC_NET_ADDRESS_H_

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  // Whether only processes of this host can be there.
  bool IsLoopback() const;
  int port() const;
  std::string Host() const;  // 10.0.0.7, ::1; empty: it is of no kind that has digits
  std::string Text() const;  // 10.0.0.7:4711, [::1]:4711
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// The inner part of "[::1]", and all of any other host.
absl::string_view WithoutBrackets(absl::string_view host);

// The address "10.0.0.1", "::1" or "[::1]". InvalidArgument: nothing else is one, no name either.
absl::StatusOr<SocketAddress> MakeAddress(absl::string_view host, int port);

// How many addresses of one rank are tried.
inline constexpr size_t kMaxAddresses = 1000;

// The addresses "10.0.0.1:4711,[2001:db8::1]:4711": one to kMaxAddresses, in their order.
absl::StatusOr<std::vector<SocketAddress>> ParseAddresses(absl::string_view text);

// Addresses of this host's interfaces that are up, as digits without a port: IPv4, IPv6 that is
// valid beyond its link, and 127.0.0.1 at last. `first`, unless it is empty, leads them.
std::vector<std::string> HostAddresses(bool with_ipv6, const std::string& first = "");

}  // namespace sluice

#endif  // SLUICE_SRC_NET_ADDRESS_H_
