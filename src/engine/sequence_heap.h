// A binary heap of submission sequence numbers, smallest first, that never grows.
#ifndef SLUICE_SRC_ENGINE_SEQUENCE_HEAP_H_
#define SLUICE_SRC_ENGINE_SEQUENCE_HEAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tensor/check.h"

namespace sluice {

class SequenceHeap {
 public:
  SequenceHeap() = default;
  explicit SequenceHeap(size_t capacity) : values_(capacity) {}

  bool empty() const { return size_ == 0; }
  uint64_t top() const { return values_[0]; }

  void Push(uint64_t value) {
    SLUICE_CHECK(size_ < values_.size(), "more eligible channels than buckets");
    values_[size_++] = value;
    std::push_heap(values_.begin(), End(), std::greater<>());
  }

  void Pop() {
    std::pop_heap(values_.begin(), End(), std::greater<>());
    --size_;
  }

 private:
  std::vector<uint64_t>::iterator End() {
    return values_.begin() + static_cast<std::ptrdiff_t>(size_);
  }

  std::vector<uint64_t>
      values_;  // sized, not reserved: a copy of a vector forgets what it reserved
  size_t size_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_ENGINE_SEQUENCE_HEAP_H_
