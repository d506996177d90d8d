// What is open of other ranks' memory: how long, and how much of it.
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/cuda_ipc/cuda_ipc_handles.h"

namespace sluice {
namespace {

constexpr size_t kBytes = size_t{2} << 20;  // no small allocation, which would share a block
constexpr int64_t kNoLimit = int64_t{1} << 40;
constexpr int kPeer = 1;

class CudaIpcImportsTest : public testing::Test {
 protected:
  // The owner of the memory, and who opens it, are in one process.
  void Configure(FakeCudaConfig config = {}) {
    config.same_process_ipc = true;
    config.free_while_open = true;
    FakeCudaConfigure(config);
    const auto exporter = CudaIpcExporter::Create();
    ASSERT_TRUE(exporter.ok()) << exporter.status();
    exporter_ = *exporter;
    stream_.emplace();
  }

  CudaIpcImports Imports(int64_t open_bytes) {
    return CudaIpcImports({0, stream_->get()}, kPeer + 1, open_bytes);
  }

  void OpenAndUse(CudaIpcImports* imports, const CudaMemory& memory) {
    const auto exported = exporter_->Export(static_cast<std::byte*>(memory.data()), memory.bytes());
    ASSERT_TRUE(exported.ok()) << exported.status();
    const auto opened = imports->Open(kPeer, *exported);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(
        cudaMemcpyAsync(to_->data(), *opened, kBytes, cudaMemcpyDeviceToDevice, stream_->get()),
        cudaSuccess);
  }

  static int64_t Open() {
    return FakeCudaCalls("cudaIpcOpenMemHandle") - FakeCudaCalls("cudaIpcCloseMemHandle");
  }

  std::optional<CudaIpcExporter> exporter_;
  std::optional<ScopedStream> stream_;
  std::optional<CudaMemory> to_;
};

TEST_F(CudaIpcImportsTest, ClosesWhatWasFreedBeforeItOpensWhatIsInItsPlace) {
  Configure({.reuse_addresses = true});
  to_.emplace(kBytes);
  // Later memory lies where this was, one after another.
  { const CudaMemory all(16 * kBytes); }
  CudaIpcImports imports = Imports(kNoLimit);
  std::vector<const void*> places;
  {
    const CudaMemory first(kBytes), second(kBytes), third(kBytes);
    for (const CudaMemory* const memory : {&first, &second, &third}) {
      OpenAndUse(&imports, *memory);
      places.push_back(memory->data());
    }
    EXPECT_EQ(cudaStreamSynchronize(stream_->get()), cudaSuccess);
  }
  EXPECT_EQ(Open(), 3);
  const CudaMemory next(6 * kBytes);
  ASSERT_EQ(next.data(), places[0]);
  ASSERT_GT(next.At(next.bytes()), places[2]);
  OpenAndUse(&imports, next);
  EXPECT_EQ(Open(), 1);
  EXPECT_EQ(cudaStreamSynchronize(stream_->get()), cudaSuccess);
}

TEST_F(CudaIpcImportsTest, ClosesAllAndTriesAgainWhereSomethingIsInTheWay) {
  for (const cudaError_t error : {cudaErrorAlreadyMapped, cudaErrorMemoryAllocation}) {
    Configure();
    to_.emplace(kBytes);
    const CudaMemory first(kBytes), second(kBytes);
    const int64_t closed = FakeCudaCalls("cudaIpcCloseMemHandle");
    {
      CudaIpcImports imports = Imports(kNoLimit);
      OpenAndUse(&imports, first);
      FakeCudaFailAt("cudaIpcOpenMemHandle", 1, error);
      OpenAndUse(&imports, second);  // while the queue is busy with the first
      EXPECT_EQ(FakeCudaCalls("cudaIpcCloseMemHandle"), closed + 1);
      FakeCudaFailAt("cudaIpcOpenMemHandle", 1, error);
      FakeCudaFailAt("cudaIpcOpenMemHandle", 2, error);
      const auto exported = exporter_->Export(static_cast<std::byte*>(first.data()), kBytes);
      ASSERT_TRUE(exported.ok()) << exported.status();
      const auto opened = imports.Open(kPeer, *exported);
      EXPECT_THAT(std::string(opened.status().message()), testing::HasSubstr("rank 1"));
    }
    to_.reset();
    stream_.reset();
    FakeCudaFailNoMore();
  }
}

TEST_F(CudaIpcImportsTest, MemoryThatWasFreedIsFreeOnceItIsClosed) {
  Configure({.memory_bytes = 4 * kBytes});
  to_.emplace(kBytes);
  CudaIpcImports imports = Imports(kNoLimit);
  {
    const CudaMemory freed(2 * kBytes);
    OpenAndUse(&imports, freed);
    EXPECT_EQ(cudaStreamSynchronize(stream_->get()), cudaSuccess);
  }
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 2 * kBytes), cudaErrorMemoryAllocation);
  imports.CloseMemory();
  EXPECT_EQ(cudaMalloc(&memory, 2 * kBytes), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(CudaIpcImportsTest, KeepsNoMoreBytesOpenThanAllowed) {
  Configure();
  to_.emplace(kBytes);
  CudaIpcImports imports = Imports(3 * kBytes);
  std::deque<CudaMemory> memory;
  for (int i = 0; i < 6; ++i) memory.emplace_back(kBytes);
  for (const CudaMemory& each : memory) {
    OpenAndUse(&imports, each);
    EXPECT_LE(Open(), 3);
    EXPECT_EQ(cudaStreamSynchronize(stream_->get()), cudaSuccess);
  }
  // The last three are still open.
  const int64_t opened = FakeCudaCalls("cudaIpcOpenMemHandle");
  for (size_t i = 3; i < memory.size(); ++i) OpenAndUse(&imports, memory[i]);
  EXPECT_EQ(FakeCudaCalls("cudaIpcOpenMemHandle"), opened);
  EXPECT_EQ(cudaStreamSynchronize(stream_->get()), cudaSuccess);
}

TEST_F(CudaIpcImportsTest, ClosesNothingThatTheQueueHasYetToUse) {
  Configure();
  to_.emplace(kBytes);
  CudaIpcImports imports = Imports(2 * kBytes);
  const CudaMemory first(kBytes), second(kBytes), third(kBytes), fourth(kBytes), fifth(kBytes);
  Door door(stream_->get());
  for (const CudaMemory* const memory : {&first, &second, &third}) OpenAndUse(&imports, *memory);
  EXPECT_EQ(Open(), 3);
  // The third one was opened behind a mark that the queue gets to, though it is never idle.
  const CudaEvent behind_mark;
  EXPECT_EQ(cudaEventRecord(behind_mark.get(), stream_->get()), cudaSuccess);
  Door second_door(stream_->get());
  OpenAndUse(&imports, fourth);
  EXPECT_EQ(Open(), 4);
  door.Open();
  EXPECT_EQ(cudaEventSynchronize(behind_mark.get()), cudaSuccess);
  OpenAndUse(&imports, fifth);
  EXPECT_EQ(Open(), 3);  // the third and the fourth are behind the mark
  second_door.Open();
  EXPECT_EQ(cudaStreamSynchronize(stream_->get()), cudaSuccess);
}

}  // namespace
}  // namespace sluice
