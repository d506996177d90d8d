// A host device with helpers: the contract of devices, large copies bit by bit, and its threads.
#include "session/base/team_device.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "device/device.h"
#include "device/device_contract.h"
#include "device/strided_copy.h"
#include "gmock/gmock.h"
#include "sluice/tensor.h"
#include "storage/file/bus_guard.h"
#include "tensor/stretch.h"

namespace sluice {
namespace {

std::unique_ptr<Device> MakeTeamOfFour() { return MakeTeamDevice(3); }
INSTANTIATE_TEST_SUITE_P(Team, DeviceContract, testing::Values(&MakeTeamOfFour));

// Helpers that the system knows of.
int CountHelpers() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string name;
    count += std::getline(file, name) && name == "sluice-copy" ? 1 : 0;
  }
  return count;
}

// A thread that has been joined may be seen for a moment longer.
int CountHelpersInTheEnd() {
  for (int i = 0; i < 1000 && CountHelpers() > 0; ++i) absl::SleepFor(absl::Milliseconds(10));
  return CountHelpers();
}

// A copy of a matrix, from packed rows to rows that lie `apart` elements apart.
struct Matrix {
  Matrix(int64_t rows, int64_t columns, int64_t apart, uint32_t seed)
      : src(static_cast<size_t>(rows * columns)), dst(static_cast<size_t>(rows * apart), 7) {
    for (uint32_t& value : src) value = seed = seed * 1664525 + 1013904223;
    runs[0] = {0, 0, rows};
    runs[1] = {0, 0, columns};
    copy.dims = 2;
    copy.runs[0] = absl::MakeConstSpan(&runs[0], 1);
    copy.runs[1] = absl::MakeConstSpan(&runs[1], 1);
    copy.src_strides = {columns * 4, 4};
    copy.dst_strides = {apart * 4, 4};
    copy.src = reinterpret_cast<const std::byte*>(src.data());
    copy.dst = reinterpret_cast<std::byte*>(dst.data());
    copy.src_dtype = copy.dst_dtype = DType::kI32;
    copy.end = rows * columns;
  }
  std::vector<uint32_t> src;
  std::vector<uint32_t> dst;
  Stretch runs[2];
  StridedCopy copy;
};

// Carries out `copies` as one batch.
void Carry(Device* device, const std::vector<StridedCopy>& copies) {
  ASSERT_TRUE(device->Start({.copies = copies, .cookie = 17}).ok());
  uint64_t cookie = 0;
  const auto ended = device->Poll(absl::MakeSpan(&cookie, 1)).value();
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(cookie, 17U);
}

TEST(TeamDeviceTest, WritesWhatOneThreadWrites) {
  const std::unique_ptr<Device> device = MakeTeamDevice(3);
  // Rows that end within parts, parts that end within rows, one row, and small ones beside them.
  const int64_t shapes[][3] = {{1021, 1023, 1031}, {3, 700001, 700003}, {1, 1 << 20, 1 << 20},
                               {400000, 3, 5},     {7, 11, 13},         {1, 1, 1}};
  for (uint32_t round = 0; round < 3; ++round) {
    std::vector<Matrix> matrices, expected;
    matrices.reserve(std::size(shapes));
    expected.reserve(std::size(shapes));
    for (const auto& [rows, columns, apart] : shapes) {
      matrices.emplace_back(rows, columns, apart, round + 1);
      expected.emplace_back(rows, columns, apart, round + 1);
    }
    std::vector<StridedCopy> copies;
    for (size_t i = 0; i < matrices.size(); ++i) {
      // Not from the first element to the last one.
      StridedCopy copy = matrices[i].copy;
      copy.begin = std::min<int64_t>(round, copy.end - 1);
      copy.end -= std::min<int64_t>(round, copy.end - 1 - copy.begin);
      copies.push_back(copy);
      copy.dst = expected[i].copy.dst;
      CopyStrided(copy);
    }
    Carry(device.get(), copies);
    for (size_t i = 0; i < matrices.size(); ++i) {
      EXPECT_EQ(matrices[i].dst, expected[i].dst) << "round " << round << ", matrix " << i;
    }
  }
}

TEST(TeamDeviceTest, CastsInParts) {
  const std::unique_ptr<Device> device = MakeTeamDevice(2);
  const auto count = int64_t{1} << 20;
  std::vector<float> src(static_cast<size_t>(count));
  std::vector<uint16_t> dst(src.size()), expected(src.size());
  for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<float>(i) * 1.001F;
  const Stretch run = {0, 0, count};
  StridedCopy copy;
  copy.runs[0] = absl::MakeConstSpan(&run, 1);
  copy.src_strides[0] = 4;
  copy.dst_strides[0] = 2;
  copy.src = reinterpret_cast<const std::byte*>(src.data());
  copy.src_dtype = DType::kF32;
  copy.dst_dtype = DType::kBF16;
  copy.end = count;
  copy.dst = reinterpret_cast<std::byte*>(expected.data());
  CopyStrided(copy);
  copy.dst = reinterpret_cast<std::byte*>(dst.data());
  Carry(device.get(), {copy});
  EXPECT_EQ(dst, expected);
}

// One batch reads what the one before it has written.
TEST(TeamDeviceTest, HasDoneABatchWhenStartReturns) {
  const std::unique_ptr<Device> device = MakeTeamDevice(3);
  Matrix first(1024, 1024, 1024, 1);
  for (int i = 0; i < 200; ++i) {
    std::fill(first.dst.begin(), first.dst.end(), 0);
    Carry(device.get(), {first.copy});
    ASSERT_EQ(std::memcmp(first.dst.data(), first.src.data(), first.src.size() * 4), 0) << i;
  }
}

TEST(TeamDeviceTest, HasThreadsFromTheFirstLargeBatchToItsEnd) {
  std::unique_ptr<Device> device = MakeTeamDevice(3);
  Matrix small(10, 10, 10, 1);
  Carry(device.get(), {small.copy});
  EXPECT_EQ(CountHelpersInTheEnd(), 0);
  Matrix large(1024, 1024, 1024, 1);
  for (int i = 0; i < 3; ++i) {
    Carry(device.get(), {large.copy});
    EXPECT_EQ(CountHelpers(), 3);
  }
  device.reset();
  EXPECT_EQ(CountHelpersInTheEnd(), 0);
}

TEST(TeamDeviceTest, RefusesABatchThatItHasNoRoomForWithoutCopying) {
  const std::unique_ptr<Device> device = MakeTeamDevice(3);
  for (int i = 0; i < Device::kMaxOutstanding; ++i) ASSERT_TRUE(device->Start({}).ok());
  Matrix large(1024, 1024, 1024, 1);
  const std::vector<uint32_t> before = large.dst;
  const CopyBatch batch = {.copies = absl::MakeConstSpan(&large.copy, 1)};
  EXPECT_EQ(device->Start(batch).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(large.dst, before);
}

// As where a checkpoint is copied from a mapping that the source has lent.
TEST(TeamDeviceTest, HelpersOutlivePagesOfAFileThatAreGone) {
  FILE* const file = tmpfile();
  ASSERT_NE(file, nullptr);
  constexpr int64_t kBytes = int64_t{32} << 20;
  ASSERT_EQ(ftruncate(fileno(file), kBytes), 0);
  void* const mapping = mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, fileno(file), 0);
  ASSERT_NE(mapping, MAP_FAILED);
  {
    const auto* const data = static_cast<const std::byte*>(mapping);
    const std::unique_ptr<BusGuard> guard = BusGuard::Watch(data, kBytes);
    ASSERT_NE(guard, nullptr);
    ASSERT_EQ(ftruncate(fileno(file), 0), 0);
    Matrix matrix(kBytes / 4 / 1024, 1024, 1024, 1);
    matrix.copy.src = data;
    const std::unique_ptr<Device> device = MakeTeamDevice(3);
    Carry(device.get(), {matrix.copy});
    EXPECT_TRUE(guard->tripped());
    EXPECT_EQ(std::count(matrix.dst.begin(), matrix.dst.end(), 0U), kBytes / 4);
  }
  munmap(mapping, kBytes);
  fclose(file);
}

TEST(HelpersOfTest, LeavesEachRankItsCpus) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  const int cpus = CPU_COUNT(&before);
  EXPECT_EQ(HelpersOf(1), std::min(cpus - 1, kHelpersMax));
  EXPECT_EQ(HelpersOf(cpus), 0);
  EXPECT_EQ(HelpersOf(int64_t{1} << 40), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(HelpersOf(1), 0);
  EXPECT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

}  // namespace
}  // namespace sluice
