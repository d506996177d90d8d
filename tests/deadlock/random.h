// Random numbers that are the same on every machine, for random jobs and random orders of events.
#ifndef SLUICE_TESTS_DEADLOCK_RANDOM_H_
#define SLUICE_TESTS_DEADLOCK_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace sluice::deadlock {

// SplitMix64: cheap to seed, and any two seeds give unrelated numbers. The standard library's
// distributions differ between implementations, so there are a few here.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // The numbers of run `index` of `seed`.
  Random(uint64_t seed, uint64_t index) : state_(Random(seed).Next() + index * kStep) {
    state_ = Next();
  }

  uint64_t Next() {
    state_ += kStep;
    uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
    return mixed ^ (mixed >> 31);
  }

  size_t Below(size_t count) { return static_cast<size_t>(Next() % count); }
  // Both ends included.
  int Between(int low, int high) {
    return low + static_cast<int>(Below(static_cast<size_t>(high - low) + 1));
  }
  bool OneIn(int count) { return Between(1, count) == 1; }

  template <class T>
  void Shuffle(std::vector<T>* items) {
    for (size_t i = items->size(); i > 1; --i) std::swap((*items)[i - 1], (*items)[Below(i)]);
  }
  // 0 .. count-1 in random order.
  std::vector<int> Permutation(int count) {
    std::vector<int> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    Shuffle(&order);
    return order;
  }

 private:
  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15U;
  uint64_t state_;
};

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_DEADLOCK_RANDOM_H_
