// Mapped files whose pages may go: reading one that is gone gives zeros, not the program's end.
//
// A page of a mapping raises SIGBUS where its file no longer has it, or cannot be read. A lender of
// a mapping cannot ask for a check before each access. So there is a handler. For an address in a
// range that is watched it puts a page of zeros there, and takes note. It passes any other SIGBUS
// on to the handler that was there before it. A program that sets a handler of its own later has it
// alone: then nothing more is watched.
#ifndef SLUICE_SRC_STORAGE_FILE_BUS_GUARD_H_
#define SLUICE_SRC_STORAGE_FILE_BUS_GUARD_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace sluice {

struct GuardedRange;

// Watches a mapping from Watch until it is destroyed. Thread: any, one at a time.
class BusGuard {
 public:
  // `data` is where a private or shared mapping of a file begins. Null if SIGBUS is not ours.
  static std::unique_ptr<BusGuard> Watch(const std::byte* data, int64_t bytes);
  // To be called before the mapping goes.
  ~BusGuard();
  BusGuard(const BusGuard&) = delete;
  BusGuard& operator=(const BusGuard&) = delete;

  // A page has been replaced by zeros. Any thread.
  bool tripped() const;

 private:
  explicit BusGuard(GuardedRange* range) : range_(range) {}

  GuardedRange* const range_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_BUS_GUARD_H_
