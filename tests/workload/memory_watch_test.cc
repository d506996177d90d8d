// What a watch sees of memory that comes and goes, and what it leaves out.
#include "memory/memory_watch.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "main/own_folder.h"
#include "memory/mapped_memory.h"
#include "memory/resident_memory.h"
#include "oracle/sampled.h"

namespace sluice::bench {
namespace {

using Method = MemoryWatch::Method;

constexpr int64_t kBytes = 64 << 20;
// The kernel counts pages on each CPU, and adds up what is left there only now and then.
constexpr int64_t kUncounted = 1 << 20;
constexpr int kTries = 100;
// What the process itself, and a sanitizer, may take meanwhile.
constexpr int64_t kNoise = oracle::kSanitized ? 24 << 20 : 8 << 20;

MappedMemory Touched(int64_t bytes) {
  MappedMemory memory = MapMemory(static_cast<size_t>(bytes));
  std::memset(memory.get(), 1, static_cast<size_t>(bytes));
  return memory;
}

// With both ways of watching, as far as there are any here.
class MemoryWatchTest : public testing::TestWithParam<Method> {
 protected:
  MemoryWatchTest() : watch_(GetParam() == Method::kSampled) {}
  void SetUp() override {
    if (watch_.method() != GetParam()) GTEST_SKIP() << "the kernel does not allow it";
  }
  // So that a sample falls into it, unless the machine is busy: for that there are tries.
  static void Stay() {
    if (GetParam() == Method::kSampled) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  MemoryWatch watch_;
};

INSTANTIATE_TEST_SUITE_P(All, MemoryWatchTest, testing::Values(Method::kPeak, Method::kSampled),
                         [](const auto& entry) { return std::string(MethodName(entry.param)); });

TEST_P(MemoryWatchTest, SeesWhatCameAndWent) {
  for (int tries = 0; tries < kTries && watch_.growth() < kBytes - kUncounted; ++tries) {
    watch_.Begin();
    {
      const MappedMemory memory = Touched(kBytes);
      Stay();
    }
    watch_.End();
  }
  EXPECT_GE(watch_.growth(), kBytes - kUncounted);
  EXPECT_LT(watch_.growth(), kBytes + kNoise);
}

TEST_P(MemoryWatchTest, DoesNotSeeWhatWasThereOrCameBetweenStretches) {
  const MappedMemory before = Touched(kBytes);
  watch_.Begin();
  watch_.End();
  {
    const MappedMemory between = Touched(kBytes);
    Stay();
  }
  watch_.Begin();
  std::memset(before.get(), 2, kBytes);
  Stay();
  watch_.End();
  EXPECT_LT(watch_.growth(), kNoise);
}

TEST_P(MemoryWatchTest, LeavesOutTheUsersOwn) {
  for (int tries = 0; tries < kTries && watch_.growth() < kBytes / 2 - kUncounted; ++tries) {
    watch_.Begin();
    watch_.Pause();
    MappedMemory users = Touched(kBytes);
    watch_.Resume(kBytes);
    Stay();
    {
      const MappedMemory engines = Touched(kBytes / 2);
      Stay();
    }
    watch_.Pause();
    users.reset();
    watch_.Resume(0);
    Stay();
    watch_.End();
  }
  EXPECT_GE(watch_.growth(), kBytes / 2 - kUncounted);
  EXPECT_LT(watch_.growth(), kBytes / 2 + kNoise);
}

TEST_P(MemoryWatchTest, AddsUpWhatStretchesKeep) {
  MappedMemory kept[4];
  for (MappedMemory& memory : kept) {
    watch_.Begin();
    memory = Touched(kBytes / 4);
    Stay();
    watch_.End();
  }
  EXPECT_GE(watch_.growth(), kBytes - kUncounted);
  EXPECT_LT(watch_.growth(), kBytes + kNoise);
}

TEST(MemoryWatch, MappedFilesDoNotCountWhereTheyAreNotTo) {
  const std::string path = InOwnFolder("mapped_file");
  std::ofstream(path) << std::string(kBytes, 'x');
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  ASSERT_NE(file, nullptr);
  MemoryWatch watch(true);
  if (watch.method() == Method::kNone) GTEST_SKIP() << "the kernel does not say";
  watch.Begin();
  void* const data = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fileno(file), 0);
  ASSERT_NE(data, MAP_FAILED);
  // For samples. Without any, the test sees less, but does not fail.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  watch.End();
  munmap(data, kBytes);
  std::fclose(file);
  std::remove(path.c_str());
  EXPECT_LT(watch.growth(), kNoise);
}

// As a session shares memory: the same pages in another mapping.
TEST(TouchSharedTensors, LaterAccessesAreNoGrowth) {
  const int fd = memfd_create("sluice", 0);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, kBytes), 0);
  const auto map = [&] {
    void* const data = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT_NE(data, MAP_FAILED);
    return data;
  };
  void* const owners = map();
  std::memset(owners, 1, kBytes);
  void* const peers = map();
  const auto shared = [] { return ReadResidentMemory().value_or(ResidentMemory()).shared; };
  const int64_t before = shared();
  if (before == 0) GTEST_SKIP() << "the kernel does not say";
  TouchSharedTensors();
  const int64_t touched = shared();
  EXPECT_GE(touched, before + kBytes - kUncounted);
  MemoryWatch watch;
  watch.Begin();
  std::memset(peers, 2, kBytes);
  watch.End();
  EXPECT_LT(shared(), touched + kUncounted);
  EXPECT_LT(watch.growth(), kNoise);
  munmap(peers, kBytes);
  munmap(owners, kBytes);
  close(fd);
}

}  // namespace
}  // namespace sluice::bench
