// Reads through a source as a test does it. Each op has memory of its own between guards. Events
// are waited for on the source's descriptor and checked as they come. Not a test by itself.
#ifndef SLUICE_TESTS_STORAGE_SOURCE_RUN_H_
#define SLUICE_TESTS_STORAGE_SOURCE_RUN_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "storage/source.h"

namespace sluice {

// Bytes that differ from place to place and from seed to seed.
std::string SourceContent(uint64_t seed, int64_t bytes);

class SourceRun {
 public:
  // `source` outlives the run, or has been destroyed after its last call.
  explicit SourceRun(Source* source) : source_(source) {}
  SourceRun(const SourceRun&) = delete;
  SourceRun& operator=(const SourceRun&) = delete;

  // A read that nobody has started, into memory that lives as long as the run.
  ReadOp Op(int object, int64_t offset, int64_t bytes);
  // Starts reads made by Op.
  absl::Status Start(absl::Span<const ReadOp> ops);
  // Both, and expects no error. Returns the cookie.
  uint64_t Read(int object, int64_t offset, int64_t bytes);

  // Polls once, for at most `events_max` events, and returns how many came.
  int Poll(int events_max);
  // Polls until all started reads have ended, asleep in between until the source's descriptor is
  // readable. False, and a failure of the test, if that is not to be.
  bool UntilAllEnded() { return UntilEnded(0); }
  // Start, which is to be OK, and all of it.
  bool Finish(absl::Span<const ReadOp> ops) {
    EXPECT_EQ(Start(ops), absl::OkStatus());
    return UntilAllEnded();
  }
  // The same until at most `outstanding_max` have not.
  bool UntilEnded(int64_t outstanding_max);

  int64_t outstanding() const { return outstanding_; }
  bool Ended(uint64_t cookie) const { return reads_.at(cookie).ended; }
  const absl::Status& Outcome(uint64_t cookie) const { return reads_.at(cookie).event.status; }
  bool AtOnce(uint64_t cookie) const { return reads_.at(cookie).event.at_once; }
  // What an ended read has brought.
  absl::string_view Bytes(uint64_t cookie) const;
  // Expects an OK outcome and these bytes.
  void ExpectBytes(uint64_t cookie, absl::string_view bytes) const;
  // The same of reads of one object that has this content; of several, by number.
  void ExpectAll(absl::Span<const ReadOp> ops, absl::string_view content) const;
  void ExpectAll(absl::Span<const ReadOp> ops, absl::Span<const std::string> contents) const;
  // Expects that nothing was written outside the room of any read.
  void ExpectGuards() const;

 private:
  struct Freer {
    void operator()(std::byte* memory) const;
  };
  struct Entry {
    ReadOp op;
    int64_t room = 0;
    std::unique_ptr<std::byte, Freer> memory;  // guard, room, guard
    bool started = false;
    bool ended = false;
    ReadEvent event;
  };

  void Take(const ReadEvent& event);

  Source* source_;
  std::map<uint64_t, Entry> reads_;
  uint64_t next_ = 0;
  int64_t outstanding_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_STORAGE_SOURCE_RUN_H_
