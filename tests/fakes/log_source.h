// A source that writes its reads to a log, and answers one when a test says so.
#ifndef SLUICE_TESTS_FAKES_LOG_SOURCE_H_
#define SLUICE_TESTS_FAKES_LOG_SOURCE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "fakes/operations_log.h"
#include "storage/source.h"

namespace sluice {

// Reads no bytes. A read waits for its turn until the test says that it was begun, so that no clock
// can call it late.
class LogSource final : public Source {
 public:
  // `log` must outlive the source.
  LogSource(std::vector<std::string> objects, int64_t alignment, OperationsLog* log)
      : objects_(std::move(objects)), alignment_(alignment), log_(log) {}

  bool End(absl::string_view name, const absl::Status& status, int64_t skew = 0);
  bool IsOpen(absl::string_view name) const { return ops_.find(name) != ops_.end(); }
  const LoggedOperations& reads() const { return reads_; }
  // The read was begun so long ago that every judge finds it slow. False: it is not open.
  bool BeginLongAgo(absl::string_view name);
  // The next Start fails.
  void RefuseNext(const absl::Status& status) { refusal_ = status; }
  // The next Poll fails; what is outstanding is not heard of again.
  void Break(const absl::Status& status) { failure_ = status; }

  absl::string_view name() const override { return "log"; }
  int64_t alignment() const override { return alignment_; }
  absl::Status Start(absl::Span<const ReadOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<ReadEvent> events) override;
  void Cancel(uint64_t cookie) override;
  int ready_fd() const override { return -1; }

 private:
  const std::vector<std::string> objects_;
  const int64_t alignment_;
  OperationsLog* const log_;
  LoggedOperations reads_;
  std::map<std::string, ReadOp, std::less<>> ops_;  // of the open ones, by name
  std::map<uint64_t, int64_t> skews_;               // of those that have ended, by cookie
  absl::Status refusal_;
  absl::Status failure_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_FAKES_LOG_SOURCE_H_
