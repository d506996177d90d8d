// Reads that are begun together and waited for, with retries: the least that any loader does.
#ifndef SLUICE_BENCH_STREAM_BASELINES_PLAIN_READER_H_
#define SLUICE_BENCH_STREAM_BASELINES_PLAIN_READER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "sluice/stream.h"
#include "storage/source.h"

namespace sluice::bench {

// Thread: one.
class PlainReader {
 public:
  // `source` must outlive this object.
  PlainReader(Source* source, const RetryOptions& retry) : source_(source), retry_(retry) {}

  // Carries out all of `ops`, whose cookies and attempts it sets, and blocks until none is under
  // way. `data`: where the bytes of each are then. An op of 0 bytes is nothing to read. What is
  // transient or late is tried again with the others of its kind.
  absl::Status Read(absl::Span<ReadOp> ops, std::vector<const std::byte*>* data);

  int64_t retries() const { return retries_; }
  int64_t reading_ns() const { return reading_ns_; }  // sum over reads

 private:
  absl::Status ReadOnce(absl::Span<ReadOp> ops, const std::vector<size_t>& which,
                        std::vector<const std::byte*>* data, std::vector<size_t>* again,
                        absl::Status* cause);
  // Sleeps until the source may have something, or `until_ns`.
  void Wait(int64_t until_ns) const;

  Source* const source_;
  const RetryOptions retry_;
  int64_t retries_ = 0;
  int64_t reading_ns_ = 0;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_BASELINES_PLAIN_READER_H_
