// Where pinned memory lies: near the GPU, over the fake runtime, on a machine that is made up.
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "device/cuda/cuda_device.h"
#include "fakes/fake_cuda.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr size_t kBytes = size_t{1} << 20;
constexpr int kCannotTell = 20;
constexpr int kFailed = 21;

// Ends with the policy that staging has, near a GPU of this node. The process may run on the CPUs
// of both nodes, so it has no preference of its own.
[[noreturn]] void ExitWithPolicy(int node) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  CPU_SET(1, &cpus);
  if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) _exit(kCannotTell);
  // Makes hwloc believe in two nodes; binding goes to the system all the same.
  setenv("HWLOC_SYNTHETIC", "node:2 pu:1", 1);
  setenv("HWLOC_THISSYSTEM", "1", 1);
  FakeCudaConfigure({.numa_node = node});
  const auto device = CudaDevice::Create({});
  if (!device.ok()) _exit(kFailed);
  const auto memory = (*device)->AllocateStaging(kBytes);
  if (!memory.ok()) _exit(kFailed);
  std::memset(memory->data(), 1, kBytes);
  int policy = 0;
  const long result = syscall(SYS_get_mempolicy, &policy, nullptr, 0, memory->data(), MPOL_F_ADDR);
  _exit(result == 0 ? policy : kCannotTell);
}

// Whether two CPUs are there, and the system lets memory prefer node 0.
bool CanTell() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0 || CPU_COUNT(&cpus) < 2) return false;
  alignas(4096) static std::byte page[4096];
  const unsigned long node = 1;
  const long bound =
      syscall(SYS_mbind, page, sizeof(page), MPOL_PREFERRED, &node, sizeof(node) * 8, 0U);
  return bound == 0;
}

TEST(CudaNumaDeathTest, PinnedMemoryIsNearTheGpu) {
  if (!CanTell()) GTEST_SKIP() << "two CPUs and mbind are needed";
  constexpr int kPreferredMany = 5;  // MPOL_PREFERRED_MANY, of Linux 5.15
  EXPECT_EXIT(
      ExitWithPolicy(0),
      [](int status) {
        return WIFEXITED(status) &&
               (WEXITSTATUS(status) == MPOL_PREFERRED || WEXITSTATUS(status) == kPreferredMany);
      },
      "");
}

TEST(CudaNumaDeathTest, WithoutANodeItIsNearTheProcess) {
  if (!CanTell()) GTEST_SKIP() << "two CPUs and mbind are needed";
  EXPECT_EXIT(ExitWithPolicy(-1), testing::ExitedWithCode(MPOL_DEFAULT), "");
}

}  // namespace
}  // namespace sluice
