// The address that ranks tell each other to find their workers: UCX's own, and a secret.
#ifndef SLUICE_SRC_TRANSPORT_UCX_UCX_ADDRESS_H_
#define SLUICE_SRC_TRANSPORT_UCX_UCX_ADDRESS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

// Thread: any; a value.
struct UcxAddress {
  // Every message to a worker must bear its token. Senders without the address do not know the
  // token. Neither do senders to an ended worker, whose port another one has now.
  uint64_t token = 0;
  std::string ucx;  // as UCX packs it
};

// The bytes to tell, with a checksum: UCX itself does not survive garbage.
std::string PackUcxAddress(const UcxAddress& address);

// InvalidArgument if `bytes` are not whole.
absl::StatusOr<UcxAddress> UnpackUcxAddress(absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_UCX_UCX_ADDRESS_H_
