// A source that makes another one slow and faulty: for tests and benchmarks.
#ifndef SLUICE_SRC_STORAGE_DELAYED_SOURCE_H_
#define SLUICE_SRC_STORAGE_DELAYED_SOURCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "storage/read_fate.h"
#include "storage/source.h"

namespace sluice {

// Passes every read on at once and keeps its event until the read's latency (FateOf) has passed
// since its start. A read that takes longer by itself is not delayed. Nobody sleeps, and delays do
// not add up. A read that is fated to fail is carried out, and its success replaced by an error. An
// error of the inner source is passed on, at its time. A cancelled read ends as soon as the inner
// source has ended it. Name and counters are the inner source's.
//
// InvalidArgument for options that make no sense.
absl::StatusOr<std::unique_ptr<Source>> MakeDelayedSource(std::unique_ptr<Source> inner,
                                                          const DelayOptions& options);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_DELAYED_SOURCE_H_
