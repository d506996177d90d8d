// The CUDA device: the contract of devices, and batches over all kinds of memory against the host's
// loops. Runs over the fake runtime, and where there is a GPU on that.
#include "device/cuda/cuda_device.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "device/cuda_rig.h"
#include "device/device.h"
#include "device/device_contract.h"
#include "device/normalization.h"
#include "device/plain_normalization.h"
#include "device/reduction.h"
#include "device/reference_copy.h"
#include "device/strided_copy.h"
#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice {
namespace {

std::unique_ptr<Device> MakeAny() { return MakeCudaDevice(); }
INSTANTIATE_TEST_SUITE_P(Cuda, DeviceContract, testing::Values(&MakeAny));

DeviceKind AnyKind(std::mt19937_64& random) { return kMemoryKinds[random() % 3]; }

std::vector<std::byte> RandomBytes(size_t bytes, std::mt19937_64& random) {
  std::vector<std::byte> all(bytes);
  for (std::byte& byte : all) byte = static_cast<std::byte>(random());
  return all;
}

// A random copy with its sides in any kinds of memory.
struct PlacedCopy {
  PlacedCopy(Device& device, uint64_t seed, std::mt19937_64& random)
      : random_copy(seed),
        src(device, AnyKind(random), random_copy.src_memory),
        dst(device, AnyKind(random), random_copy.dst_memory) {}

  StridedCopy Copy() {
    StridedCopy copy = random_copy.copy;
    copy.src = src.data() + RandomCopy::kGuardBytes;
    copy.dst = dst.data() + RandomCopy::kGuardBytes;
    copy.src_kind = src.kind();
    copy.dst_kind = dst.kind();
    return copy;
  }

  RandomCopy random_copy;
  KindMemory src;
  KindMemory dst;
};

CudaDeviceOptions SmallBounce() { return {.bounce_bytes = 2048}; }

TEST(CudaDeviceTest, CopiesBetweenAllKindsOfMemory) {
  const std::unique_ptr<CudaDevice> wide = MakeCudaDevice();
  const std::unique_ptr<CudaDevice> narrow = MakeCudaDevice(SmallBounce());
  std::mt19937_64 random(1);
  for (uint64_t round = 0; round < static_cast<uint64_t>(oracle::Sampled(150)); ++round) {
    CudaDevice& device = round % 2 == 0 ? *wide : *narrow;
    std::deque<PlacedCopy> placed;
    size_t batches = 0;
    for (; batches < 1 + round % 4; ++batches) {
      std::vector<StridedCopy> copies;
      for (uint64_t i = 0; i < 3; ++i) {
        copies.push_back(placed.emplace_back(device, random(), random).Copy());
      }
      ASSERT_TRUE(device.Start({copies, batches}).ok());
    }
    ASSERT_TRUE(PollUntil(device, batches).ok());
    for (PlacedCopy& copy : placed) {
      ASSERT_TRUE(copy.dst.Content() == copy.random_copy.Expected())
          << "round " << round << " from kind " << static_cast<int>(copy.src.kind()) << " to "
          << static_cast<int>(copy.dst.kind());
    }
  }
}

constexpr int64_t kElements = 700;

StridedCopy ContiguousCopy(const Stretch& all, KindMemory& src, KindMemory& dst) {
  StridedCopy copy = BytesCopy(all, src, dst);
  copy.src_strides[0] = copy.dst_strides[0] = 4;
  copy.src_dtype = copy.dst_dtype = DType::kF32;
  return copy;
}

Reduction WholeReduction(ReduceOp op, KindMemory& src, KindMemory& dst) {
  return {op, DType::kF32, src.data(), dst.data(), kElements, 3, src.kind(), dst.kind()};
}

// Each step reads what the one before it wrote: a copy, two reductions, a normalization, and in
// later batches copies again. On the host the same, with memory of the host.
struct Chain {
  Chain(Device& device, const std::vector<std::vector<std::byte>>& content,
        const std::array<DeviceKind, 5>& kinds) {
    for (size_t i = 0; i < kinds.size(); ++i) memory.emplace_back(device, kinds[i], content[i]);
  }

  absl::Status Start(Device& device, bool in_stream_order) {
    constexpr Stretch kAll = {0, 0, kElements};
    const std::array<StridedCopy, 1> first = {ContiguousCopy(kAll, memory[0], memory[1])};
    const std::array<Reduction, 3> reductions = {
        WholeReduction(ReduceOp::kSum, memory[1], memory[2]),
        WholeReduction(ReduceOp::kMax, memory[3], memory[2]),
        WholeReduction(ReduceOp::kAvg, memory[2], memory[3])};
    const std::array<Normalization, 1> normalizations = {
        Normalization{DType::kF32, DType::kBF16, 0.3f, 7, memory[3].data(), memory[4].data(),
                      kElements, memory[3].kind(), memory[4].kind()}};
    CopyBatch batch = {first, 1, reductions, normalizations, in_stream_order};
    absl::Status status = device.Start(batch);
    if (!status.ok()) return status;
    const std::array<StridedCopy, 1> second = {ContiguousCopy(kAll, memory[4], memory[0])};
    const std::array<Reduction, 1> last = {WholeReduction(ReduceOp::kMin, memory[0], memory[1])};
    batch = {second, 2, last};
    return device.Start(batch);
  }

  std::deque<KindMemory> memory;
};

TEST(CudaDeviceTest, StepsFollowEachOtherWhereverTheyAreDone) {
  const std::unique_ptr<Device> host = MakeHostDevice();
  const std::unique_ptr<CudaDevice> wide = MakeCudaDevice();
  const std::unique_ptr<CudaDevice> narrow = MakeCudaDevice(SmallBounce());
  std::mt19937_64 random(2);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::vector<std::byte>> content;
    for (int i = 0; i < 5; ++i) content.push_back(RandomBytes(kElements * 4, random));
    Chain expected(
        *host, content,
        {DeviceKind::kCpu, DeviceKind::kCpu, DeviceKind::kCpu, DeviceKind::kCpu, DeviceKind::kCpu});
    ASSERT_TRUE(expected.Start(*host, false).ok());
    ASSERT_TRUE(PollUntil(*host, 2).ok());
    CudaDevice& device = round % 2 == 0 ? *wide : *narrow;
    std::array<DeviceKind, 5> kinds;
    for (DeviceKind& kind : kinds) kind = AnyKind(random);
    Chain chain(device, content, kinds);
    ASSERT_TRUE(chain.Start(device, round % 3 == 0).ok());
    ASSERT_TRUE(PollUntil(device, 2).ok());
    for (size_t i = 0; i < kinds.size(); ++i) {
      ASSERT_TRUE(chain.memory[i].Content() == expected.memory[i].Content())
          << "round " << round << " memory " << i;
    }
  }
}

// Many at once, between memory of all kinds, whose factors nobody keeps.
TEST(CudaDeviceTest, NormalizesPixelsWhereverTheyAre) {
  const std::unique_ptr<CudaDevice> wide = MakeCudaDevice();
  const std::unique_ptr<CudaDevice> narrow = MakeCudaDevice(SmallBounce());
  std::mt19937_64 random(8);
  uint64_t seed = 0;
  for (int round = 0; round < oracle::Sampled(20); ++round) {
    CudaDevice& device = round % 2 == 0 ? *wide : *narrow;
    std::deque<RandomPixels> all;
    std::deque<KindMemory> memory;
    std::vector<Normalization> work;
    const size_t count = round < oracle::Sampled(10) ? 1 : 60;
    for (size_t i = 0; i < count; ++i) {
      RandomPixels& one = all.emplace_back(seed++);
      KindMemory& src = memory.emplace_back(device, AnyKind(random), one.src_memory);
      KindMemory& dst = memory.emplace_back(device, AnyKind(random), one.dst_memory);
      Normalization how = one.how;
      how.src = src.data() + (one.how.src - one.src_memory.data());
      how.dst = dst.data() + one.dst_offset;
      how.src_kind = src.kind();
      how.dst_kind = dst.kind();
      work.push_back(how);
    }
    std::vector<std::vector<std::byte>> expected;
    for (const RandomPixels& one : all) expected.push_back(one.Expected());
    ASSERT_TRUE(device.Start({.cookie = 1, .normalizations = work}).ok());
    for (RandomPixels& one : all) one.factors = {};
    ASSERT_TRUE(PollUntil(device, 1).ok());
    for (size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(memory[2 * i + 1].Content() == expected[i]) << "round " << round << " of " << i;
    }
  }
}

// Runs without any order: more pieces than all tables hold.
TEST(CudaDeviceTest, MoreManyPiecesThanThereIsRoomFor) {
  constexpr int64_t kRuns = 10000;
  const std::unique_ptr<CudaDevice> device = MakeCudaDevice();
  std::mt19937_64 random(3);
  std::vector<Stretch> runs;
  int64_t src = 0;
  for (int64_t i = 0; i < kRuns; ++i) {
    runs.push_back({src, i * 2, 1 + static_cast<int64_t>(random() % 2)});
    src += runs.back().length + static_cast<int64_t>(random() % 5);
  }
  const std::vector<std::byte> content = RandomBytes(static_cast<size_t>(src) + 4, random);
  KindMemory from(*device, DeviceKind::kCuda, content);
  KindMemory to(*device, DeviceKind::kCuda, std::vector<std::byte>(2 * kRuns));
  std::vector<std::byte> expected(2 * kRuns);
  StridedCopy copy;
  copy.runs[0] = runs;
  copy.src_strides[0] = copy.dst_strides[0] = 1;
  for (const Stretch& run : runs) copy.end += run.length;
  copy.src = content.data();
  copy.dst = expected.data();
  CopyStrided(copy);
  const std::array<StridedCopy, 1> copies = {Between(copy, from, to)};
  ASSERT_TRUE(device->Start({copies, 1}).ok());
  runs.clear();  // needed for the call only
  ASSERT_TRUE(PollUntil(*device, 1).ok());
  EXPECT_TRUE(to.Content() == expected);
}

// Stretches and rows that the copy engines take.
TEST(CudaDeviceTest, LongStretchesAndRowsBetweenPinnedAndDeviceMemory) {
  constexpr int64_t kRow = 20000;
  constexpr int64_t kRows = 9;
  const std::unique_ptr<CudaDevice> device = MakeCudaDevice();
  std::mt19937_64 random(4);
  for (const int64_t pitch : {kRow, kRow + 50}) {
    for (const bool to_gpu : {true, false}) {
      const auto bytes = static_cast<size_t>(kRows * pitch);
      const std::vector<std::byte> content = RandomBytes(bytes, random);
      KindMemory src(*device, to_gpu ? DeviceKind::kCudaHost : DeviceKind::kCuda, content);
      KindMemory dst(*device, to_gpu ? DeviceKind::kCuda : DeviceKind::kCudaHost,
                     std::vector<std::byte>(static_cast<size_t>(kRows * kRow)));
      const BoxCopy box(DType::kU8, {kRows, kRow}, {pitch, 1}, {kRow, 1});
      const std::array<StridedCopy, 1> copies = {Between(box.copy, src, dst)};
      ASSERT_TRUE(device->Start({copies, 1}).ok());
      ASSERT_TRUE(PollUntil(*device, 1).ok());
      const std::vector<std::byte> got = dst.Content();
      for (int64_t row = 0; row < kRows; ++row) {
        ASSERT_EQ(std::memcmp(&got[static_cast<size_t>(row * kRow)],
                              &content[static_cast<size_t>(row * pitch)], kRow),
                  0);
      }
    }
  }
}

TEST(CudaDeviceTest, TransposesMatricesOnTheGpu) {
  constexpr int64_t kRows = 150;
  constexpr int64_t kColumns = 97;
  const std::unique_ptr<CudaDevice> device = MakeCudaDevice();
  std::mt19937_64 random(6);
  for (const DType dtype : {DType::kU8, DType::kBF16, DType::kF32, DType::kF64}) {
    const int64_t bytes = DTypeBytes(dtype);
    const std::vector<std::byte> content =
        RandomBytes(static_cast<size_t>(kRows * kColumns * bytes), random);
    KindMemory src(*device, DeviceKind::kCuda, content);
    KindMemory dst(*device, DeviceKind::kCuda, std::vector<std::byte>(content.size()));
    std::vector<std::byte> expected(content.size());
    BoxCopy box(dtype, {kRows, kColumns}, {bytes, kRows * bytes}, {kColumns * bytes, bytes});
    box.copy.src = content.data();
    box.copy.dst = expected.data();
    CopyStrided(box.copy);
    const std::array<StridedCopy, 1> copies = {Between(box.copy, src, dst)};
    ASSERT_TRUE(device->Start({copies, 1}).ok());
    ASSERT_TRUE(PollUntil(*device, 1).ok());
    EXPECT_TRUE(dst.Content() == expected) << DTypeName(dtype);
  }
}

TEST(CudaDeviceTest, FencesJoinACallersStream) {
  const std::unique_ptr<CudaDevice> device = MakeCudaDevice();
  cudaStream_t caller = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&caller, cudaStreamNonBlocking), cudaSuccess);
  constexpr size_t kBytes = size_t{4} << 20;
  KindMemory a(*device, DeviceKind::kCuda, std::vector<std::byte>(kBytes));
  KindMemory b(*device, DeviceKind::kCuda, std::vector<std::byte>(kBytes));
  KindMemory c(*device, DeviceKind::kCudaHost, std::vector<std::byte>(kBytes));
  const std::unique_ptr<Fence> before = *device->MakeFence();
  const std::unique_ptr<Fence> after = *device->MakeFence();
  EXPECT_TRUE(*before->Passed());
  for (int value = 1; value < 20; ++value) {
    // Written and read in the caller's stream; the host waits for nothing in between.
    ASSERT_EQ(cudaMemsetAsync(a.data(), value, kBytes, caller), cudaSuccess);
    ASSERT_TRUE(before->Record({caller}).ok());
    constexpr Stretch kAll = {0, 0, kBytes / 4};
    const std::array<StridedCopy, 1> copies = {ContiguousCopy(kAll, a, b)};
    CopyBatch batch = {copies, 1};
    batch.in_stream_order = true;
    batch.after = before.get();
    batch.then = after.get();
    ASSERT_TRUE(device->Start(batch).ok());
    ASSERT_TRUE(PollUntil(*device, 1).ok());
    ASSERT_TRUE(after->HoldBack({caller}).ok());
    ASSERT_EQ(cudaMemcpyAsync(c.data(), b.data(), kBytes, cudaMemcpyDefault, caller), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(caller), cudaSuccess);
    ASSERT_TRUE(*after->Passed());
    for (size_t i = 0; i < kBytes; i += 4097) ASSERT_EQ(c.data()[i], static_cast<std::byte>(value));
  }
  EXPECT_EQ(cudaStreamDestroy(caller), cudaSuccess);
}

TEST(CudaDeviceTest, SpansAreInOrderAndWithinTheirTime) {
  const CudaDeviceOptions options = {.record_spans = true};
  const std::unique_ptr<CudaDevice> device = MakeCudaDevice(options);
  KindMemory a(*device, DeviceKind::kCuda, std::vector<std::byte>(1 << 20));
  KindMemory b(*device, DeviceKind::kCuda, std::vector<std::byte>(1 << 20));
  constexpr Stretch kAll = {0, 0, 1 << 18};
  const std::array<StridedCopy, 1> copies = {ContiguousCopy(kAll, a, b)};
  for (uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(device->Start({copies, i}).ok());
  ASSERT_TRUE(PollUntil(*device, 10).ok());
  const std::vector<DeviceSpan> spans = device->TakeSpans();
  ASSERT_EQ(spans.size(), 10u);
  for (size_t i = 0; i < spans.size(); ++i) {
    EXPECT_EQ(spans[i].cookie, i);
    EXPECT_LE(spans[i].begin_ns, spans[i].end_ns);
    if (i > 0) {
      EXPECT_LE(spans[i - 1].begin_ns, spans[i].begin_ns);
    }
  }
  EXPECT_TRUE(device->TakeSpans().empty());
}

TEST(CudaDeviceTest, DestructionCompletesWhatHasBeenStarted) {
  std::mt19937_64 random(5);
  const std::vector<std::byte> content = RandomBytes(1 << 16, random);
  const std::unique_ptr<CudaDevice> keeper = MakeCudaDevice();
  KindMemory src(*keeper, DeviceKind::kCuda, content);
  KindMemory dst(*keeper, DeviceKind::kCpu, std::vector<std::byte>(content.size()));
  {
    const std::unique_ptr<CudaDevice> device = MakeCudaDevice(SmallBounce());
    constexpr Stretch kAll = {0, 0, 1 << 14};
    const std::array<StridedCopy, 1> copies = {ContiguousCopy(kAll, src, dst)};
    ASSERT_TRUE(device->Start({copies, 1}).ok());
  }
  EXPECT_TRUE(dst.Content() == content);
}

}  // namespace
}  // namespace sluice
