// One rank's end of payload over UCX (https://openucx.org), which several transports share.
//
// The library libucp is loaded when the first worker is made. No program is linked with it, so one
// binary works with UCX 1.13 and later ones, and without UCX. Endpoints are in peer-failure mode:
// the end of a peer's process is an error at once. Shared memory is not used in this mode, so a
// worker is for ranks of different nodes. UCX chooses its devices by its own environment: UCX_TLS,
// UCX_NET_DEVICES and others. But UCX's own TCP asks for no proof, and lets whoever reaches its
// port write into this process. So it is left out unless both the program and UCX_TLS ask for it.
#ifndef SLUICE_SRC_TRANSPORT_UCX_UCX_WORKER_H_
#define SLUICE_SRC_TRANSPORT_UCX_UCX_WORKER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/transport.h"

namespace sluice {

enum class UcxTcp : uint8_t {
  kNever,
  kIfNamed,  // by UCX_TLS; on the loopback interface, unless UCX_NET_DEVICES names others
};

// Thread: any; a lock inside. Transports of one worker may be used by different threads.
class UcxWorker {
 public:
  static constexpr size_t kMaxAddressBytes = 4096;

  // Unavailable if there is no libucp, if it is older than 1.13, or if this program was built
  // without UCX's headers; says why. So it is if nothing but UCX's TCP reaches other ranks, and
  // that is not to be. Else what UCX says. The environment's SLUICE_UCX_LIBRARY names the file
  // to load; without it the system's libucp.so.0 is taken.
  static absl::StatusOr<std::shared_ptr<UcxWorker>> Create(UcxTcp tcp);

  virtual ~UcxWorker() = default;
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  // "1.13.1".
  virtual std::string version() const = 0;

  // Bytes by which the others reach this worker, at most kMaxAddressBytes, for their SetPeers. They
  // hold a secret of this worker: who knows them can send to it.
  virtual std::string address() const = 0;

  // This rank, and what address() gave on every rank. Once, before the first transport.
  // InvalidArgument: `rank` is none of them, or bytes are no address; names the rank.
  virtual absl::Status SetPeers(int rank, std::vector<std::string> addresses) = 0;

  // The end of a transport whose name is `number`, equal on all ranks. Each number is opened once,
  // 0 .. kMaxTransports-1, in any order. Does not wait for other ranks. Transports keep the worker.
  static constexpr int kMaxTransports = 1 << 16;
  virtual absl::StatusOr<std::unique_ptr<Transport>> OpenTransport(int number) = 0;

  // Moves all messages on, as polls of each transport do. To be called now and then as long as the
  // fabric is polled, so that ranks which part or end elsewhere are answered. Never waits.
  virtual void Progress() = 0;

  // Unavailable names the ranks whose connections have broken, each with what UCX says.
  virtual absl::Status CheckRanks() = 0;

 protected:
  UcxWorker() = default;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_UCX_UCX_WORKER_H_
