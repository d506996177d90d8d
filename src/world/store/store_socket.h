// Sockets of the store.
#ifndef SLUICE_SRC_WORLD_STORE_STORE_SOCKET_H_
#define SLUICE_SRC_WORLD_STORE_STORE_SOCKET_H_

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "net/fd.h"
#include "world/store/store_address.h"

namespace sluice {

// All sockets do not wait. errno is that of the call on error.
absl::StatusOr<Fd> ListenAt(const SocketAddress& address);
absl::StatusOr<SocketAddress> AddressOfSocket(int fd);
// Whether the address, of any port, is one of this host's.
bool CanBind(const SocketAddress& address);
// Sends at once, and notices a host that has gone within about a minute. The system keeps a few
// hundred KiB for it each way: left alone, it would keep MiB for a side that takes nothing.
void SetConnectionOptions(int fd);

// What a read or write came to.
struct StoreIo {
  size_t bytes = 0;
  bool ended = false;  // by the other side, or by an error: nothing comes or goes any more
};
// Appends what has come, at most `most` bytes, and 64 KiB.
StoreIo ReadSome(int fd, std::string* bytes, size_t most = size_t{64} << 10);
StoreIo WriteSome(int fd, absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_STORE_SOCKET_H_
