// Makes a connection to a store and greets it.
#ifndef SLUICE_SRC_WORLD_STORE_STORE_CONNECT_H_
#define SLUICE_SRC_WORLD_STORE_STORE_CONNECT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "net/fd.h"
#include "world/store/store_address.h"
#include "world/store/store_greeting.h"

namespace sluice {

struct StoreConnection {
  Fd socket;
  std::string instance;  // the server's
};

// For the sockets of both sides: notices a host that has gone within about a minute. The system
// keeps a few hundred KiB each way: left alone, it would keep MiB for a side that takes nothing.
void PrepareStoreConnection(int fd);

// Tries each address of the host once. Ends early when `stop_fd` is readable; below 0: none.
// Unavailable: nobody answers before `end_ns`.
absl::StatusOr<StoreConnection> ConnectOnce(const StoreAddress& address, const StoreSide& side,
                                            int64_t end_ns, int stop_fd);

// Tries until it works, or what is wrong does not go away by waiting.
absl::StatusOr<StoreConnection> ConnectInTime(const StoreAddress& address, const StoreSide& side,
                                              int64_t end_ns);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_STORE_CONNECT_H_
