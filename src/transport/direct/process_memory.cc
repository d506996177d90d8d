// Batches of stretches for process_vm_readv and process_vm_writev.
#include "transport/direct/process_memory.h"

#include <sys/uio.h>

#include <array>
#include <cerrno>

namespace sluice {
namespace {

// Most stretches of one call. The kernel takes up to 1024, and keeps a few of them without
// allocating.
constexpr size_t kStretchesMax = 512;

using Call = ssize_t (*)(pid_t, const iovec*, unsigned long,  // NOLINT(google-runtime-int)
                         const iovec*, unsigned long,         // NOLINT(google-runtime-int)
                         unsigned long);                      // NOLINT(google-runtime-int)

// Stretches of one side: those that follow one another in memory are one.
class Stretches {
 public:
  bool full() const { return count_ == kStretchesMax; }
  void Add(uint64_t address, uint64_t bytes) {
    if (count_ > 0) {
      iovec& last = list_[count_ - 1];
      if (reinterpret_cast<uint64_t>(last.iov_base) + last.iov_len == address) {
        last.iov_len += bytes;
        return;
      }
    }
    list_[count_++] = {reinterpret_cast<void*>(address), bytes};
  }
  const iovec* data() const { return list_.data(); }
  size_t count() const { return count_; }

 private:
  std::array<iovec, kStretchesMax> list_;
  size_t count_ = 0;
};

// Copies what begins at byte `begin`, as much as one call takes. Returns where it came to, or a
// negative error number.
int64_t CopySome(Call call, pid_t pid, uint64_t remote, const DirectRows& remote_rows,
                 uint64_t local, const DirectRows& local_rows, uint64_t begin, uint64_t end) {
  Stretches theirs;
  Stretches ours;
  ForEachStretch(remote_rows, local_rows, begin, end,
                 [&](uint64_t remote_offset, uint64_t local_offset, uint64_t bytes) {
                   if (theirs.full() || ours.full()) return false;
                   theirs.Add(remote + remote_offset, bytes);
                   ours.Add(local + local_offset, bytes);
                   return true;
                 });
  const ssize_t copied = call(pid, ours.data(), ours.count(), theirs.data(), theirs.count(), 0);
  if (copied < 0) return -errno;
  // Short where the other process's memory ends.
  if (copied == 0) return -EFAULT;
  return static_cast<int64_t>(begin) + copied;
}

int CopyAll(Call call, pid_t pid, uint64_t remote, const DirectRows& remote_rows, uint64_t local,
            const DirectRows& local_rows, uint64_t begin, uint64_t end) {
  for (uint64_t at = begin; at < end;) {
    const int64_t next = CopySome(call, pid, remote, remote_rows, local, local_rows, at, end);
    if (next < 0) return static_cast<int>(-next);
    at = static_cast<uint64_t>(next);
  }
  return 0;
}

}  // namespace

int ReadProcessMemory(pid_t pid, uint64_t remote, const DirectRows& remote_rows, std::byte* local,
                      const DirectRows& local_rows, uint64_t begin, uint64_t end) {
  return CopyAll(&process_vm_readv, pid, remote, remote_rows, reinterpret_cast<uint64_t>(local),
                 local_rows, begin, end);
}

int WriteProcessMemory(pid_t pid, uint64_t remote, const DirectRows& remote_rows,
                       const std::byte* local, const DirectRows& local_rows, uint64_t begin,
                       uint64_t end) {
  return CopyAll(&process_vm_writev, pid, remote, remote_rows, reinterpret_cast<uint64_t>(local),
                 local_rows, begin, end);
}

}  // namespace sluice
