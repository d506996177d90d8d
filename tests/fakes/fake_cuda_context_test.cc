// Contexts of the fake CUDA runtime: who makes one where, and which calls want the right one.
#include <cstddef>
#include <cstdint>
#include <thread>

#include "cuda_runtime_api.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
#include "gmock/gmock.h"

namespace sluice {
namespace {

constexpr int kNoContext = -1;
constexpr int kInvalidContext = 201;
constexpr int kNotFound = 500;

template <class Function>
Function Find(const char* name) {
  void* function = nullptr;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &function, 12000, 0), cudaSuccess) << name;
  return reinterpret_cast<Function>(function);
}

int FindRange(const void* pointer) {
  using GetRange = int (*)(unsigned long long*, size_t*, unsigned long long);
  return Find<GetRange>("cuMemGetAddressRange")(nullptr, nullptr,
                                                reinterpret_cast<uintptr_t>(pointer));
}

class FakeCudaContextTest : public testing::Test {
 protected:
  void SetUp() override { FakeCudaConfigure({.devices = 3}); }
};

TEST_F(FakeCudaContextTest, CallsMakeAContextWhereTheyTakeOne) {
  std::thread([] {
    int number = 0;
    cudaDeviceProp properties;
    char id[16];
    ASSERT_EQ(cudaGetDeviceCount(&number), cudaSuccess);
    ASSERT_EQ(cudaGetDevice(&number), cudaSuccess);
    EXPECT_EQ(number, 0);
    ASSERT_EQ(cudaGetDeviceProperties(&properties, 1), cudaSuccess);
    ASSERT_EQ(cudaDeviceGetPCIBusId(id, sizeof(id), 2), cudaSuccess);
    ASSERT_EQ(cudaDeviceCanAccessPeer(&number, 0, 1), cudaSuccess);
    EXPECT_EQ(FakeCudaCurrentContext(), kNoContext);
    for (int device = 0; device < 3; ++device) EXPECT_FALSE(FakeCudaHasContext(device));
    const ScopedStream stream;
    EXPECT_EQ(FakeCudaCurrentContext(), 0);
    EXPECT_TRUE(FakeCudaHasContext(0));
    ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(FakeCudaCurrentContext(), 1);
    EXPECT_TRUE(FakeCudaHasContext(1));
    // A peer needs one too.
    ASSERT_EQ(cudaDeviceEnablePeerAccess(2, 0), cudaSuccess);
    EXPECT_TRUE(FakeCudaHasContext(2));
  }).join();
  EXPECT_EQ(FakeCudaCurrentContext(), kNoContext);
}

TEST_F(FakeCudaContextTest, TheDriversStack) {
  const auto get = Find<int (*)(int*, int)>("cuDeviceGet");
  const auto retain = Find<int (*)(void**, int)>("cuDevicePrimaryCtxRetain");
  const auto push = Find<int (*)(void*)>("cuCtxPushCurrent");
  const auto pop = Find<int (*)(void**)>("cuCtxPopCurrent");
  const auto current = Find<int (*)(void**)>("cuCtxGetCurrent");
  void* context = nullptr;
  void* seen = nullptr;
  int device = -1;
  EXPECT_EQ(get(&device, 3), cudaErrorInvalidDevice);
  ASSERT_EQ(get(&device, 2), 0);
  EXPECT_EQ(pop(&seen), kInvalidContext);
  EXPECT_EQ(push(nullptr), kInvalidContext);
  ASSERT_EQ(retain(&context, device), 0);
  EXPECT_TRUE(FakeCudaHasContext(2));
  ASSERT_EQ(current(&seen), 0);
  EXPECT_EQ(seen, nullptr);
  ASSERT_EQ(push(context), 0);
  ASSERT_EQ(current(&seen), 0);
  EXPECT_EQ(seen, context);
  int number = -1;
  ASSERT_EQ(cudaGetDevice(&number), cudaSuccess);
  EXPECT_EQ(number, 2);
  const CudaMemory memory(64);
  EXPECT_EQ(FindRange(memory.data()), 0);
  ASSERT_EQ(pop(&seen), 0);
  EXPECT_EQ(seen, context);
  EXPECT_EQ(FakeCudaCurrentContext(), kNoContext);
  EXPECT_FALSE(FakeCudaHasContext(0));
  EXPECT_EQ(FindRange(memory.data()), kInvalidContext);
}

TEST_F(FakeCudaContextTest, MemoryIsOfADevice) {
  const CudaMemory memory(64);
  EXPECT_EQ(FindRange(memory.data()), 0);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(FindRange(memory.data()), kNotFound);
  cudaIpcMemHandle_t handle;
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, memory.data()), cudaErrorInvalidValue);
  EXPECT_THAT(
      FakeCudaMisuse(),
      testing::ElementsAre(testing::HasSubstr("memory of device 0, while device 1 is current")));
}

}  // namespace
}  // namespace sluice
