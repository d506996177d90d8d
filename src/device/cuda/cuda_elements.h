// Elements in memory and in registers: packs of them that are loaded and stored at once, and the
// types that are computed in.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_ELEMENTS_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_ELEMENTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/cuda/cuda_cast.h"
#include "device/cuda/cuda_host_device.h"

namespace sluice {

inline constexpr int kWidestAccess = 16;  // bytes that one thread loads or stores at once

// Bytes to and from an address that is a multiple of as many: one instruction.
#ifdef __CUDA_ARCH__
template <int kBytes>
struct RawOf;
template <>
struct RawOf<1> {
  using Type = uint8_t;
};
template <>
struct RawOf<2> {
  using Type = uint16_t;
};
template <>
struct RawOf<4> {
  using Type = uint32_t;
};
template <>
struct RawOf<8> {
  using Type = uint2;
};
template <>
struct RawOf<16> {
  using Type = uint4;
};

template <int kBytes>
SLUICE_HOST_DEVICE void LoadBytes(const std::byte* from, void* to) {
  using Raw = typename RawOf<kBytes>::Type;
  const Raw raw = *reinterpret_cast<const Raw*>(from);
  memcpy(to, &raw, kBytes);
}
template <int kBytes>
SLUICE_HOST_DEVICE void StoreBytes(const void* from, std::byte* to) {
  using Raw = typename RawOf<kBytes>::Type;
  Raw raw;
  memcpy(&raw, from, kBytes);
  *reinterpret_cast<Raw*>(to) = raw;
}
#else
#ifdef __CUDACC__
template <int kBytes>
SLUICE_HOST_DEVICE void NoteAccess(const std::byte*) {}
#else
// Accesses of this process to addresses that a GPU would refuse. Hosts forgive them, the kernels'
// fake does not.
inline std::atomic<int64_t> misaligned_accesses = 0;

template <int kBytes>
void NoteAccess(const std::byte* at) {
  if (reinterpret_cast<uintptr_t>(at) % kBytes != 0) ++misaligned_accesses;
}
#endif
template <int kBytes>
SLUICE_HOST_DEVICE void LoadBytes(const std::byte* from, void* to) {
  NoteAccess<kBytes>(from);
  memcpy(to, from, kBytes);
}
template <int kBytes>
SLUICE_HOST_DEVICE void StoreBytes(const void* from, std::byte* to) {
  NoteAccess<kBytes>(to);
  memcpy(to, from, kBytes);
}
#endif

// How many elements of types of these sizes are loaded, and as many stored, at once.
constexpr int FullUnit(size_t bytes, size_t other_bytes) {
  const int fit = kWidestAccess / static_cast<int>(bytes > other_bytes ? bytes : other_bytes);
  return fit > 8 ? 8 : fit;
}

template <typename T, typename Other>
inline constexpr int kFullUnit = FullUnit(sizeof(T), sizeof(Other));

template <typename T, int kCount>
struct Pack {
  T e[kCount];
};

// The address is a multiple of the pack's size; or, of a pack of one that is not `aligned`, any.
template <typename T, int kCount>
SLUICE_HOST_DEVICE Pack<T, kCount> LoadPack(const std::byte* from, bool aligned) {
  constexpr int kBytes = static_cast<int>(sizeof(T)) * kCount;
  Pack<T, kCount> pack;
  if (kCount > 1 || kBytes == 1 || aligned) {
    LoadBytes<kBytes>(from, &pack);
  } else {
    uint8_t bytes[kBytes];
    SLUICE_UNROLL
    for (int i = 0; i < kBytes; ++i) LoadBytes<1>(from + i, bytes + i);
    memcpy(&pack, bytes, kBytes);
  }
  return pack;
}

template <typename T, int kCount>
SLUICE_HOST_DEVICE void StorePack(const Pack<T, kCount>& pack, std::byte* to, bool aligned) {
  constexpr int kBytes = static_cast<int>(sizeof(T)) * kCount;
  if (kCount > 1 || kBytes == 1 || aligned) {
    StoreBytes<kBytes>(&pack, to);
  } else {
    uint8_t bytes[kBytes];
    memcpy(bytes, &pack, kBytes);
    SLUICE_UNROLL
    for (int i = 0; i < kBytes; ++i) StoreBytes<1>(bytes + i, to + i);
  }
}

// Types that processors compute in.
template <typename T>
struct WholeElement {
  using Element = T;
  using Value = T;
  static SLUICE_HOST_DEVICE T From(T element) { return element; }
  static SLUICE_HOST_DEVICE T To(T value) { return value; }
};

// The others are computed in f32.
template <class Format>
struct SmallElement {
  using Element = typename Format::Code;
  using Value = float;
  static SLUICE_HOST_DEVICE float From(Element element) { return Widen<Format>(element); }
  static SLUICE_HOST_DEVICE Element To(float value) { return Narrow<Format>(value); }
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_ELEMENTS_H_
