// Addresses of stores as texts, and what they stand for.
#ifndef SLUICE_SRC_WORLD_STORE_STORE_ADDRESS_H_
#define SLUICE_SRC_WORLD_STORE_STORE_ADDRESS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "net/address.h"

namespace sluice {

struct StoreAddress {
  std::string host;  // a name, or an address without brackets
  int port = 0;

  // tcp://HOST:PORT
  std::string Text() const;
};

// InvalidArgument: it is not tcp://HOST:PORT.
absl::StatusOr<StoreAddress> ParseStoreAddress(absl::string_view text);

// Whether it is digits, such as 10.0.0.7 or fe80::1%eth0, and not a name.
bool IsIpAddress(const std::string& host);

// All that a host's name stands for; brackets around an address do not count. If it is empty: all
// interfaces of this one, those of IPv6 and IPv4 first. May take as long as the system's resolver.
// InvalidArgument: it is no name or address. Unavailable: it stands for nothing now.
absl::StatusOr<std::vector<SocketAddress>> ResolveStoreHost(const std::string& host, int port);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_STORE_ADDRESS_H_
