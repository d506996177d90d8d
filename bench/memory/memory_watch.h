// By how much this process's resident memory grows while something runs.
#ifndef SLUICE_BENCH_MEMORY_MEMORY_WATCH_H_
#define SLUICE_BENCH_MEMORY_MEMORY_WATCH_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

#include "absl/strings/string_view.h"
#include "memory/resident_memory.h"

namespace sluice::bench {

// What a run may take beside the staging that its budget allows: connections and message queues of
// MPI or HTTP, and what the library itself keeps of a run.
inline constexpr int64_t kMemoryBesideStaging = 8 << 20;

// What counts is anonymous memory. Mapped files are the page cache's; memory that processes share
// has a fixed size from the start (tensors, MPI's segments), and each process counts it once more.
//
// Watches stretches of time, from Begin to End. Where one stretch ends with more than it began
// with, the next one starts that much higher; what happens between stretches does not count.
//
// Thread: one. At most one watch of a process is in a stretch at a time.
class MemoryWatch {
 public:
  enum class Method : uint8_t {
    // The kernel's own peak of resident pages, less what is mapped of files and shared memory at
    // the
    // end. Misses nothing, but for as much as this process maps of these in the stretch itself.
    kPeak,
    kSampled,  // what a thread sees once in a millisecond
    kNone      // the kernel does not say
  };

  // `maps_files`: much of files is mapped in the stretches, so that memory is better sampled.
  explicit MemoryWatch(bool maps_files = false);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  Method method() const { return method_; }

  void Begin();
  // Around a change of memory that is the user's, and does not count: Pause before it, Resume after
  // it. `users_bytes`: resident now, and not yet when the stretch began.
  void Pause();
  void Resume(int64_t users_bytes);
  void End();

  // The most that a stretch has had above its start, in bytes; 0 before the first one.
  int64_t growth() const { return growth_; }

 private:
  // Takes note of the most since the last call or reset.
  void Note();
  void Sample();

  Method method_ = Method::kNone;
  ResidentMemory begin_;
  int64_t users_ = 0;
  int64_t kept_ = 0;  // of the stretches before
  int64_t growth_ = 0;

  // Of kSampled.
  std::mutex mutex_;
  bool watching_ = false;
  std::atomic<bool> stop_{false};
  std::thread sampler_;
};

// "peak", "sampled", "none": a word of results files.
absl::string_view MethodName(MemoryWatch::Method method);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_MEMORY_MEMORY_WATCH_H_
