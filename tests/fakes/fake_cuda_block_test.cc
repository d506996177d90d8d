// Blocks of the fake CUDA runtime that small allocations share: their addresses, their handles, and
// how long they last.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "fakes/child_process.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
#include "gmock/gmock.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr size_t kBlockBytes = size_t{2} << 20;

uintptr_t Address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
uintptr_t InBlock(const void* pointer) { return Address(pointer) % kBlockBytes; }

cudaIpcMemHandle_t HandleOf(const CudaMemory& memory) {
  cudaIpcMemHandle_t handle = {};
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, memory.data()), cudaSuccess);
  return handle;
}

bool IsSame(const cudaIpcMemHandle_t& a, const cudaIpcMemHandle_t& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

void* Open(const cudaIpcMemHandle_t& handle) {
  void* opened = nullptr;
  EXPECT_EQ(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess), cudaSuccess);
  return opened;
}

void Fill(const CudaMemory& memory, unsigned char value) {
  const std::vector<unsigned char> bytes(memory.bytes(), value);
  EXPECT_EQ(cudaMemcpy(memory.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice),
            cudaSuccess);
}

unsigned char ByteAt(const void* pointer) {
  unsigned char byte = 0;
  EXPECT_EQ(cudaMemcpy(&byte, pointer, 1, cudaMemcpyDeviceToHost), cudaSuccess);
  return byte;
}

std::pair<uintptr_t, size_t> RangeOf(const void* pointer) {
  using FindRange = int (*)(unsigned long long*, size_t*, unsigned long long);
  void* function = nullptr;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &function, 12000, 0, nullptr),
            cudaSuccess);
  unsigned long long base = 0;
  size_t bytes = 0;
  EXPECT_EQ(reinterpret_cast<FindRange>(function)(&base, &bytes, Address(pointer)), 0);
  return {base, bytes};
}

size_t FreeBytes() {
  size_t free = 0;
  size_t total = 0;
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  return free;
}

TEST(FakeCudaBlockTest, SmallAllocationsShareOne) {
  FakeCudaConfigure({});
  const CudaMemory first(1), second(100000), large(kBlockBytes - 1), third(513);
  EXPECT_EQ(InBlock(first.data()), 0U);
  EXPECT_EQ(Address(second.data()) - Address(first.data()), 512U);
  EXPECT_EQ(Address(third.data()) - Address(second.data()), 100352U);
  EXPECT_EQ(InBlock(large.data()), 0U);
  EXPECT_EQ(RangeOf(second.At(7)), std::pair(Address(second.data()), size_t{100000}));
}

TEST(FakeCudaBlockTest, AHandleIsOfAnAllocationAndOpensItsBlock) {
  FakeCudaConfigure({.same_process_ipc = true});
  const CudaMemory first(1000), second(2000);
  Fill(first, 1);
  Fill(second, 2);
  EXPECT_FALSE(IsSame(HandleOf(first), HandleOf(second)));
  void* const opened = Open(HandleOf(second));
  EXPECT_EQ(InBlock(opened), InBlock(second.data()));
  EXPECT_EQ(ByteAt(opened), 2);
  void* const other = Open(HandleOf(first));
  EXPECT_EQ(static_cast<char*>(opened) - static_cast<char*>(other), 1024);
  EXPECT_EQ(ByteAt(other), 1);
  EXPECT_EQ(Open(HandleOf(second)), opened);
  EXPECT_EQ(cudaIpcCloseMemHandle(opened), cudaSuccess);
  EXPECT_EQ(cudaIpcCloseMemHandle(other), cudaSuccess);
  EXPECT_EQ(ByteAt(opened), 2);  // it was opened twice
  EXPECT_EQ(cudaIpcCloseMemHandle(opened), cudaSuccess);
  EXPECT_EQ(cudaIpcCloseMemHandle(opened), cudaErrorInvalidValue);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("which is not open")));
}

TEST(FakeCudaBlockTest, AHandleMayBeOfTheBlock) {
  FakeCudaConfigure(
      {.same_process_ipc = true, .handles_open_blocks = true, .ranges_are_blocks = true});
  const CudaMemory first(1000), second(2000);
  Fill(second, 2);
  EXPECT_TRUE(IsSame(HandleOf(first), HandleOf(second)));
  EXPECT_EQ(RangeOf(second.data()), std::pair(Address(first.data()), kBlockBytes));
  void* const opened = Open(HandleOf(second));
  EXPECT_EQ(InBlock(opened), 0U);
  EXPECT_EQ(ByteAt(static_cast<char*>(opened) + 1024), 2);
  EXPECT_EQ(RangeOf(opened), std::pair(Address(opened), kBlockBytes));
  EXPECT_EQ(Open(HandleOf(first)), opened);
  EXPECT_EQ(cudaIpcCloseMemHandle(opened), cudaSuccess);
  EXPECT_EQ(cudaIpcCloseMemHandle(opened), cudaSuccess);
}

TEST(FakeCudaBlockTest, EndsWithItsLastAllocation) {
  FakeCudaConfigure({.same_process_ipc = true});
  const size_t free_bytes = FreeBytes();
  std::optional<CudaMemory> first(1000), second(2000);
  EXPECT_EQ(FreeBytes(), free_bytes - kBlockBytes);
  const cudaIpcMemHandle_t handle = HandleOf(*second);
  first.reset();
  EXPECT_EQ(FreeBytes(), free_bytes - kBlockBytes);
  EXPECT_EQ(cudaIpcCloseMemHandle(Open(handle)), cudaSuccess);
  second.reset();
  EXPECT_EQ(FreeBytes(), free_bytes);
  void* opened = nullptr;
  EXPECT_EQ(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess),
            cudaErrorMapBufferObjectFailed);
}

TEST(FakeCudaBlockTest, OnlyWhatIsOpenMustNotBeFreed) {
  FakeCudaConfigure({.same_process_ipc = true});
  std::optional<CudaMemory> first(1000), second(1000), third(1000);
  void* const opened = Open(HandleOf(*second));
  first.reset();
  EXPECT_THAT(FakeCudaMisuse(), testing::IsEmpty());
  second.reset();
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("still have open")));
  EXPECT_EQ(cudaIpcCloseMemHandle(opened), cudaSuccess);
}

TEST(FakeCudaBlockTest, WhatWasFreedOrNeverGivenOutIsNotUsed) {
  FakeCudaConfigure({});
  const CudaMemory first(1000);
  void* freed = nullptr;
  ASSERT_EQ(cudaMalloc(&freed, 1000), cudaSuccess);
  ASSERT_EQ(cudaFree(freed), cudaSuccess);
  unsigned char byte = 0;
  EXPECT_NE(cudaMemcpy(&byte, freed, 1, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("were freed")));
  EXPECT_EQ(cudaFree(freed), cudaErrorInvalidValue);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("which was freed")));
  EXPECT_NE(cudaMemcpy(&byte, first.At(9000), 1, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("in none that is allocated")));
  EXPECT_NE(cudaMemcpy(&byte, first.At(1000), 1, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("beyond the 1000 bytes")));
}

TEST(FakeCudaBlockTest, GivesFreedAddressesOutAgain) {
  FakeCudaConfigure({.reuse_addresses = true});
  const CudaMemory first(1000);
  std::optional<CudaMemory> second(1000), third(1000);
  const CudaMemory fourth(1000);
  const void* const place = second->data();
  second.reset();
  third.reset();
  const CudaMemory longer(2000);
  EXPECT_EQ(longer.data(), place);
}

struct Handles {
  cudaIpcMemHandle_t first;
  cudaIpcMemHandle_t second;
};

// A process of its own, below.
TEST(DISABLED_Child, OpensTwoOfABlock) {
  const Handles handles = FromParent<Handles>().value();
  void* const second = Open(handles.second);
  void* const first = Open(handles.first);
  EXPECT_EQ(ByteAt(first), 1);
  EXPECT_EQ(ByteAt(second), 2);
  EXPECT_EQ(cudaIpcCloseMemHandle(second), cudaSuccess);
  EXPECT_EQ(ByteAt(first), 1);
  EXPECT_EQ(cudaIpcCloseMemHandle(first), cudaSuccess);
}

TEST(FakeCudaBlockTest, ProcessesShareBlocks) {
  FakeCudaConfigure({});
  const CudaMemory first(1000), second(1000);
  Fill(first, 1);
  Fill(second, 2);
  EXPECT_EQ(RunChild("DISABLED_Child.OpensTwoOfABlock", Handles{HandleOf(first), HandleOf(second)}),
            0);
}

}  // namespace
}  // namespace sluice
