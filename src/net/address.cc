// Reading and writing addresses, without asking a name server.
#include "net/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

absl::Status NoAddress(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("no address: \"", text.substr(0, 100),
                                                 "\"; one is 10.0.0.1:4711 or [2001:db8::1]:4711"));
}

std::string HostText(const sockaddr* address, socklen_t length) {
  char host[NI_MAXHOST] = "";
  if (getnameinfo(address, length, host, sizeof(host), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return host;
}

// Others can reach this host there.
bool IsReachable(const ifaddrs& interface) {
  if (interface.ifa_addr == nullptr || (interface.ifa_flags & IFF_UP) == 0 ||
      (interface.ifa_flags & IFF_LOOPBACK) != 0) {
    return false;
  }
  if (interface.ifa_addr->sa_family == AF_INET) return true;
  if (interface.ifa_addr->sa_family != AF_INET6) return false;
  const in6_addr& digits = reinterpret_cast<const sockaddr_in6*>(interface.ifa_addr)->sin6_addr;
  return !IN6_IS_ADDR_LINKLOCAL(&digits) && !IN6_IS_ADDR_LOOPBACK(&digits);
}

}  // namespace

bool SocketAddress::IsLoopback() const {
  constexpr uint32_t kLoopbackNet = 127;
  if (storage.ss_family == AF_INET) {
    const auto* const in = reinterpret_cast<const sockaddr_in*>(&storage);
    return ntohl(in->sin_addr.s_addr) >> 24 == kLoopbackNet;
  }
  if (storage.ss_family != AF_INET6) return false;
  const in6_addr& digits = reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&digits)) return digits.s6_addr[12] == kLoopbackNet;
  return IN6_IS_ADDR_LOOPBACK(&digits);
}

// Both kinds have the port at one place.
int SocketAddress::port() const {
  return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

std::string SocketAddress::Host() const { return HostText(get(), length); }

std::string SocketAddress::Text() const {
  const std::string host = Host();
  if (host.empty()) return "an unknown address";
  const bool brackets = absl::StrContains(host, ':');
  return absl::StrCat(brackets ? "[" : "", host, brackets ? "]:" : ":", port());
}

absl::string_view WithoutBrackets(absl::string_view host) {
  const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return has_brackets ? host.substr(1, host.size() - 2) : host;
}

absl::StatusOr<SocketAddress> MakeAddress(absl::string_view host, int port) {
  if (port < 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("no port: ", port, "; 0 .. 65535"));
  }
  const std::string digits(WithoutBrackets(host));
  SocketAddress address;
  auto* const four = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* const six = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET, digits.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    address.length = sizeof(sockaddr_in);
  } else if (inet_pton(AF_INET6, digits.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    address.length = sizeof(sockaddr_in6);
  } else {
    return NoAddress(host);
  }
  four->sin_port = htons(static_cast<uint16_t>(port));  // both kinds have it at one place
  return address;
}

absl::StatusOr<std::vector<SocketAddress>> ParseAddresses(absl::string_view text) {
  std::vector<SocketAddress> addresses;
  for (const absl::string_view one : absl::StrSplit(text, ',')) {
    const size_t colon = one.rfind(':');
    int port = 0;
    if (colon == absl::string_view::npos || !absl::SimpleAtoi(one.substr(colon + 1), &port) ||
        port == 0) {
      return NoAddress(one);
    }
    SLUICE_ASSIGN_OR_RETURN(const SocketAddress address, MakeAddress(one.substr(0, colon), port));
    if (addresses.size() == kMaxAddresses) {
      return absl::InvalidArgumentError(
          absl::StrCat("more than ", kMaxAddresses, " addresses of one rank"));
    }
    addresses.push_back(address);
  }
  return addresses;
}

std::vector<std::string> HostAddresses(bool with_ipv6, const std::string& first) {
  std::vector<std::string> four;
  std::vector<std::string> six;
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) == 0) {
    for (const ifaddrs* each = interfaces; each != nullptr; each = each->ifa_next) {
      if (!IsReachable(*each)) continue;
      const bool is_four = each->ifa_addr->sa_family == AF_INET;
      (is_four ? four : six)
          .push_back(
              HostText(each->ifa_addr, is_four ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)));
    }
    freeifaddrs(interfaces);
  }
  if (with_ipv6) four.insert(four.end(), six.begin(), six.end());
  if (!first.empty()) {
    std::erase(four, first);
    four.insert(four.begin(), first);
  }
  four.emplace_back("127.0.0.1");
  return four;
}

}  // namespace sluice
