// Reading and writing addresses, without asking a name server.
#include "net/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace sluice {
namespace {

absl::Status NoAddress(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat("no address: \"", text.substr(0, 100),
                                                 "\"; one is 10.0.0.1:4711 or [2001:db8::1]:4711"));
}

std::string HostText(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  const void* const digits =
      address->sa_family == AF_INET
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
          : &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (inet_ntop(address->sa_family, digits, text.data(), text.size()) == nullptr) return "?";
  return text.data();
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

absl::StatusOr<TcpAddress> MakeTcpAddress(absl::string_view host, int port) {
  if (port < 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("no port: ", port, "; 0 .. 65535"));
  }
  std::string digits(host);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    digits = std::string(host.substr(1, host.size() - 2));
  }
  TcpAddress address;
  auto* const four = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (inet_pton(AF_INET, digits.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(static_cast<uint16_t>(port));
    address.length = sizeof(sockaddr_in);
    return address;
  }
  auto* const six = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET6, digits.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(static_cast<uint16_t>(port));
    address.length = sizeof(sockaddr_in6);
    return address;
  }
  return NoAddress(host);
}

absl::StatusOr<std::vector<TcpAddress>> ParseTcpAddresses(absl::string_view text) {
  std::vector<TcpAddress> addresses;
  for (const absl::string_view one : absl::StrSplit(text, ',')) {
    const size_t colon = one.rfind(':');
    int port = 0;
    if (colon == absl::string_view::npos || !absl::SimpleAtoi(one.substr(colon + 1), &port) ||
        port == 0) {
      return NoAddress(one);
    }
    const absl::StatusOr<TcpAddress> address = MakeTcpAddress(one.substr(0, colon), port);
    if (!address.ok()) return address.status();
    if (addresses.size() == kMaxTcpAddresses) {
      return absl::InvalidArgumentError(
          absl::StrCat("more than ", kMaxTcpAddresses, " addresses of one rank"));
    }
    addresses.push_back(*address);
  }
  return addresses;
}

std::string TcpAddressText(const TcpAddress& address) {
  const std::string host = HostText(address.get());
  if (address.get()->sa_family == AF_INET) {
    const auto* const four = reinterpret_cast<const sockaddr_in*>(&address.storage);
    return absl::StrCat(host, ":", ntohs(four->sin_port));
  }
  const auto* const six = reinterpret_cast<const sockaddr_in6*>(&address.storage);
  return absl::StrCat("[", host, "]:", ntohs(six->sin6_port));
}

std::vector<std::string> HostAddresses(bool with_ipv6, const std::string& first) {
  std::vector<std::string> four;
  std::vector<std::string> six;
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) == 0) {
    for (const ifaddrs* each = interfaces; each != nullptr; each = each->ifa_next) {
      if (!IsReachable(*each)) continue;
      (each->ifa_addr->sa_family == AF_INET ? four : six).push_back(HostText(each->ifa_addr));
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
