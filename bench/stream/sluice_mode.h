// One run of Sluice's own stream.
#ifndef SLUICE_BENCH_STREAM_SLUICE_MODE_H_
#define SLUICE_BENCH_STREAM_SLUICE_MODE_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "memory/memory_watch.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "sluice/testing.h"
#include "stream/consumer.h"
#include "stream/outcome.h"

namespace sluice::bench {

// Opens a stream, consumes what `consumer`, which is started, wants of it, and closes it. `watch`
// looks at memory from when the stream is open until all ranks have met.
// Collective where ranks exchange: `meet` is called once before a stream that was opened is closed,
// and has to go on driving the session until all ranks have come.
absl::Status RunSluice(Session* session, const StreamOptions& options, const InjectedDelay& delay,
                       Consumer* consumer, absl::FunctionRef<void()> meet, MemoryWatch* watch,
                       RankOutcome* outcome);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_SLUICE_MODE_H_
