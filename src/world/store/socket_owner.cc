// Reading /proc/net/tcp and tcp6.
#include "world/store/socket_owner.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "world/store/store_socket.h"

namespace sluice {
namespace {

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

// The user of the socket at `own` that is connected to `other`, as a table says.
absl::optional<uid_t> UserIn(const char* table, const End& own, const End& other) {
  constexpr size_t kLocal = 1;
  constexpr size_t kRemote = 2;
  constexpr size_t kState = 3;
  constexpr size_t kUser = 7;
  constexpr size_t kInode = 9;
  std::ifstream file(table);
  std::string line;
  while (std::getline(file, line)) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() <= kInode || ParseEnd(words[kLocal]) != own ||
        ParseEnd(words[kRemote]) != other) {
      continue;
    }
    // A socket that no process has is root's there, whoever has closed it.
    const bool is_whole = words[kState] == "01" && words[kInode] != "0";
    uid_t user = 0;
    if (is_whole && absl::SimpleAtoi(words[kUser], &user)) return user;
  }
  return absl::nullopt;
}

absl::optional<uid_t> PeerUser(int fd) {
  SocketAddress peer;
  peer.bytes = sizeof(peer.storage);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.bytes) != 0) {
    return absl::nullopt;
  }
  const absl::StatusOr<SocketAddress> here = AddressOfSocket(fd);
  const absl::optional<End> own = EndOf(peer);
  const absl::optional<End> other = here.ok() ? EndOf(*here) : absl::nullopt;
  if (!own.has_value() || !other.has_value()) return absl::nullopt;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const absl::optional<uid_t> user = UserIn(table, *own, *other);
    if (user.has_value()) return user;
  }
  return absl::nullopt;
}

}  // namespace

absl::Status CheckPeerUser(int fd, absl::string_view peer) {
  const absl::optional<uid_t> user = PeerUser(fd);
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

}  // namespace sluice
