// One thread's work on a small copy: a few lanes share it.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_SMALL_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_SMALL_H_

#include <cstddef>
#include <cstdint>

#include "device/cuda/cuda_elements.h"
#include "device/cuda/cuda_host_device.h"
#include "device/cuda/cuda_pieces.h"

namespace sluice {

// Bytes [begin, end), in accesses of kBytes. All loads of four are under way before the first is
// waited for.
template <int kBytes>
SLUICE_HOST_DEVICE void CopyUnits(const std::byte* src, std::byte* dst, uint32_t begin,
                                  uint32_t end, uint32_t lane) {
  constexpr uint32_t kStep = kSmallLanes * kBytes;
  for (uint32_t at = begin + lane * kBytes; at < end; at += kUnitsPerThread * kStep) {
    Pack<uint8_t, kBytes> loaded[kUnitsPerThread] = {};
    SLUICE_UNROLL
    for (uint32_t i = 0; i < kUnitsPerThread; ++i) {
      const uint32_t place = at + i * kStep;
      if (place < end) LoadBytes<kBytes>(src + place, &loaded[i]);
    }
    SLUICE_UNROLL
    for (uint32_t i = 0; i < kUnitsPerThread; ++i) {
      const uint32_t place = at + i * kStep;
      if (place < end) StoreBytes<kBytes>(&loaded[i], dst + place);
    }
  }
}

// The widest accesses that both sides allow, and single bytes before and after them.
template <int kBytes>
SLUICE_HOST_DEVICE void CopyInUnits(const std::byte* src, std::byte* dst, uint32_t bytes,
                                    uint32_t lane) {
  uint32_t head = static_cast<uint32_t>(-reinterpret_cast<uintptr_t>(dst)) % kBytes;
  if (head > bytes) head = bytes;
  const uint32_t tail = head + (bytes - head) / kBytes * kBytes;
  CopyUnits<1>(src, dst, 0, head, lane);
  CopyUnits<kBytes>(src, dst, head, tail, lane);
  CopyUnits<1>(src, dst, tail, bytes, lane);
}

SLUICE_HOST_DEVICE void CopySmall(const std::byte* src_base, std::byte* dst_base,
                                  const CudaSmallCopy& copy, uint32_t lane) {
  const std::byte* const src = copy.From(src_base);
  std::byte* const dst = copy.To(dst_base);
  const auto apart =
      static_cast<uint32_t>(reinterpret_cast<uintptr_t>(src) ^ reinterpret_cast<uintptr_t>(dst));
  if (apart % 16 == 0) return CopyInUnits<16>(src, dst, copy.bytes, lane);
  if (apart % 8 == 0) return CopyInUnits<8>(src, dst, copy.bytes, lane);
  if (apart % 4 == 0) return CopyInUnits<4>(src, dst, copy.bytes, lane);
  if (apart % 2 == 0) return CopyInUnits<2>(src, dst, copy.bytes, lane);
  CopyUnits<1>(src, dst, 0, copy.bytes, lane);
}

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_SMALL_H_
