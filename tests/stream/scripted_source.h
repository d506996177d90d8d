// A source whose answers a test gives by hand.
#ifndef SLUICE_TESTS_STREAM_SCRIPTED_SOURCE_H_
#define SLUICE_TESTS_STREAM_SCRIPTED_SOURCE_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
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

}  // namespace sluice::stream_test

#endif  // SLUICE_TESTS_STREAM_SCRIPTED_SOURCE_H_
