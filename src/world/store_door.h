// How a member reaches the store of its world, or serves it.
#ifndef SLUICE_SRC_WORLD_STORE_DOOR_H_
#define SLUICE_SRC_WORLD_STORE_DOOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sluice/store.h"
#include "sluice/world.h"

namespace sluice {

// A store, and the server if this process has it. The server ends after the store.
struct StoreDoor {
  std::string address;   // "tcp://HOST:PORT"; "" for a store of the caller's
  std::string token;     // "": none
  std::string own_host;  // this host's address on the way to the store, as digits; "": not known
  std::unique_ptr<StoreServer> server;
  std::shared_ptr<Store> store;
};

// As the options say. Waits for a store that does not listen yet, up to their limit.
absl::StatusOr<StoreDoor> OpenStoreDoor(const WorldOptions& options);

// Whether the name is one of this host's, by what it resolves to; only its loopback's.
bool IsOwnHost(const std::string& host);
bool IsLoopbackHost(absl::string_view host);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_DOOR_H_
