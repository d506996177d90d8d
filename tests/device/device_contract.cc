// The contract suite of devices; see device_contract.h.
#include "device/device_contract.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/device.h"
#include "device/normalization.h"
#include "device/reduction.h"
#include "device/strided_copy.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice {
namespace {

// A contiguous copy of run.length bytes.
StridedCopy BytesCopy(const Stretch& run, const std::byte* src, std::byte* dst) {
  StridedCopy copy;
  copy.runs[0] = absl::MakeConstSpan(&run, 1);
  copy.src_strides[0] = copy.dst_strides[0] = 1;
  copy.src = src;
  copy.dst = dst;
  copy.end = run.length;
  return copy;
}

// Polls, a few cookies at a time, until `count` batches are complete.
std::vector<uint64_t> PollUntil(Device& device, size_t count) {
  std::vector<uint64_t> all;
  while (all.size() < count) {
    std::array<uint64_t, 7> cookies;
    const absl::StatusOr<int> got = device.Poll(absl::MakeSpan(cookies));
    EXPECT_TRUE(got.ok()) << got.status();
    if (!got.ok()) break;
    all.insert(all.end(), cookies.begin(), cookies.begin() + *got);
  }
  return all;
}

// Memory comes from one of two calls, with the same promises but for the alignment.
struct Allocation {
  const char* name;
  absl::StatusOr<DeviceMemory> (Device::*allocate)(size_t bytes);
  size_t alignment;
  DeviceKind DeviceTraits::*kind;
};
constexpr Allocation kAllocations[] = {
    {"staging", &Device::AllocateStaging, 4096, &DeviceTraits::staging},
    {"buffer", &Device::AllocateBuffer, 64, &DeviceTraits::buffers}};

TEST_P(DeviceContract, MemoryIsAlignedAndWritable) {
  for (const Allocation& allocation : kAllocations) {
    for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{5000}, (size_t{5} << 20) + 1}) {
      auto memory = ((*device_).*allocation.allocate)(bytes).value();
      EXPECT_EQ(memory.bytes(), bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % allocation.alignment, 0u);
      const std::vector<std::byte> src(bytes, std::byte{7});
      std::vector<std::byte> back(bytes);
      const Stretch run = {0, 0, static_cast<int64_t>(bytes)};
      std::array<StridedCopy, 1> in = {BytesCopy(run, src.data(), memory.data())};
      in[0].dst_kind = device_->traits().*allocation.kind;
      ASSERT_TRUE(device_->Start({in, 1}).ok());
      EXPECT_EQ(PollUntil(*device_, 1), std::vector<uint64_t>{1});
      std::array<StridedCopy, 1> out = {BytesCopy(run, memory.data(), back.data())};
      out[0].src_kind = device_->traits().*allocation.kind;
      ASSERT_TRUE(device_->Start({out, 2}).ok());
      EXPECT_EQ(PollUntil(*device_, 1), std::vector<uint64_t>{2});
      EXPECT_EQ(back, src) << allocation.name;
    }
  }
}

TEST_P(DeviceContract, MovedMemoryStaysWhereItIs) {
  for (const Allocation& allocation : kAllocations) {
    auto memory = ((*device_).*allocation.allocate)(4096).value();
    std::byte* const data = memory.data();
    DeviceMemory moved = std::move(memory);
    EXPECT_EQ(moved.data(), data) << allocation.name;
    moved = DeviceMemory();
    EXPECT_EQ(moved.data(), nullptr);
  }
}

TEST_P(DeviceContract, NoBytesAreNoMemory) {
  for (const Allocation& allocation : kAllocations) {
    auto memory = ((*device_).*allocation.allocate)(0).value();
    EXPECT_EQ(memory.data(), nullptr) << allocation.name;
    EXPECT_EQ(memory.bytes(), 0u);
  }
}

TEST_P(DeviceContract, MemoryThatCannotBeHadIsNamedWithItsBytes) {
  for (const Allocation& allocation : kAllocations) {
    for (const size_t bytes : {size_t{1} << 60, std::numeric_limits<size_t>::max()}) {
      const absl::StatusOr<DeviceMemory> memory = ((*device_).*allocation.allocate)(bytes);
      EXPECT_THAT(memory.status(), Fails(absl::StatusCode::kResourceExhausted,
                                         testing::AllOf(testing::HasSubstr(std::to_string(bytes)),
                                                        testing::HasSubstr(allocation.name))));
    }
  }
}

TEST_P(DeviceContract, EveryBatchCompletesOnceWithAllItsCopies) {
  constexpr size_t kBatches = 200;
  constexpr size_t kBytes = 96;
  std::vector<std::byte> src(kBatches * kBytes);
  std::vector<std::byte> dst(src.size());
  for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<std::byte>(i % 251);
  constexpr Stretch kRun = {0, 0, kBytes / 2};
  std::vector<uint64_t> cookies;
  size_t outstanding = 0;
  for (size_t batch = 0; batch < kBatches; ++batch) {
    const size_t at = batch * kBytes;
    const std::array<StridedCopy, 2> halves = {
        BytesCopy(kRun, &src[at], &dst[at]),
        BytesCopy(kRun, &src[at + kBytes / 2], &dst[at + kBytes / 2])};
    ASSERT_TRUE(device_->Start({halves, batch}).ok());
    if (++outstanding == 40 || batch + 1 == kBatches) {
      const std::vector<uint64_t> done = PollUntil(*device_, outstanding);
      cookies.insert(cookies.end(), done.begin(), done.end());
      outstanding = 0;
    }
  }
  EXPECT_EQ(dst, src);
  std::sort(cookies.begin(), cookies.end());
  ASSERT_EQ(cookies.size(), kBatches);
  for (size_t i = 0; i < kBatches; ++i) EXPECT_EQ(cookies[i], i);
  std::array<uint64_t, 4> more;
  EXPECT_EQ(device_->Poll(absl::MakeSpan(more)).value(), 0);
}

// Both reductions read what the copy wrote, one after the other.
TEST_P(DeviceContract, ReductionsFollowTheCopiesInOrder) {
  const std::array<uint8_t, 3> src = {10, 20, 30};
  std::array<uint8_t, 3> dst = {1, 1, 1};
  constexpr Stretch kRun = {0, 0, 3};
  const auto* from = reinterpret_cast<const std::byte*>(src.data());
  auto* to = reinterpret_cast<std::byte*>(dst.data());
  const std::array<StridedCopy, 1> copy = {BytesCopy(kRun, from, to)};
  const std::array<Reduction, 2> reductions = {
      Reduction{ReduceOp::kProduct, DType::kU8, from, to, 3, 1},
      Reduction{ReduceOp::kAvg, DType::kU8, from, to, 3, 10}};
  ASSERT_TRUE(device_->Start({copy, 5, reductions}).ok());
  EXPECT_EQ(PollUntil(*device_, 1), std::vector<uint64_t>{5});
  EXPECT_EQ(dst, (std::array<uint8_t, 3>{11, 16, 16}));  // (v * v + v) mod 256, by 10
}

// What is normalized is what the copy wrote and the reduction added to.
TEST_P(DeviceContract, NormalizationsFollowTheReductions) {
  const std::array<uint8_t, 3> src = {10, 20, 30};
  std::array<uint8_t, 3> between = {};
  std::array<float, 3> dst = {};
  std::array<float, 2> reversed = {};
  constexpr Stretch kRun = {0, 0, 3};
  const auto* from = reinterpret_cast<const std::byte*>(src.data());
  auto* middle = reinterpret_cast<std::byte*>(between.data());
  const std::array<StridedCopy, 1> copy = {BytesCopy(kRun, from, middle)};
  const std::array<Reduction, 1> sum = {Reduction{ReduceOp::kSum, DType::kU8, from, middle, 3, 1}};
  const std::array<Normalization, 2> normalizations = {
      Normalization{DType::kU8, DType::kF32, 0.5f, -1, middle,
                    reinterpret_cast<std::byte*>(dst.data()), 3},
      Normalization{DType::kU8, DType::kF32, -1, 0, middle + 1,
                    reinterpret_cast<std::byte*>(reversed.data()), 2}};
  ASSERT_TRUE(device_->Start({copy, 9, sum, normalizations}).ok());
  EXPECT_EQ(PollUntil(*device_, 1), std::vector<uint64_t>{9});
  EXPECT_EQ(dst, (std::array<float, 3>{9, 19, 29}));
  EXPECT_EQ(reversed, (std::array<float, 2>{-40, -60}));
}

TEST_P(DeviceContract, OneBatchTooManyIsRefusedAndDoesNothing) {
  for (int i = 0; i < Device::kMaxOutstanding; ++i) {
    ASSERT_TRUE(device_->Start({{}, static_cast<uint64_t>(i)}).ok());
  }
  const std::byte src{9};
  std::byte dst{0};
  std::array<std::byte, 2> wide = {};
  constexpr Stretch kRun = {0, 0, 1};
  const std::array<StridedCopy, 1> one = {BytesCopy(kRun, &src, &dst)};
  const std::array<Reduction, 1> sum = {Reduction{ReduceOp::kSum, DType::kU8, &src, &dst, 1, 1}};
  const std::array<Normalization, 1> more = {
      Normalization{DType::kU8, DType::kF16, 1, 1, &src, wide.data(), 1}};
  EXPECT_EQ(device_->Start({one, 1000, sum, more}).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(wide, (std::array<std::byte, 2>{}));
  EXPECT_EQ(dst, std::byte{0});
  EXPECT_EQ(PollUntil(*device_, Device::kMaxOutstanding).size(), size_t{Device::kMaxOutstanding});
  EXPECT_TRUE(device_->Start({one, 1000}).ok());
  EXPECT_EQ(PollUntil(*device_, 1), std::vector<uint64_t>{1000});
  EXPECT_EQ(dst, src);
}

}  // namespace
}  // namespace sluice
