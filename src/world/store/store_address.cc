// Parsing and resolving.
#include "world/store/store_address.h"

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tensor/quoted.h"
#include "world/store/store_check.h"

namespace sluice {
namespace {

constexpr size_t kMaxHostBytes = 255;
constexpr int kMaxPort = 65535;

bool IsHost(absl::string_view host) {
  return host.size() <= kMaxHostBytes && std::all_of(host.begin(), host.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' ||
                  c == '_' || c == ':' || c == '%';
         });
}

}  // namespace

std::string StoreAddress::Text() const {
  return absl::StrContains(host, ':') ? absl::StrCat("tcp://[", host, "]:", port)
                                      : absl::StrCat("tcp://", host, ":", port);
}

absl::StatusOr<StoreAddress> ParseStoreAddress(absl::string_view text) {
  const auto bad = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("the store's address ", Quoted(text), " is not tcp://HOST:PORT: ", why));
  };
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "tcp://")) return bad("it does not begin with tcp://");
  const size_t colon = rest.rfind(':');
  if (colon == rest.npos) return bad("there is no port");
  absl::string_view host = rest.substr(0, colon);
  StoreAddress address;
  // SimpleAtoi takes signs and blanks, too.
  const absl::string_view port = rest.substr(colon + 1);
  const bool digits = std::all_of(port.begin(), port.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
  if (!digits || !absl::SimpleAtoi(port, &address.port) || address.port < 1 ||
      address.port > kMaxPort) {
    return bad("the port is not a number from 1 to 65535");
  }
  const bool bracketed = absl::ConsumePrefix(&host, "[");
  if (bracketed && !absl::ConsumeSuffix(&host, "]")) return bad("a bracket is open");
  if (!bracketed && absl::StrContains(host, ':')) return bad("an IPv6 address takes brackets");
  if (host.empty()) return bad("there is no host");
  if (!IsHost(host)) return bad("that host can have no such name");
  address.host = std::string(host);
  return address;
}

bool IsIpAddress(const std::string& host) {
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* found = nullptr;
  if (host.empty() || getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  freeaddrinfo(found);
  return true;
}

absl::StatusOr<std::vector<SocketAddress>> ResolveStoreHost(const std::string& name, int port) {
  const std::string host(WithoutBrackets(name));
  if (!IsHost(host)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the store's host ", Quoted(name), " can have no such name"));
  }
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (host.empty() ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const std::string service = absl::StrCat(port);
  const int error =
      getaddrinfo(host.empty() ? nullptr : host.c_str(), service.c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("the store's host '", host, "' is not known: ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, &freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (at->ai_addrlen > sizeof(sockaddr_storage)) continue;
    SocketAddress& address = addresses.emplace_back();
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    address.length = at->ai_addrlen;
  }
  // A socket for all interfaces of IPv6 takes callers of IPv4, too.
  if (host.empty()) {
    std::stable_partition(addresses.begin(), addresses.end(), [](const SocketAddress& address) {
      return address.storage.ss_family == AF_INET6;
    });
  }
  return addresses;
}

}  // namespace sluice
