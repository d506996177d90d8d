// A value with a mutex of its own, for whoever holds the mutex.
#ifndef SLUICE_TESTS_FAKES_LOCKED_H_
#define SLUICE_TESTS_FAKES_LOCKED_H_

#include <mutex>

namespace sluice {

// Holds `value.mutex` for as long as this lives: for a statement, if it has no name.
template <class Value>
class Locked {
 public:
  explicit Locked(Value& value) : lock_(value.mutex), value_(&value) {}

  Value* operator->() const { return value_; }
  Value& operator*() const { return *value_; }

 private:
  std::lock_guard<std::mutex> lock_;
  Value* value_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_FAKES_LOCKED_H_
