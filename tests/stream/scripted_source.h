// Sources whose answers a test gives, or that fail by number.
#ifndef SLUICE_TESTS_STREAM_SCRIPTED_SOURCE_H_
#define SLUICE_TESTS_STREAM_SCRIPTED_SOURCE_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "storage/source.h"
#include "tensor/check.h"

namespace sluice::stream_test {

class ScriptedSource final : public Source {
 public:
  ScriptedSource() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~ScriptedSource() override { close(fd_); }

  absl::string_view name() const override { return "scripted"; }
  int64_t alignment() const override { return 1; }
  absl::Status Start(absl::Span<const ReadOp> ops) override {
    if (!refusal.ok()) return refusal;
    started.insert(started.end(), ops.begin(), ops.end());
    open.insert(open.end(), ops.begin(), ops.end());
    return absl::OkStatus();
  }
  absl::StatusOr<int> Poll(absl::Span<ReadEvent> events) override {
    const size_t count = std::min(events.size(), ready_.size());
    std::copy_n(ready_.begin(), count, events.begin());
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(count));
    return static_cast<int>(count);
  }
  void Cancel(uint64_t cookie) override { cancelled.push_back(cookie); }
  int ready_fd() const override { return fd_; }

  // Answers an open read.
  void Answer(uint64_t cookie, const absl::Status& status = absl::OkStatus(), int64_t skew = 0) {
    const auto at = std::find_if(open.begin(), open.end(),
                                 [cookie](const ReadOp& op) { return op.cookie == cookie; });
    SLUICE_CHECK(at != open.end(), "no such read");
    open.erase(at);
    ready_.push_back({.cookie = cookie, .status = status, .skew = skew, .at_once = at_once});
  }

  std::vector<ReadOp> started;  // all of them
  std::vector<ReadOp> open;     // those without an answer
  std::vector<uint64_t> cancelled;
  absl::Status refusal;  // of Start; OK: none
  bool at_once = false;  // nobody waited for what is answered from now on

 private:
  const int fd_;
  std::vector<ReadEvent> ready_;
};

// A source over memory whose objects fail as often as a test says, or never answer.

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

#endif  // SLUICE_TESTS_STREAM_SCRIPTED_SOURCE_H_
