// FileIo where io_uring is not allowed: a thread for each call that may be outstanding.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "net/fd.h"
#include "storage/file/file_io.h"
#include "storage/own_thread.h"
#include "storage/source_check.h"
#include "tensor/check.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// Reads what the page cache has, without waiting; -1: nothing, or the system cannot tell.
int64_t ReadCached(const FileCall& call) {
  const iovec into = {call.data, call.bytes};
  return preadv2(call.fd, &into, 1, call.offset, RWF_NOWAIT);
}

FileResult Run(const FileCall& call) {
  int64_t value = 0;
  switch (call.kind) {
    case FileCall::Kind::kOpen:
      value = openat(call.fd, call.path, call.flags);
      break;
    case FileCall::Kind::kRead:
      if (call.cached) value = ReadCached(call);
      if (call.cached && value > 0) return {.tag = call.tag, .value = value, .at_once = true};
      value = pread(call.fd, call.data, call.bytes, call.offset);
      break;
    case FileCall::Kind::kReadParts:
      value = preadv(call.fd, call.parts, call.part_count, call.offset);
      break;
    case FileCall::Kind::kWrite:
      value = pwrite(call.fd, call.data, call.bytes, call.offset);
      break;
    case FileCall::Kind::kClose:
      value = close(call.fd);
      break;
  }
  return {.tag = call.tag, .value = value < 0 ? -errno : value};
}

class ThreadFileIo : public FileIo {
 public:
  explicit ThreadFileIo(Fd ready) : ready_(std::move(ready)) {}
  ~ThreadFileIo() override;
  absl::Status Make(int calls_max);

  absl::string_view name() const override { return "threads"; }
  void Add(const FileCall& call) override { added_.push_back(call); }
  absl::Status Submit() override;
  bool Next(FileResult* result) override;
  void Cancel(uint64_t tag) override;
  int running() const override { return running_; }
  void Wait() override;
  void Wake() override { eventfd_write(ready_.get(), 1); }
  int ready_fd() const override { return ready_.get(); }

 private:
  void Work();
  void Quiet();

  const Fd ready_;  // an eventfd
  std::vector<FileCall> added_;
  std::vector<FileResult> taken_;  // the last first
  int running_ = 0;

  std::mutex mutex_;
  std::condition_variable work_;
  std::vector<FileCall> waiting_;     // the first first; few, so that moving them costs nothing
  std::vector<FileResult> finished_;  // the first first
  bool ending_ = false;

  std::vector<std::thread> threads_;
};

absl::Status ThreadFileIo::Make(int calls_max) {
  // Twice: whoever makes room for an open also closes another file.
  const auto room = 2 * static_cast<size_t>(calls_max);
  added_.reserve(room);
  taken_.reserve(room);
  waiting_.reserve(room);
  finished_.reserve(room);
  for (int i = 0; i < calls_max; ++i) {
    absl::StatusOr<std::thread> thread = StartOwnThread([this] { Work(); });
    // Fewer will do, one at least.
    if (!thread.ok()) return threads_.empty() ? thread.status() : absl::OkStatus();
    threads_.push_back(*std::move(thread));
  }
  return absl::OkStatus();
}

ThreadFileIo::~ThreadFileIo() {
  SLUICE_CHECK(running_ == 0, "calls outlive their threads");
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadFileIo::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const FileCall call = waiting_.front();
    waiting_.erase(waiting_.begin());
    lock.unlock();
    const FileResult result = Run(call);
    lock.lock();
    const bool is_first = finished_.empty();
    finished_.push_back(result);
    if (is_first) eventfd_write(ready_.get(), 1);
  }
}

absl::Status ThreadFileIo::Submit() {
  if (added_.empty()) return absl::OkStatus();
  {
    const std::lock_guard lock(mutex_);
    waiting_.insert(waiting_.end(), added_.begin(), added_.end());
  }
  if (added_.size() == 1) {
    work_.notify_one();
  } else {
    work_.notify_all();
  }
  running_ += static_cast<int>(added_.size());
  added_.clear();
  return absl::OkStatus();
}

void ThreadFileIo::Quiet() {
  eventfd_t wakes = 0;
  eventfd_read(ready_.get(), &wakes);
}

bool ThreadFileIo::Next(FileResult* result) {
  if (taken_.empty()) {
    const std::lock_guard lock(mutex_);
    Quiet();
    taken_.swap(finished_);
    std::reverse(taken_.begin(), taken_.end());
  }
  if (taken_.empty()) return false;
  *result = taken_.back();
  taken_.pop_back();
  --running_;
  // A caller that goes to sleep now would not hear of the rest.
  if (!taken_.empty()) Wake();
  return true;
}

void ThreadFileIo::Cancel(uint64_t tag) {
  const std::lock_guard lock(mutex_);
  const auto has_tag = [tag](const FileCall& call) { return call.tag == tag; };
  const auto it = std::find_if(waiting_.begin(), waiting_.end(), has_tag);
  if (it == waiting_.end()) return;
  waiting_.erase(it);
  finished_.push_back({.tag = tag, .value = -ECANCELED});
  eventfd_write(ready_.get(), 1);
}

void ThreadFileIo::Wait() {
  pollfd wait = {.fd = ready_.get(), .events = POLLIN, .revents = 0};
  while (taken_.empty() && poll(&wait, 1, -1) < 0 && errno == EINTR) {
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileIo>> MakeThreadFileIo(int calls_max) {
  Fd ready(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (ready.get() < 0) return ReadErrnoStatus(errno, "eventfd");
  auto io = std::make_unique<ThreadFileIo>(std::move(ready));
  SLUICE_RETURN_IF_ERROR(io->Make(calls_max));
  return io;
}

}  // namespace sluice
