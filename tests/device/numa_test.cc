// Where memory is placed, on this machine and on made-up ones. Each test looks at the machine in a
// process of its own, because a process looks it up once.
#include "device/numa.h"

#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device/device.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr size_t kBytes = size_t{1} << 20;
constexpr int kPlaced = 10;
constexpr int kNotPlaced = 11;
constexpr int kBadMemory = 12;

// The policy of the page at `data`, or -1 if the system does not tell.
int PolicyOf(std::byte* data) {
  int policy = -1;
  const long result = syscall(SYS_get_mempolicy, &policy, nullptr, 0, data, MPOL_F_ADDR);
  return result == 0 ? policy : -1;
}

// Makes hwloc believe in a machine with these nodes; binding goes to the system all the same.
void Pretend(const char* synthetic) {
  setenv("HWLOC_SYNTHETIC", synthetic, 1);
  setenv("HWLOC_THISSYSTEM", "1", 1);
}

constexpr int kNearProcess = -1;

// Places memory, and ends with what came of it.
[[noreturn]] void PlaceAndExit(int node = kNearProcess) {
  void* const mapped =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) _exit(kBadMemory);
  auto* const data = static_cast<std::byte*>(mapped);
  const bool placed =
      node == kNearProcess ? PlaceNearProcess(data, kBytes) : PlaceOnNode(data, kBytes, node);
  std::memset(data, 7, kBytes);
  if (data[kBytes - 1] != std::byte{7}) _exit(kBadMemory);
  const int policy = PolicyOf(data);
  std::fprintf(stderr, "policy %d\n", policy);
  // A policy that fails when the nodes are full would be MPOL_BIND.
  if (policy == MPOL_BIND) _exit(kBadMemory);
  if (placed && policy == MPOL_DEFAULT) _exit(kBadMemory);
  _exit(placed ? kPlaced : kNotPlaced);
}

int Cpus() {
  cpu_set_t cpus;
  return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 0;
}

// True if the system lets memory prefer node 0, which every machine has.
bool CanPrefer() {
  void* const mapped =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return false;
  const unsigned long node = 1;
  const long result =
      syscall(SYS_mbind, mapped, 4096UL, MPOL_PREFERRED, &node, sizeof(node) * 8, 0U);
  munmap(mapped, 4096);
  return result == 0;
}

TEST(NumaDeathTest, OneNodeIsNoChoice) {
  EXPECT_EXIT(
      {
        Pretend("node:1 pu:64");
        PlaceAndExit();
      },
      testing::ExitedWithCode(kNotPlaced), "");
}

TEST(NumaDeathTest, NodesAreCounted) {
  EXPECT_EXIT(
      {
        Pretend("node:3 pu:4");
        _exit(NumaNodes());
      },
      testing::ExitedWithCode(3), "");
}

TEST(NumaDeathTest, AProcessThatMayRunEverywhereHasNoChoice) {
  if (Cpus() < 2) GTEST_SKIP() << "one CPU only";
  EXPECT_EXIT(
      {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET(0, &cpus);
        CPU_SET(1, &cpus);
        if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) _exit(kNotPlaced);
        Pretend("node:2 pu:1");
        PlaceAndExit();
      },
      testing::ExitedWithCode(kNotPlaced), "");
}

// All CPUs that this process may have are at the first of two nodes.
TEST(NumaDeathTest, MemoryPrefersTheNodesOfTheProcess) {
  if (!CanPrefer()) GTEST_SKIP() << "mbind is not allowed here";
  EXPECT_EXIT(
      {
        Pretend("node:2 pu:1024");
        PlaceAndExit();
      },
      testing::ExitedWithCode(kPlaced), "policy");
}

TEST(NumaDeathTest, MemoryPrefersTheNodeAskedFor) {
  if (!CanPrefer()) GTEST_SKIP() << "mbind is not allowed here";
  EXPECT_EXIT(
      {
        Pretend("node:2 pu:1024");
        PlaceAndExit(0);
      },
      testing::ExitedWithCode(kPlaced), "policy");
}

TEST(NumaDeathTest, ANodeThatIsNotThereIsNoChoice) {
  EXPECT_EXIT(
      {
        Pretend("node:2 pu:1024");
        PlaceAndExit(2);
      },
      testing::ExitedWithCode(kNotPlaced), "");
}

// The system knows no node 1: it refuses, and the memory is as good as any.
TEST(NumaDeathTest, ARefusalIsNoError) {
  if (Cpus() < 2) GTEST_SKIP() << "one CPU only";
  if (access("/sys/devices/system/node/node1", F_OK) == 0) GTEST_SKIP() << "there is a node 1";
  EXPECT_EXIT(
      {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET(1, &cpus);
        if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) _exit(kNotPlaced);
        Pretend("node:2 pu:1");
        const auto memory = MakeHostDevice()->AllocateStaging(kBytes);
        if (!memory.ok()) _exit(kBadMemory);
        std::memset(memory->data(), 1, kBytes);
        PlaceAndExit();
      },
      testing::ExitedWithCode(kNotPlaced), "");
}

TEST(NumaDeathTest, ThisMachineTakesIt) {
  EXPECT_EXIT(
      {
        const auto memory = MakeHostDevice()->AllocateBuffer(kBytes);
        if (!memory.ok()) _exit(kBadMemory);
        std::memset(memory->data(), 1, kBytes);
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sluice
