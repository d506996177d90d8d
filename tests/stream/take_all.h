// Whole streams: opened on every rank of a job, and taken to their end.
#ifndef SLUICE_TESTS_STREAM_TAKE_ALL_H_
#define SLUICE_TESTS_STREAM_TAKE_ALL_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "sluice/stream.h"
#include "sluice/testing.h"
#include "stream/shard_dir.h"

namespace sluice::stream_test {

// Runs `body` on each rank, a thread of its own, with a stream whose source has `delay`. The
// sessions end together.
void WithStreams(int ranks, const std::function<StreamOptions(int rank)>& options_of,
                 const std::function<void(int rank, Stream*)>& body, bool progress_thread = false,
                 const InjectedDelay& delay = {});

// The same with one set of options for all ranks; or for one, alone.
void WithStreams(int ranks, const StreamOptions& options,
                 const std::function<void(int rank, Stream*)>& body, bool progress_thread = false,
                 const InjectedDelay& delay = {});
void WithStream(const StreamOptions& options, const std::function<void(Stream*)>& body,
                bool progress_thread = false, const InjectedDelay& delay = {});

// Takes leases to the end, one at a time, and gives each to `body`.
void ForEachLease(Stream* stream, const std::function<void(Lease&)>& body);

// Takes all items to the end, checks each, and returns their numbers.
std::vector<int64_t> TakeAll(Stream* stream, const ShardDir& dir);

// first, first + step, ... below end.
std::vector<int64_t> Every(int64_t first, int64_t step, int64_t end);

}  // namespace sluice::stream_test

#endif  // SLUICE_TESTS_STREAM_TAKE_ALL_H_
