// Whether this host has devices for remote direct memory access (RDMA), which UCX is for.
#ifndef SLUICE_SRC_TRANSPORT_UCX_RDMA_DEVICE_H_
#define SLUICE_SRC_TRANSPORT_UCX_RDMA_DEVICE_H_

namespace sluice {

// True if the kernel lists any: InfiniBand, RoCE, EFA.
bool HasRdmaDevice();

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_UCX_RDMA_DEVICE_H_
