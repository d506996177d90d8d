// For tests and comparisons alone: storage that is slow or fails, and plans without relays.
#ifndef SLUICE_TESTING_H_
#define SLUICE_TESTING_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sluice/session.h"
#include "sluice/stream.h"

namespace sluice {

// Latency and faults added to a source. What happens to a read follows from (seed, item, attempt)
// alone.
struct InjectedDelay {
  absl::Duration latency;
  double jitter = 0;        // share of the latency, added uniformly
  double tail_percent = 0;  // of reads, whose latency is multiplied by tail_factor
  double tail_factor = 10;
  std::string faults;  // "transient:0.01,permanent:0.001,hang:0.001,short:0.001": probabilities
  uint64_t seed = 0;
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

}  // namespace sluice

#endif  // SLUICE_TESTING_H_
