// Aids for tests and comparisons alone: storage that is slow or fails, plans without relays, and a
// device that the host emulates.
#ifndef SLUICE_TESTING_H_
#define SLUICE_TESTING_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sluice/accelerator.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "sluice/tensor.h"

namespace sluice {

// Latency and faults added to a source. The fate of a read follows from (seed, item, attempt)
// alone.
struct InjectedDelay {
  absl::Duration latency;
  double jitter = 0;        // share of the latency, added uniformly
  double tail_percent = 0;  // of reads, whose latency is multiplied by tail_factor
  double tail_factor = 10;
  std::string faults;  // "transient:0.01,permanent:0.001,hang:0.001,short:0.001": probabilities
  uint64_t seed = 0;
  bool read_ahead = true;  // false: of "mmap:", the kernel is not told what is needed next
};

// As OpenStream (sluice/stream.h), with latency and faults added to the source.
absl::StatusOr<std::unique_ptr<Stream>> OpenDelayedStream(Session* session,
                                                          const StreamOptions& options,
                                                          const InjectedDelay& delay);

// As Session::Create, with plans in which nothing is passed on. Each rank gets what it needs
// straight from a rank that holds it; only what is reduced still passes through ranks that need it.
// Slower wherever destinations are replicated on other nodes. All ranks of a job must use the same
// one of the two functions; both check it.
absl::StatusOr<std::unique_ptr<Session>> CreateNaiveSession(std::unique_ptr<Fabric> fabric,
                                                            const SessionOptions& options);

// Memory of an emulated device: DLPack's kind for devices that are none of its own.
inline constexpr DeviceKind kEmulatedDevice = static_cast<DeviceKind>(12);

// A device that is a thread of this process: StreamBuffers::device is kEmulatedDevice. Its memory
// is the host's, and what is copied to or from it is really copied, by a thread for each stream.
// Copies take `bytes_per_s` at most; 0: as fast as the host copies. Its streams are the threads
// that call: to await in one is to wait.
std::shared_ptr<Accelerator> MakeEmulatedAccelerator(double bytes_per_s);

}  // namespace sluice

#endif  // SLUICE_TESTING_H_
