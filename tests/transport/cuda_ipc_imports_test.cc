// What is open of other ranks' memory, how long, and what its owner offers meanwhile.
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
  void Configure(FakeCudaConfig config = {}, int64_t open_bytes = kNoLimit) {
    config.same_process_ipc = true;
    config.free_while_open = true;
    FakeCudaConfigure(config);
    const auto exporter = CudaIpcExporter::Create(open_bytes);
    ASSERT_TRUE(exporter.ok()) << exporter.status();
    exporter_ = *exporter;
    stream_.emplace();
  }

  CudaIpcImports Imports() { return CudaIpcImports({0, stream_->get()}, kPeer + 1); }

  bool Offers(const CudaMemory& memory) {
    return exporter_->Offer(static_cast<std::byte*>(memory.data()));
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

  std::optional<CudaIpcExporter> exporter_;
  std::optional<ScopedStream> stream_;
  std::optional<CudaMemory> to_;
};

// Only one of both could be open.
TEST_F(CudaIpcImportsTest, WhatLiesWhereOffersWereFreedIsNotOffered) {
  Configure({.reuse_addresses = true});
  // Later memory lies where this was, one after another.
  { const CudaMemory all(16 * kBytes); }
  std::optional<CudaMemory> first(kBytes), second(kBytes), third(2 * kBytes);
  const void* const place = first->data();
  EXPECT_TRUE(Offers(*first));
  EXPECT_TRUE(Offers(*second));
  EXPECT_TRUE(Offers(*second));
  first.reset();
  second.reset();
  first.emplace(2 * kBytes);  // in the place of both
  ASSERT_EQ(first->data(), place);
  EXPECT_FALSE(Offers(*first));
  EXPECT_TRUE(Offers(*third));
  exporter_->ForgetOffers();
  EXPECT_TRUE(Offers(*first));
  EXPECT_TRUE(Offers(*third));
}

// All of a block is open where a part of it is.
TEST_F(CudaIpcImportsTest, WhatLiesInABlockWhereAnotherWasFreedIsNotOffered) {
  Configure({.reuse_addresses = true});
  std::optional<CudaMemory> first(4096), second(4096), third(4096);
  const void* const place = first->data();
  EXPECT_TRUE(Offers(*first));
  EXPECT_TRUE(Offers(*second));
  first.reset();
  EXPECT_TRUE(Offers(*third)) << "the block is the same";
  CudaIpcImports imports = Imports();
  const auto open = [&](const CudaMemory& memory) {
    return imports.Open(kPeer, *exporter_->Export(static_cast<std::byte*>(memory.data()), 1)).ok();
  };
  EXPECT_TRUE(open(*second));
  second.reset();
  third.reset();
  std::optional<CudaMemory> more[4];
  for (auto& each : more) each.emplace(4096);
  ASSERT_EQ(more[0]->data(), place);
  EXPECT_FALSE(Offers(*more[0]));
  EXPECT_FALSE(Offers(*more[3]));
  EXPECT_FALSE(open(*more[3]));
  imports.CloseMemory();
  exporter_->ForgetOffers();
  EXPECT_TRUE(Offers(*more[3]));
  EXPECT_TRUE(open(*more[3]));
}

TEST_F(CudaIpcImportsTest, NoMoreIsOfferedThanMayStayOpenOfWhatWasFreed) {
  Configure({}, 2 * kBytes);
  std::deque<CudaMemory> memory;
  for (int i = 0; i < 8; ++i) {
    memory.emplace_back(kBytes);
    EXPECT_TRUE(Offers(memory.back())) << "all is in use, " << i;
  }
  for (int i = 0; i < 3; ++i) memory.pop_front();
  // It is not counted for each.
  int more = 0;
  do {
    memory.emplace_back(kBytes);
  } while (Offers(memory.back()) && ++more < 8);
  EXPECT_LE(more, 2);
  EXPECT_TRUE(Offers(memory.front()));
  exporter_->ForgetOffers();
  EXPECT_TRUE(Offers(memory.back()));
}

TEST_F(CudaIpcImportsTest, ClosesNothingWhereOpeningFails) {
  for (const cudaError_t error : {cudaErrorAlreadyMapped, cudaErrorMemoryAllocation}) {
    Configure();
    to_.emplace(kBytes);
    const CudaMemory first(kBytes), second(kBytes);
    const int64_t closed = FakeCudaCalls("cudaIpcCloseMemHandle");
    {
      CudaIpcImports imports = Imports();
      OpenAndUse(&imports, first);
      FakeCudaFailAt("cudaIpcOpenMemHandle", 1, error);
      const auto exported = exporter_->Export(static_cast<std::byte*>(second.data()), kBytes);
      ASSERT_TRUE(exported.ok()) << exported.status();
      const auto opened = imports.Open(kPeer, *exported);
      EXPECT_THAT(std::string(opened.status().message()),
                  testing::HasSubstr("2097152 bytes of rank 1, beside 1 allocations"));
      EXPECT_EQ(FakeCudaCalls("cudaIpcCloseMemHandle"), closed);
      OpenAndUse(&imports, second);
    }
    EXPECT_EQ(FakeCudaCalls("cudaIpcCloseMemHandle"), closed + 2);
    to_.reset();
    stream_.reset();
    FakeCudaFailNoMore();
  }
}

TEST_F(CudaIpcImportsTest, MemoryThatWasFreedIsFreeOnceItIsClosed) {
  Configure({.memory_bytes = 4 * kBytes});
  to_.emplace(kBytes);
  CudaIpcImports imports = Imports();
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

}  // namespace
}  // namespace sluice
