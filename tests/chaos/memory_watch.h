// What a process's memory grows by beyond its tensors, as the kernel counts it.
#ifndef SLUICE_TESTS_CHAOS_MEMORY_WATCH_H_
#define SLUICE_TESTS_CHAOS_MEMORY_WATCH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace sluice::chaos {

// Samples the resident memory of this process that no file backs. Tensors are left out of it; what
// budgets allow is told to it. Any thread.
class MemoryWatch {
 public:
  // Beyond budgets: plans, queues, and what MPI or UCX keeps per peer.
  static constexpr int64_t kConstantBytes = int64_t{16} << 20;

  MemoryWatch() = default;
  ~MemoryWatch() { Stop(); }
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  // Growth counts from here on.
  void Start();
  void Stop();

  // A budget that is in force from now on, or is no longer (negative).
  void Allow(int64_t bytes);
  // Tensors' memory: told before it is touched, and after it is gone (negative).
  void Exclude(int64_t bytes) { excluded_ += bytes; }

  int64_t growth_bytes() const { return peak_ - baseline_; }
  // Of that, in pages that processes share.
  int64_t shared_growth_bytes() const { return peak_shared_ - baseline_shared_; }
  int64_t allowed_bytes() const { return kConstantBytes + allowed_peak_; }

 private:
  struct Count {
    int64_t bytes = 0;
    int64_t shared = 0;  // of these
  };
  Count Sample() const;
  void Look();

  std::atomic<int64_t> excluded_ = 0;
  std::atomic<int64_t> peak_ = 0;
  std::atomic<int64_t> peak_shared_ = 0;  // at the peak
  std::atomic<bool> stops_ = false;
  int64_t baseline_ = 0;
  int64_t baseline_shared_ = 0;
  int64_t allowed_ = 0;
  int64_t allowed_peak_ = 0;
  std::thread thread_;
};

// Memory of a tensor: whole pages of its own, all of them touched.
class TensorPages {
 public:
  TensorPages(MemoryWatch* watch, size_t bytes);
  ~TensorPages();
  TensorPages(TensorPages&& other) noexcept;
  TensorPages& operator=(TensorPages&&) = delete;
  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  MemoryWatch* watch_;
  size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace sluice::chaos

#endif  // SLUICE_TESTS_CHAOS_MEMORY_WATCH_H_
