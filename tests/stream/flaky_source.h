// A source over memory whose objects fail as often as a test says, or never answer.
#ifndef SLUICE_TESTS_STREAM_FLAKY_SOURCE_H_
#define SLUICE_TESTS_STREAM_FLAKY_SOURCE_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "storage/source.h"

namespace sluice::stream_test {

class FlakySource final : public Source {
 public:
  struct Object {
    std::string content;
    // Outcomes of the first reads, one each. Later reads are OK.
    std::vector<absl::Status> outcomes = {};
    bool is_silent = false;  // its reads end by Cancel only
  };

  explicit FlakySource(std::vector<Object> objects)
      : objects_(std::move(objects)), fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~FlakySource() override { close(fd_); }

  absl::string_view name() const override { return "flaky"; }
  int64_t alignment() const override { return 1; }
  absl::Status Start(absl::Span<const ReadOp> ops) override {
    reads += static_cast<int>(ops.size());
    open_.insert(open_.end(), ops.begin(), ops.end());
    return absl::OkStatus();
  }
  absl::StatusOr<int> Poll(absl::Span<ReadEvent> events) override {
    ++polls_;
    if (on_poll) on_poll(polls_);
    size_t count = 0;
    for (size_t i = 0; i < open_.size() && count < events.size();) {
      if (IsSilent(open_[i])) {
        ++i;
        continue;
      }
      events[count++] = Carry(open_[i]);
      open_.erase(open_.begin() + static_cast<ptrdiff_t>(i));
    }
    return static_cast<int>(count);
  }
  void Cancel(uint64_t cookie) override { cancelled_.push_back(cookie); }
  int ready_fd() const override { return fd_; }

  int reads = 0;
  // Called when the source is polled, with the number of the poll.
  std::function<void(int poll)> on_poll;

 private:
  bool IsCancelled(const ReadOp& op) const {
    return std::count(cancelled_.begin(), cancelled_.end(), op.cookie) > 0;
  }
  bool IsSilent(const ReadOp& op) const {
    return objects_[static_cast<size_t>(op.object)].is_silent && !IsCancelled(op);
  }
  ReadEvent Carry(const ReadOp& op) {
    Object& object = objects_[static_cast<size_t>(op.object)];
    if (IsCancelled(op)) return {op.cookie, absl::CancelledError("cancelled"), 0};
    absl::Status outcome;
    if (!object.outcomes.empty()) {
      outcome = object.outcomes.front();
      object.outcomes.erase(object.outcomes.begin());
    }
    if (!outcome.ok()) return {op.cookie, std::move(outcome), 0};
    if (op.offset + op.bytes > static_cast<int64_t>(object.content.size())) {
      return {op.cookie, absl::DataLossError("the object is shorter"), 0};
    }
    std::memcpy(op.data, object.content.data() + op.offset, static_cast<size_t>(op.bytes));
    return {op.cookie, absl::OkStatus(), 0};
  }

  std::vector<Object> objects_;
  std::vector<ReadOp> open_;
  std::vector<uint64_t> cancelled_;
  const int fd_;
  int polls_ = 0;
};

}  // namespace sluice::stream_test

#endif  // SLUICE_TESTS_STREAM_FLAKY_SOURCE_H_
