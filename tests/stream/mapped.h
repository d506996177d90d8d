// One rank's streams over files that are mapped.
#ifndef SLUICE_TESTS_STREAM_MAPPED_H_
#define SLUICE_TESTS_STREAM_MAPPED_H_

#include <functional>

#include "sluice/stream.h"
#include "sluice/testing.h"
#include "stream/shard_dir.h"
#include "stream/take_all.h"

namespace sluice::stream_test {

inline StreamOptions Mapped(const ShardDir& dir) {
  StreamOptions options = dir.Options();
  options.source.uri = "mmap:" + dir.path();
  return options;
}

inline void WithStream(const StreamOptions& options, const std::function<void(Stream*)>& body,
                       bool progress_thread = false, const InjectedDelay& delay = {}) {
  WithStreams(
      1, [&](int) { return options; }, [&](int, Stream* stream) { body(stream); }, progress_thread,
      delay);
}

}  // namespace sluice::stream_test

#endif  // SLUICE_TESTS_STREAM_MAPPED_H_
