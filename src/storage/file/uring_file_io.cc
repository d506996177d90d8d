// FileIo with io_uring: one system call begins a batch, and results cost none.
#include <liburing.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/file/file_io.h"
#include "storage/source_check.h"
#include "tensor/check.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// Below any call's tag.
constexpr uint64_t kCancelTag = 0;
constexpr uint64_t kWakeTag = 1;

class UringFileIo : public FileIo {
 public:
  UringFileIo() = default;
  ~UringFileIo() override {
    if (made_) io_uring_queue_exit(&ring_);
  }
  absl::Status Make(int calls_max);

  absl::string_view name() const override { return "io_uring"; }
  void Add(const FileCall& call) override;
  absl::Status Submit() override;
  bool Next(FileResult* result) override;
  void Cancel(uint64_t tag) override;
  int running() const override { return running_; }
  void Wait() override;
  void Wake() override;
  int ready_fd() const override { return ring_.ring_fd; }

 private:
  absl::Status MakeRing(unsigned entries);
  bool HasCalls();
  io_uring_sqe* Entry();
  void Break(absl::Status status);

  io_uring ring_;
  io_uring_sqe nowhere_ = {};
  bool made_ = false;
  bool woken_ = false;  // a wake's result is in the ring, or will be
  int added_ = 0;       // calls that the kernel has not been told of
  int running_ = 0;
  absl::Status status_;  // of the ring
};

absl::Status UringFileIo::MakeRing(unsigned entries) {
  // Completions are not worth an interrupt of whatever the thread does: they are polled for.
  // Not SINGLE_ISSUER with DEFER_TASKRUN: then only the thread that began a read can learn of its
  // end, and the thread may change.
  const unsigned kFlags[] = {IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, 0};
  int error = 0;
  for (const unsigned flags : kFlags) {
    io_uring_params params = {};
    params.flags = flags | IORING_SETUP_CLAMP;
    error = -io_uring_queue_init_params(entries, &ring_, &params);
    if (error == 0) {
      made_ = true;
      return absl::OkStatus();
    }
    if (error != EINVAL) break;  // EINVAL: an older kernel, which does not know the flags
  }
  return absl::UnavailableError(
      absl::StrCat("no io_uring: ", ReadErrnoStatus(error, "setting it up").message()));
}

bool UringFileIo::HasCalls() {
  io_uring_probe* const probe = io_uring_get_probe_ring(&ring_);
  if (probe == nullptr) return false;
  bool has_all = true;
  for (const int call : {IORING_OP_OPENAT, IORING_OP_READ, IORING_OP_READV, IORING_OP_WRITE,
                         IORING_OP_CLOSE, IORING_OP_ASYNC_CANCEL, IORING_OP_NOP}) {
    has_all = has_all && io_uring_opcode_supported(probe, call) != 0;
  }
  io_uring_free_probe(probe);
  return has_all;
}

absl::Status UringFileIo::Make(int calls_max) {
  const auto calls = static_cast<unsigned>(calls_max);
  SLUICE_RETURN_IF_ERROR(MakeRing(calls));
  if (!HasCalls()) return absl::UnavailableError("no io_uring: its calls are too few");
  // File systems that can only block (FUSE) are served by threads of the kernel, by default at most
  // four for each processor.
  unsigned workers[] = {calls, 0};
  io_uring_register_iowq_max_workers(&ring_, workers);  // an older kernel cannot: slower, not wrong
  return absl::OkStatus();
}

io_uring_sqe* UringFileIo::Entry() {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  if (entry != nullptr) return entry;
  // Full of what has not been submitted. Beginning it now is as good as later. A ring that is
  // broken takes calls that never begin.
  if (!Submit().ok()) return &nowhere_;
  entry = io_uring_get_sqe(&ring_);
  SLUICE_CHECK(entry != nullptr, "a ring that is full of nothing");
  return entry;
}

void UringFileIo::Add(const FileCall& call) {
  io_uring_sqe* const entry = Entry();
  switch (call.kind) {
    case FileCall::Kind::kOpen:
      io_uring_prep_openat(entry, call.fd, call.path, call.flags, 0);
      // Not within the submission. The kernel would try a known name there, and sleep if it takes a
      // server to open the file.
      entry->flags |= IOSQE_ASYNC;
      break;
    case FileCall::Kind::kRead:
      io_uring_prep_read(entry, call.fd, call.data, call.bytes, static_cast<uint64_t>(call.offset));
      // By a thread of the kernel's, which copies while the caller goes on.
      if (call.aside) entry->flags |= IOSQE_ASYNC;
      break;
    case FileCall::Kind::kReadParts:
      io_uring_prep_readv(entry, call.fd, call.parts, static_cast<unsigned>(call.part_count),
                          static_cast<uint64_t>(call.offset));
      break;
    case FileCall::Kind::kWrite:
      io_uring_prep_write(entry, call.fd, call.data, call.bytes,
                          static_cast<uint64_t>(call.offset));
      break;
    case FileCall::Kind::kClose:
      io_uring_prep_close(entry, call.fd);
      break;
  }
  io_uring_sqe_set_data64(entry, call.tag);
  ++added_;
}

void UringFileIo::Cancel(uint64_t tag) {
  io_uring_sqe* const entry = Entry();
  io_uring_prep_cancel64(entry, tag, 0);
  io_uring_sqe_set_data64(entry, kCancelTag);
}

void UringFileIo::Wake() {
  if (woken_) return;
  woken_ = true;
  io_uring_sqe* const entry = Entry();
  io_uring_prep_nop(entry);
  io_uring_sqe_set_data64(entry, kWakeTag);
}

void UringFileIo::Break(absl::Status status) {
  status_ = std::move(status);
  running_ += added_;
  for (unsigned i = *ring_.sq.khead; i != ring_.sq.sqe_tail; ++i) {
    const bool is_call = ring_.sq.sqes[i & *ring_.sq.kring_mask].user_data > kWakeTag;
    running_ -= is_call ? 1 : 0;  // it has not begun
  }
}

absl::Status UringFileIo::Submit() {
  constexpr int kTries = 10'000;
  for (int i = 0; status_.ok() && io_uring_sq_ready(&ring_) > 0; ++i) {
    const int error = -io_uring_submit(&ring_);
    if (error <= 0 || error == EINTR) continue;
    // Short of memory, or full of results, for which the kernel keeps room elsewhere.
    const bool may_pass = (error == EAGAIN || error == EBUSY) && i < kTries;
    if (!may_pass) Break(ReadErrnoStatus(error, "io_uring_submit"));
    sched_yield();
  }
  if (status_.ok()) {
    running_ += added_;
    added_ = 0;
  }
  return status_;
}

bool UringFileIo::Next(FileResult* result) {
  io_uring_cqe* entry = nullptr;
  while (io_uring_peek_cqe(&ring_, &entry) == 0) {
    *result = {.tag = io_uring_cqe_get_data64(entry), .value = entry->res};
    io_uring_cqe_seen(&ring_, entry);
    if (result->tag == kWakeTag) woken_ = false;
    if (result->tag <= kWakeTag) continue;
    --running_;
    return true;
  }
  return false;
}

void UringFileIo::Wait() {
  io_uring_cqe* entry = nullptr;
  while (io_uring_wait_cqe(&ring_, &entry) == -EINTR) {
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileIo>> MakeUringFileIo(int calls_max) {
  auto io = std::make_unique<UringFileIo>();
  SLUICE_RETURN_IF_ERROR(io->Make(calls_max));
  return io;
}

}  // namespace sluice
