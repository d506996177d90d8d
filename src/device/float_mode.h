// The floating-point mode that casts, reductions and normalizations promise: to nearest even,
// subnormals kept, no traps. Callers may have another one, as libraries built with -ffast-math set
// it for whole threads.
#ifndef SLUICE_SRC_DEVICE_FLOAT_MODE_H_
#define SLUICE_SRC_DEVICE_FLOAT_MODE_H_

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace sluice {

#if defined(__x86_64__)
// MXCSR without the flags of what has happened.
inline constexpr uint64_t kFloatModeBits = 0xFFC0;
inline constexpr uint64_t kPromisedFloatMode = 0x1F80;  // all exceptions masked
inline uint64_t ReadFloatMode() { return _mm_getcsr(); }
inline void WriteFloatMode(uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
// FPCR: rounding, flushing, default NaNs, and traps.
inline constexpr uint64_t kFloatModeBits = 0x07C89F07;
inline constexpr uint64_t kPromisedFloatMode = 0;
inline uint64_t ReadFloatMode() {
  uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
inline void WriteFloatMode(uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode) : "memory"); }
#else
inline constexpr uint64_t kFloatModeBits = 0;
inline constexpr uint64_t kPromisedFloatMode = 0;
inline uint64_t ReadFloatMode() { return 0; }
inline void WriteFloatMode(uint64_t /*mode*/) {}
#endif

// While there is one, this thread has the promised mode. Reads a register; writes it only where the
// caller's mode is another, and then puts that back.
class PromisedFloatMode {
 public:
  PromisedFloatMode() : callers_(ReadFloatMode()) {
    if (differs()) WriteFloatMode((callers_ & ~kFloatModeBits) | kPromisedFloatMode);
  }
  ~PromisedFloatMode() {
    if (differs()) WriteFloatMode(callers_);
  }
  PromisedFloatMode(const PromisedFloatMode&) = delete;
  PromisedFloatMode& operator=(const PromisedFloatMode&) = delete;

 private:
  bool differs() const { return (callers_ & kFloatModeBits) != kPromisedFloatMode; }

  const uint64_t callers_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_FLOAT_MODE_H_
