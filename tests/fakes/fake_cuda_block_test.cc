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

bool IsSame(const cudaIpcMemHandle_t& a, const cudaIpcMemHandle_t& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

unsigned char ByteAt(const void* pointer) {
  unsigned char byte = 0;
  EXPECT_EQ(cudaMemcpy(&byte, pointer, 1, cudaMemcpyDeviceToHost), cudaSuccess);
  return byte;
}

std::pair<uintptr_t, size_t> RangeOf(const void* pointer) {
  using FindRange = int (*)(unsigned long long*, size_t*, unsigned long long);
  unsigned long long base = 0;
  size_t bytes = 0;
  const auto find = FindDriver<FindRange>("cuMemGetAddressRange");
  EXPECT_EQ(find(&base, &bytes, Address(pointer)), 0);
  return {base, bytes};
}

TEST(FakeCudaBlockTest, SmallAllocationsShareOne) {
  FakeCudaConfigure({});
  const CudaMemory first(1), second(100000), large(kBlockBytes - 1), third(513);
  EXPECT_EQ(InBlock(first.data()), 0U);
  EXPECT_EQ(Address(second.data()) - Address(first.data()), 512U);
  EXPECT_EQ(Address(third.data()) - Address(second.data()), 100352U);
  EXPECT_EQ(InBlock(large.data()), 0U);
  EXPECT_EQ(RangeOf(second.At(7)), std::pair(Address(second.data()), size_t{100000}));
  EXPECT_EQ(RangeOf(large.At(9)), std::pair(Address(large.data()), large.bytes()));
}

TEST(FakeCudaBlockTest, AHandleIsOfAnAllocationAndOpensItsBlock) {
  FakeCudaConfigure({.same_process_ipc = true});
  const FilledMemory first(1000, 1), second(2000, 2);
  EXPECT_FALSE(IsSame(HandleOf(first.data()), HandleOf(second.data())));
  void* const opened = Open(HandleOf(second.data()));
  EXPECT_EQ(InBlock(opened), InBlock(second.data()));
  EXPECT_EQ(ByteAt(opened), 2);
  void* const other = Open(HandleOf(first.data()));
  EXPECT_EQ(static_cast<char*>(opened) - static_cast<char*>(other), 1024);
  EXPECT_EQ(ByteAt(other), 1);
  EXPECT_EQ(Open(HandleOf(second.data())), opened);
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
  const FilledMemory first(1000, 1), second(2000, 2);
  EXPECT_TRUE(IsSame(HandleOf(first.data()), HandleOf(second.data())));
  EXPECT_EQ(RangeOf(second.data()), std::pair(Address(first.data()), kBlockBytes));
  void* const opened = Open(HandleOf(second.data()));
  EXPECT_EQ(InBlock(opened), 0U);
  EXPECT_EQ(ByteAt(static_cast<char*>(opened) + 1024), 2);
  EXPECT_EQ(RangeOf(opened), std::pair(Address(opened), kBlockBytes));
  EXPECT_EQ(Open(HandleOf(first.data())), opened);
  EXPECT_EQ(cudaIpcCloseMemHandle(opened), cudaSuccess);
  EXPECT_EQ(cudaIpcCloseMemHandle(opened), cudaSuccess);
}

TEST(FakeCudaBlockTest, EndsWithItsLastAllocation) {
  FakeCudaConfigure({.same_process_ipc = true});
  const size_t free_bytes = FreeBytes();
  std::optional<CudaMemory> first(1000), second(2000);
  EXPECT_EQ(FreeBytes(), free_bytes - kBlockBytes);
  const cudaIpcMemHandle_t handle = HandleOf(second->data());
  first.reset();
  EXPECT_EQ(FreeBytes(), free_bytes - kBlockBytes);
  EXPECT_EQ(cudaIpcCloseMemHandle(Open(handle)), cudaSuccess);
  second.reset();
  EXPECT_EQ(FreeBytes(), free_bytes);
  Open(handle, cudaErrorMapBufferObjectFailed);
}

TEST(FakeCudaBlockTest, OnlyWhatIsOpenMustNotBeFreed) {
  FakeCudaConfigure({.same_process_ipc = true});
  std::optional<CudaMemory> first(1000), second(1000), third(1000);
  void* const opened = Open(HandleOf(second->data()));
  first.reset();
  EXPECT_THAT(FakeCudaMisuse(), testing::IsEmpty());
  second.reset();
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("still have open")));
  EXPECT_EQ(cudaIpcCloseMemHandle(opened), cudaSuccess);
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
  const FilledMemory first(1000, 1), second(1000, 2);
  EXPECT_EQ(RunChild("DISABLED_Child.OpensTwoOfABlock",
                     Handles{HandleOf(first.data()), HandleOf(second.data())}),
            0);
}

}  // namespace
}  // namespace sluice
