// operator new and delete that add up.
#include "session/heap_bytes.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> heap_bytes = 0;
std::atomic<int64_t> heap_bytes_peak = 0;
thread_local int64_t allocation_count = 0;

// Beside what can be used of a piece.
constexpr int64_t kHeaderBytes = 16;

void* Count(void* memory) {
  ++allocation_count;
  if (memory == nullptr) return nullptr;
  const int64_t now = heap_bytes += static_cast<int64_t>(malloc_usable_size(memory)) + kHeaderBytes;
  int64_t peak = heap_bytes_peak;
  while (now > peak && !heap_bytes_peak.compare_exchange_weak(peak, now)) {
  }
  return memory;
}

void* Allocate(std::size_t bytes) {
  void* const memory = Count(std::malloc(std::max<std::size_t>(bytes, 1)));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* AllocateAligned(std::size_t bytes, std::align_val_t alignment) {
  void* memory = nullptr;
  if (posix_memalign(&memory, static_cast<std::size_t>(alignment), bytes) != 0) {
    throw std::bad_alloc();
  }
  return Count(memory);
}

void Free(void* memory) {
  if (memory != nullptr) {
    heap_bytes -= static_cast<int64_t>(malloc_usable_size(memory)) + kHeaderBytes;
  }
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) { return Allocate(bytes); }
void* operator new[](std::size_t bytes) { return Allocate(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return AllocateAligned(bytes, alignment);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return AllocateAligned(bytes, alignment);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return Count(std::malloc(std::max<std::size_t>(bytes, 1)));
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return Count(std::malloc(std::max<std::size_t>(bytes, 1)));
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { Free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { Free(memory); }

namespace sluice::session_test {

int64_t AllocationCount() { return allocation_count; }
int64_t HeapBytes() { return heap_bytes; }
int64_t HeapBytesPeak() { return heap_bytes_peak; }
void ResetHeapBytesPeak() { heap_bytes_peak = heap_bytes.load(); }

}  // namespace sluice::session_test
