// A first-in first-out queue that allocates only when it holds more than it ever held. std::deque
// allocates as its content moves along.
#ifndef SLUICE_SRC_STORAGE_GROWING_RING_H_
#define SLUICE_SRC_STORAGE_GROWING_RING_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "tensor/check.h"

namespace sluice {

// T must be default-constructible and movable. Thread: one.
template <typename T>
class GrowingRing {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // The element that `at` others are before.
  T& operator[](size_t at) { return places_[(first_ + at) % places_.size()]; }

  void Push(T element) {
    if (size_ == places_.size()) Grow();
    places_[(first_ + size_) % places_.size()] = std::move(element);
    ++size_;
  }

  T Pop() {
    SLUICE_CHECK(size_ > 0, "a ring has nothing to give");
    T element = std::exchange(places_[first_], T());
    first_ = (first_ + 1) % places_.size();
    --size_;
    return element;
  }

  // Takes one out of the middle. Cost: those behind it.
  void Erase(size_t at) {
    for (size_t i = at; i + 1 < size_; ++i) (*this)[i] = std::move((*this)[i + 1]);
    (*this)[size_ - 1] = T();
    --size_;
  }

  void Clear() {
    while (!empty()) Pop();
  }

 private:
  void Grow() {
    std::vector<T> larger(places_.empty() ? 16 : places_.size() * 2);
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    places_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> places_;
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_GROWING_RING_H_
