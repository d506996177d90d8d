// Reading /proc/net/tcp and tcp6.
#include "world/store/socket_owner.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "net/socket.h"

namespace sluice {
namespace {

constexpr int kLooks = 5;
constexpr absl::string_view kConnected = "01";
constexpr absl::string_view kListens = "0A";

// An end of a connection. Addresses of IPv4 are mapped: a socket of IPv6 may take their callers.
struct End {
  std::array<unsigned char, 16> host = {};
  int port = 0;

  bool operator==(const End& other) const { return host == other.host && port == other.port; }
};

End MappedEnd(const void* ipv4_host, int port) {
  End end;
  end.port = port;
  end.host[10] = end.host[11] = 0xff;
  std::memcpy(&end.host[12], ipv4_host, 4);
  return end;
}

absl::optional<End> EndOf(const SocketAddress& address) {
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &address.storage, sizeof(in));
    return MappedEnd(&in.sin_addr, address.port());
  }
  if (address.storage.ss_family != AF_INET6) return absl::nullopt;
  sockaddr_in6 in;
  std::memcpy(&in, &address.storage, sizeof(in));
  End end;
  end.port = address.port();
  std::memcpy(end.host.data(), &in.sin6_addr, end.host.size());
  return end;
}

// "0100007F:0FA0": words as this processor reads them, and the port as a number.
absl::optional<End> ParseEnd(absl::string_view text) {
  const size_t colon = text.find(':');
  uint32_t port = 0;
  if ((colon != 8 && colon != 32) || !absl::SimpleHexAtoi(text.substr(colon + 1), &port)) {
    return absl::nullopt;
  }
  std::array<uint32_t, 4> words = {};
  for (size_t i = 0; i < colon / 8; ++i) {
    if (!absl::SimpleHexAtoi(text.substr(8 * i, 8), &words[i])) return absl::nullopt;
  }
  if (colon == 8) return MappedEnd(words.data(), static_cast<int>(port));
  End end;
  end.port = static_cast<int>(port);
  std::memcpy(end.host.data(), words.data(), end.host.size());
  return end;
}

SocketAddress AddressOf(const End& end) {
  const bool is_mapped = end == MappedEnd(&end.host[12], end.port);
  char host[INET6_ADDRSTRLEN] = "";
  inet_ntop(is_mapped ? AF_INET : AF_INET6, &end.host[is_mapped ? 12 : 0], host, sizeof(host));
  return MakeAddress(host, end.port).value_or(SocketAddress());
}

// A line of the system's tables.
struct SocketLine {
  End own;
  End other;
  std::string state;
  uid_t user = 0;
  std::string inode;
};

// Calls `take` for each socket of this host's network, until it returns false.
void LookAtSockets(absl::FunctionRef<bool(const SocketLine&)> take) {
  constexpr size_t kOwn = 1;
  constexpr size_t kOther = 2;
  constexpr size_t kState = 3;
  constexpr size_t kUser = 7;
  constexpr size_t kInode = 9;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string text;
    while (std::getline(file, text)) {
      const std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
      if (words.size() <= kInode) continue;
      const absl::optional<End> own = ParseEnd(words[kOwn]);
      const absl::optional<End> other = ParseEnd(words[kOther]);
      SocketLine line;
      if (!own.has_value() || !other.has_value() || !absl::SimpleAtoi(words[kUser], &line.user)) {
        continue;  // the heading
      }
      line.own = *own;
      line.other = *other;
      line.state = words[kState];
      line.inode = words[kInode];
      if (!take(line)) return;
    }
  }
}

absl::optional<uid_t> PeerUser(int fd) {
  SocketAddress peer;
  peer.length = sizeof(peer.storage);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.length) != 0) {
    return absl::nullopt;
  }
  const absl::optional<End> own = EndOf(peer);
  const absl::optional<End> other = EndOf(AddressOfSocket(fd));
  if (!own.has_value() || !other.has_value()) return absl::nullopt;
  absl::optional<uid_t> user;
  LookAtSockets([&](const SocketLine& line) {
    if (!(line.own == *own && line.other == *other)) return true;
    // A socket that no process has is root's there, whoever has closed it.
    if (line.state == kConnected && line.inode != "0") user = line.user;
    return !user.has_value();
  });
  return user;
}

// Whether the connection stands, both ways.
bool IsWhole(int fd) {
  tcp_info info = {};
  socklen_t bytes = sizeof(info);
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
         info.tcpi_state == TCP_ESTABLISHED;
}

}  // namespace

absl::Status CheckPeerUser(int fd, absl::string_view peer) {
  // The tables are not read at one instant: a line may be missed where others come and go.
  absl::optional<uid_t> user;
  for (int look = 0; look < kLooks && !user.has_value(); ++look) {
    user = PeerUser(fd);
    if (!user.has_value() && !IsWhole(fd)) {
      return absl::UnavailableError(absl::StrCat("the ", peer, " has closed the connection"));
    }
  }
  if (!user.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("/proc/net/tcp does not say which user the ", peer,
                     " is of, and there is no token: give all members one"));
  }
  if (*user == geteuid() || *user == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("the ", peer, " is of user ", *user,
                                                  ", and this process of user ", geteuid(),
                                                  ": users share a store by a token alone"));
}

std::vector<SocketAddress> OwnListeners() {
  std::set<std::string> own;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    absl::string_view inode = target;
    if (absl::ConsumePrefix(&inode, "socket:[") && absl::ConsumeSuffix(&inode, "]")) {
      own.emplace(inode);
    }
  }
  std::vector<SocketAddress> listeners;
  LookAtSockets([&](const SocketLine& line) {
    if (line.state == kListens && own.count(line.inode) > 0) {
      listeners.push_back(AddressOf(line.own));
    }
    return true;
  });
  return listeners;
}

}  // namespace sluice
