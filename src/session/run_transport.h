// The transports that carry a session's runs, and the memory that they copy at once.
#ifndef SLUICE_SRC_SESSION_RUN_TRANSPORT_H_
#define SLUICE_SRC_SESSION_RUN_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "device/device.h"
#include "session/peers/peers.h"
#include "sluice/session.h"
#include "sluice/transport.h"
#include "transport/direct/direct_transport.h"

namespace sluice {

struct RunTransport {
  std::unique_ptr<Transport> transport;
  DirectTransport* direct = nullptr;  // a part of it; null: messages alone
  std::string why_not_direct;         // where it was to be; empty: it was not
};

// By the options. Collective.
absl::StatusOr<RunTransport> OpenRunTransport(Peers* peers, const SessionOptions& options,
                                              Device* device);

// Memory that all ranks of the node map where there is a `direct`. Collective. Errors are those of
// Session::AllocateShared.
absl::StatusOr<std::shared_ptr<std::byte>> AllocateSharedMemory(Peers* peers,
                                                                DirectTransport* direct,
                                                                int64_t bytes);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_RUN_TRANSPORT_H_
