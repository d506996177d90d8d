// Everything that is done wrong with the fake CUDA runtime is reported, in words.
#include <sys/wait.h>

#include <cstdlib>
#include <vector>

#include "fakes/child_process.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
#include "gmock/gmock.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FakeCudaMisuseTest : public testing::Test {
 protected:
  void SetUp() override { FakeCudaConfigure({}); }
  const ScopedStream stream_;
};

// In a block that others share, and alone.
TEST_F(FakeCudaMisuseTest, MemoryAfterItWasFreed) {
  const CudaMemory beside(100);
  for (const size_t bytes : {size_t{100}, size_t{3} << 20}) {
    void* memory = nullptr;
    ASSERT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
    ASSERT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_THAT(FakeCudaMisuse(), IsEmpty());
    EXPECT_EQ(cudaMemsetAsync(memory, 0, bytes, stream_.get()), cudaErrorInvalidValue);
    EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("were freed")));
    EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
    EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("which was freed")));
    EXPECT_EQ(FakeCudaHostPointer(memory, 1), nullptr);
    EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("were freed")));
  }
}

TEST_F(FakeCudaMisuseTest, PointersThatItDidNotGiveOut) {
  const CudaMemory memory(100);
  std::vector<char> host(100);
  EXPECT_EQ(cudaFree(memory.At(8)), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(host.data()), cudaErrorInvalidValue);
  EXPECT_EQ(cudaHostUnregister(host.data()), cudaErrorHostMemoryNotRegistered);
  EXPECT_THAT(FakeCudaMisuse(),
              ElementsAre(HasSubstr("did not give out"), HasSubstr("did not give out"),
                          HasSubstr("did not give out")));
}

TEST_F(FakeCudaMisuseTest, RangesBeyondTheirMemory) {
  const CudaMemory memory(100);
  EXPECT_EQ(cudaMemsetAsync(memory.At(40), 0, 61, stream_.get()), cudaErrorInvalidValue);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("beyond the 100 bytes")));
  EXPECT_EQ(cudaMemcpyAsync(memory.data(), memory.At(101), 1, cudaMemcpyDefault, stream_.get()),
            cudaErrorInvalidValue);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("beyond the 100 bytes")));
  EXPECT_EQ(cudaMemsetAsync(memory.At(9000), 0, 1, stream_.get()), cudaErrorInvalidValue);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("in none that is allocated")));
  std::vector<char> host(100);
  ASSERT_EQ(cudaHostRegister(host.data() + 10, 20, 0), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(memory.data(), host.data(), 30, cudaMemcpyDefault, stream_.get()),
            cudaErrorInvalidValue);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("in part")));
  EXPECT_EQ(cudaHostUnregister(host.data() + 10), cudaSuccess);
}

TEST_F(FakeCudaMisuseTest, HostPointersWhereDevicePointersBelong) {
  const CudaMemory memory(100);
  std::vector<char> host(100);
  EXPECT_EQ(cudaMemsetAsync(host.data(), 0, 100, stream_.get()), cudaErrorInvalidValue);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("neither device memory nor pinned")));
  EXPECT_EQ(FakeCudaEnqueue(stream_.get(), [] {}, {{host.data(), 100}}), cudaErrorIllegalAddress);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("neither device memory nor pinned")));
  EXPECT_EQ(FakeCudaHostPointer(host.data(), 1), nullptr);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("neither device memory nor pinned")));
  EXPECT_EQ(cudaMemcpyAsync(host.data(), memory.data(), 100, cudaMemcpyHostToDevice, stream_.get()),
            cudaErrorInvalidValue);
  EXPECT_EQ(
      cudaMemcpyAsync(memory.data(), host.data(), 100, cudaMemcpyDeviceToDevice, stream_.get()),
      cudaErrorInvalidValue);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("a host pointer where a device pointer"),
                                            HasSubstr("a host pointer where a device pointer")));
}

TEST_F(FakeCudaMisuseTest, FreeingWhatQueuedWorkUses) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 100), cudaSuccess);
  ASSERT_EQ(FakeCudaEnqueue(stream_.get(), [] {}, {{memory, 100}}), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_THAT(FakeCudaMisuse(),
              ElementsAre(AllOf(HasSubstr("cudaFree"), HasSubstr("that a kernel uses"))));
  std::vector<char> host(100);
  const CudaMemory target(100);
  ASSERT_EQ(cudaHostRegister(host.data(), 100, 0), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(target.data(), host.data(), 100, cudaMemcpyDefault, stream_.get()),
            cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(host.data()), cudaSuccess);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(AllOf(HasSubstr("cudaHostUnregister"),
                                                  HasSubstr("that cudaMemcpyAsync uses"))));
  EXPECT_EQ(cudaStreamSynchronize(stream_.get()), cudaSuccess);
}

TEST_F(FakeCudaMisuseTest, EventsAndStreamsAfterTheyWereDestroyed) {
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream_.get()), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamWaitEvent(stream_.get(), event), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
  EXPECT_THAT(FakeCudaMisuse(), testing::Each(HasSubstr("an event after it was destroyed")));
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(FakeCudaEnqueue(stream, [] {}), cudaErrorInvalidResourceHandle);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("a stream after it was destroyed"),
                                            HasSubstr("a stream after it was destroyed")));
  // A number that was never a handle.
  EXPECT_EQ(cudaStreamQuery(reinterpret_cast<cudaStream_t>(0x77)), cudaErrorInvalidResourceHandle);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("that there is not")));
}

// The tests below leave things behind, each its own.
TEST_F(FakeCudaMisuseTest, KernelsThatAreFirstLaunchedWhileTheDeviceWorks) {
  const ScopedStream stream;
  ASSERT_EQ(FakeCudaLoad("loaded"), cudaSuccess);
  Door door(stream.get());
  EXPECT_EQ(FakeCudaLaunch("loaded", stream.get(), [] {}, {}), cudaSuccess);
  EXPECT_THAT(FakeCudaMisuse(), IsEmpty());
  EXPECT_EQ(FakeCudaLaunch("lazy", stream.get(), [] {}, {}), cudaSuccess);
  EXPECT_THAT(FakeCudaMisuse(), ElementsAre(HasSubstr("the first launch of lazy")));
  EXPECT_EQ(FakeCudaLaunch("lazy", stream.get(), [] {}, {}), cudaSuccess);
  door.Open();
  EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
}

TEST(FakeCudaLeftTest, MemoryStreamsEventsAndRegistrations) {
  FakeCudaConfigure({});
  EXPECT_THAT(FakeCudaCheckClean(), IsEmpty());
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 100), cudaSuccess);
  static std::vector<char> host(100);
  ASSERT_EQ(cudaHostRegister(host.data(), 100, 0), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, 0), cudaSuccess);
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_THAT(FakeCudaCheckClean(),
              testing::UnorderedElementsAre(HasSubstr("device memory never freed, 100 bytes"),
                                            HasSubstr("never unregistered, 100 bytes"),
                                            HasSubstr("a stream never destroyed"),
                                            HasSubstr("an event never destroyed")));
  EXPECT_THAT(FakeCudaCheckClean(), IsEmpty());
}

TEST(FakeCudaLeftTest, WorkThatNobodyWaitedFor) {
  FakeCudaConfigure({});
  {
    const ScopedStream stream;
    ASSERT_EQ(FakeCudaEnqueue(stream.get(), [] {}), cudaSuccess);
  }
  EXPECT_THAT(FakeCudaCheckClean(), ElementsAre(AllOf(HasSubstr("never waited for: a kernel"),
                                                      HasSubstr("was destroyed"))));
  ASSERT_EQ(FakeCudaEnqueue(nullptr, [] {}), cudaSuccess);
  EXPECT_THAT(FakeCudaCheckClean(), ElementsAre(HasSubstr("never waited for: a kernel")));
  {
    // An event before the last work is not enough.
    const ScopedStream stream;
    const CudaEvent event;
    ASSERT_EQ(FakeCudaEnqueue(stream.get(), [] {}), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event.get(), stream.get()), cudaSuccess);
    ASSERT_EQ(FakeCudaEnqueue(stream.get(), [] {}), cudaSuccess);
    ASSERT_EQ(cudaEventSynchronize(event.get()), cudaSuccess);
  }
  EXPECT_THAT(FakeCudaCheckClean(), ElementsAre(HasSubstr("never waited for: a kernel")));
  {
    // An event after it is, also when the stream is no more.
    const CudaEvent event;
    {
      const ScopedStream stream;
      ASSERT_EQ(FakeCudaEnqueue(stream.get(), [] {}), cudaSuccess);
      ASSERT_EQ(cudaEventRecord(event.get(), stream.get()), cudaSuccess);
    }
    ASSERT_EQ(cudaEventSynchronize(event.get()), cudaSuccess);
  }
  EXPECT_THAT(FakeCudaCheckClean(), IsEmpty());
}

// Processes of their own, below: they are to fail.
TEST(DISABLED_Child, Leaves) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 100), cudaSuccess);
}

TEST(DISABLED_Child, LeavesAndExits) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 100), cudaSuccess);
  std::exit(0);
}

TEST(FakeCudaLeftTest, TheListenerFailsTheTest) {
  EXPECT_EQ(WEXITSTATUS(RunChild("DISABLED_Child.Leaves", 0, /*is_to_fail=*/true)), 1);
}

TEST(FakeCudaLeftTest, ProgramsWithoutTestsFailAtTheirEnd) {
  EXPECT_EQ(WEXITSTATUS(RunChild("DISABLED_Child.LeavesAndExits", 0, /*is_to_fail=*/true)), 86);
}

}  // namespace
}  // namespace sluice
