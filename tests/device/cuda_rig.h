// What tests of the CUDA device need, over the fake runtime or a GPU: devices, memory of any kind,
// and waiting for batches.
#ifndef SLUICE_TESTS_DEVICE_CUDA_RIG_H_
#define SLUICE_TESTS_DEVICE_CUDA_RIG_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/cuda/cuda_device.h"
#include "device/device.h"
#include "device/strided_copy.h"
#include "gtest/gtest.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice {

inline constexpr std::array<DeviceKind, 3> kMemoryKinds = {DeviceKind::kCpu, DeviceKind::kCudaHost,
                                                           DeviceKind::kCuda};

inline std::unique_ptr<CudaDevice> MakeCudaDevice(const CudaDeviceOptions& options = {}) {
  return CudaDevice::Create(options).value();
}

// Memory of one kind, from a device's calls or the host's own, that can be read and written as a
// vector.
class KindMemory {
 public:
  KindMemory(Device& device, DeviceKind kind, std::vector<std::byte> content)
      : kind_(kind), bytes_(content.size()), own_(std::move(content)) {
    if (kind == DeviceKind::kCpu || bytes_ == 0) return;
    memory_ =
        (kind == DeviceKind::kCuda ? device.AllocateBuffer(bytes_) : device.AllocateStaging(bytes_))
            .value();
    EXPECT_EQ(cudaMemcpy(memory_.data(), own_.data(), bytes_, cudaMemcpyDefault), cudaSuccess);
  }

  DeviceKind kind() const { return kind_; }
  std::byte* data() { return memory_.data() != nullptr ? memory_.data() : own_.data(); }

  std::vector<std::byte> Content() const {
    if (memory_.data() == nullptr) return own_;
    std::vector<std::byte> content(bytes_);
    EXPECT_EQ(cudaMemcpy(content.data(), memory_.data(), bytes_, cudaMemcpyDefault), cudaSuccess);
    return content;
  }

 private:
  DeviceKind kind_;
  size_t bytes_;
  std::vector<std::byte> own_;
  DeviceMemory memory_;
};

// Polls until `count` more batches are complete, or the device has failed.
inline absl::Status PollUntil(Device& device, size_t count,
                              std::vector<uint64_t>* cookies = nullptr) {
  for (size_t done = 0; done < count;) {
    std::array<uint64_t, 5> some;
    const absl::StatusOr<int> got = device.Poll(absl::MakeSpan(some));
    if (!got.ok()) return got.status();
    done += static_cast<size_t>(*got);
    if (cookies != nullptr) cookies->insert(cookies->end(), some.begin(), some.begin() + *got);
    if (*got == 0) std::this_thread::yield();
  }
  return absl::OkStatus();
}

// The copy, with this memory.
inline StridedCopy Between(StridedCopy copy, KindMemory& src, KindMemory& dst) {
  copy.src = src.data();
  copy.dst = dst.data();
  copy.src_kind = src.kind();
  copy.dst_kind = dst.kind();
  return copy;
}

// The run `all` of bytes from `src` to `dst`, which refers to it.
inline StridedCopy BytesCopy(const Stretch& all, KindMemory& src, KindMemory& dst) {
  StridedCopy copy;
  copy.runs[0] = absl::MakeConstSpan(&all, 1);
  copy.src_strides[0] = copy.dst_strides[0] = 1;
  copy.end = all.length;
  return Between(copy, src, dst);
}

}  // namespace sluice

#endif  // SLUICE_TESTS_DEVICE_CUDA_RIG_H_
