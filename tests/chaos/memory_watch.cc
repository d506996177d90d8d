// Samples /proc/self/status.
#include "chaos/memory_watch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace sluice::chaos {
namespace {

int64_t Kilobytes(const char* text, const char* name) {
  const char* const found = std::strstr(text, name);
  return found == nullptr ? 0 : std::atoll(found + std::strlen(name));
}

}  // namespace

MemoryWatch::Count MemoryWatch::Sample() const {
  // Read before the kernel's count: what is excluded meanwhile is touched later.
  const int64_t excluded = excluded_;
  char text[4096];
  const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t length = read(file, text, sizeof(text) - 1);
  close(file);
  text[std::max<ssize_t>(length, 0)] = '\0';
  const int64_t shared = Kilobytes(text, "RssShmem:") * 1024;
  return {Kilobytes(text, "RssAnon:") * 1024 + shared - excluded, shared};
}

void MemoryWatch::Look() {
  const int64_t before = excluded_;
  const Count now = Sample();
  // Tensors that came or went between the two counts make the sample worthless.
  if (before != excluded_ || now.bytes <= peak_) return;
  peak_ = now.bytes;
  peak_shared_ = now.shared;
}

void MemoryWatch::Start() {
  const Count now = Sample();
  baseline_ = now.bytes;
  baseline_shared_ = now.shared;
  peak_ = baseline_;
  peak_shared_ = baseline_shared_;
  thread_ = std::thread([this] {
    while (!stops_) {
      Look();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
}

void MemoryWatch::Stop() {
  if (!thread_.joinable()) return;
  Look();
  stops_ = true;
  thread_.join();
}

void MemoryWatch::Allow(int64_t bytes) {
  allowed_ += bytes;
  allowed_peak_ = std::max(allowed_peak_, allowed_);
}

TensorPages::TensorPages(MemoryWatch* watch, size_t bytes)
    : watch_(watch), bytes_((std::max<size_t>(bytes, 1) + 4095) / 4096 * 4096) {
  void* const data =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    std::perror("mmap");
    std::abort();
  }
  watch_->Exclude(static_cast<int64_t>(bytes_));
  data_ = static_cast<std::byte*>(data);
  std::memset(data_, 0xA5, bytes_);
}

TensorPages::TensorPages(TensorPages&& other) noexcept
    : watch_(other.watch_), bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}

TensorPages::~TensorPages() {
  if (data_ == nullptr) return;
  munmap(data_, bytes_);
  watch_->Exclude(-static_cast<int64_t>(bytes_));
}

}  // namespace sluice::chaos
