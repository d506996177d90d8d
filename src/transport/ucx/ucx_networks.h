// Which of UCX's transports a worker gets: its own TCP only where that is asked for.
#ifndef SLUICE_SRC_TRANSPORT_UCX_UCX_NETWORKS_H_
#define SLUICE_SRC_TRANSPORT_UCX_UCX_NETWORKS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/ucx/ucx_worker.h"

namespace sluice {

struct UcxNetworks {
  bool tcp = false;
  std::string transports;  // for UCX's TLS; empty: as it is
  std::string devices;     // for UCX's NET_DEVICES; empty: as it is
};

// `transports` and `devices`: UCX_TLS and UCX_NET_DEVICES, empty where they are not set.
// Unavailable: UCX_TLS names nothing but TCP, which is not to be.
absl::StatusOr<UcxNetworks> ChooseUcxNetworks(absl::string_view transports,
                                              absl::string_view devices, UcxTcp tcp);

// Whether the kernel lists any device for remote direct memory access, which UCX is for:
// InfiniBand, RoCE, EFA.
bool HasRdmaDevice();

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_UCX_UCX_NETWORKS_H_
