// CUDA IPC of allocations that share a block, in each way that drivers may have of naming such
// memory and of opening it.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_rig.h"
#include "gtest/gtest.h"
#include "sluice/cuda.h"
#include "transport/contract_rank.h"
#include "transport/cuda_contract.h"
#include "transport/cuda_ipc/cuda_ipc_handles.h"
#include "transport/thread_ranks.h"

namespace sluice {

namespace {

constexpr uint64_t kBlockBytes = uint64_t{2} << 20;
constexpr int kPeer = 1;

struct Driver {
  const char* name;
  bool handles_open_blocks;
  bool ranges_are_blocks;
};

uint64_t BlockOf(const void* data) { return reinterpret_cast<uintptr_t>(data) / kBlockBytes; }

// What rank 0 has for rank 1, which knows all but where it is.
struct Piece {
  std::byte* data;
  size_t bytes;
  uint64_t seed;
};
using Pieces = std::vector<Piece>;

void Add(ContractRank& r, Pieces* pieces, size_t bytes, uint64_t seed) {
  pieces->push_back({r.rank() == 0 ? r.FilledBuffer(bytes, seed) : nullptr, bytes, seed});
  EXPECT_EQ(BlockOf(pieces->back().data), BlockOf(pieces->front().data));
}

void Free(ContractRank& r, Pieces* pieces, size_t which) {
  if (r.rank() == 0) r.FreeBuffer((*pieces)[which].data);
  pieces->erase(pieces->begin() + static_cast<ptrdiff_t>(which));
}

void ShipAll(ContractRank& r, const Pieces& pieces) {
  std::vector<TransportOp> ops;
  for (const auto& [data, bytes, seed] : pieces) {
    ops.push_back(r.rank() == 0 ? r.Send(1, 0, data, bytes)
                                : r.Receive(0, 0, r.Buffer(bytes), bytes));
  }
  r.Start(ops);
  r.UntilAllEnded();
  for (size_t i = 0; r.rank() == 1 && i < pieces.size(); ++i) {
    EXPECT_TRUE(r.Matches(ops[i].data, pieces[i].bytes, pieces[i].seed)) << pieces[i].seed;
    r.FreeBuffer(ops[i].data);
  }
}

class CudaIpcBlocksTest : public testing::TestWithParam<Driver> {
 protected:
  static void Configure() {
    FakeCudaConfigure({.same_process_ipc = true,
                       .free_while_open = true,
                       .reuse_addresses = true,
                       .handles_open_blocks = GetParam().handles_open_blocks,
                       .ranges_are_blocks = GetParam().ranges_are_blocks});
  }

  static void RunTwoRanks(const ContractScript& script) {
    Configure();
    RunOnThreads(
        {0, 0},
        [](std::unique_ptr<Fabric> fabric) {
          return std::make_unique<ContractRank>(
              std::move(fabric), CudaContractMemory(0, *MakeCudaIpcTransport(nullptr)));
        },
        [&script](ContractRank& r) {
          r.Reserve(16);
          script(r);
        });
  }
};

TEST_P(CudaIpcBlocksTest, AllOfABlockArrive) {
  RunTwoRanks([](ContractRank& r) {
    Pieces pieces;
    for (const size_t bytes : {3000, 1, 100000, 700, 65536}) Add(r, &pieces, bytes, bytes);
    ShipAll(r, pieces);
    std::swap(pieces.front(), pieces.back());
    ShipAll(r, pieces);
  });
}

TEST_P(CudaIpcBlocksTest, PartsOfAnAllocationArrive) {
  RunTwoRanks([](ContractRank& r) {
    constexpr size_t kBytes = 5000, kOffset = 1111, kPart = 2000;
    r.FilledBuffer(700, 1);
    std::byte* const whole = r.FilledBuffer(kBytes, 2);  // the same on both ranks
    std::byte* const received = r.Buffer(kPart);
    r.Start(
        {r.rank() == 0 ? r.Send(1, 0, whole + kOffset, kPart) : r.Receive(0, 0, received, kPart)});
    r.UntilAllEnded();
    if (r.rank() == 0) return;
    EXPECT_EQ(r.Read(received, kPart), r.Read(whole + kOffset, kPart));
  });
}

TEST_P(CudaIpcBlocksTest, WhatIsLeftOfABlockArrives) {
  RunTwoRanks([](ContractRank& r) {
    Pieces pieces;
    for (uint64_t seed = 1; seed <= 5; ++seed) Add(r, &pieces, 1000 * seed, seed);
    ShipAll(r, pieces);
    for (const size_t which : {0, 2, 1, 1}) {
      Free(r, &pieces, which);
      ShipAll(r, pieces);
    }
  });
}

TEST_P(CudaIpcBlocksTest, WhatLiesWhereOthersWereFreedArrives) {
  RunTwoRanks([](ContractRank& r) {
    Pieces pieces;
    for (uint64_t seed = 1; seed <= 4; ++seed) Add(r, &pieces, 20000, seed);
    ShipAll(r, pieces);
    const std::byte* const place = pieces[1].data;
    // One of the same size, then a longer one in the place of two, then two in the place of it.
    Free(r, &pieces, 1);
    Add(r, &pieces, 20000, 11);
    EXPECT_EQ(pieces.back().data, place);
    ShipAll(r, pieces);
    Free(r, &pieces, 3);
    Free(r, &pieces, 1);
    Add(r, &pieces, 38000, 12);
    EXPECT_EQ(pieces.back().data, place);
    ShipAll(r, pieces);
    Free(r, &pieces, 2);
    Add(r, &pieces, 20000, 13);
    Add(r, &pieces, 15000, 14);
    EXPECT_EQ(pieces[2].data, place);
    ShipAll(r, pieces);
  });
}

// Opens on this thread what this thread has, as of another rank.
class CudaIpcBlockImportsTest : public CudaIpcBlocksTest {
 protected:
  void SetUp() override {
    Configure();
    const auto exporter = CudaIpcExporter::Create(int64_t{1} << 40);
    ASSERT_TRUE(exporter.ok()) << exporter.status();
    exporter_ = *exporter;
    stream_.emplace();
    imports_.emplace(CudaQueue{0, stream_->get()}, kPeer + 1);
  }

  // The value, if that is what is opened, once the memory is filled with it. -3 if it is not to be.
  int FillAndOpen(const CudaMemory& memory, unsigned char value) {
    std::vector<unsigned char> bytes(memory.bytes(), value);
    EXPECT_EQ(cudaMemcpy(memory.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice),
              cudaSuccess);
    if (!exporter_->Offer(static_cast<const std::byte*>(memory.data()))) return -3;
    const auto exported =
        exporter_->Export(static_cast<const std::byte*>(memory.data()), memory.bytes());
    if (!exported.ok()) return -1;
    const auto opened = imports_->Open(kPeer, *exported);
    if (!opened.ok()) return -2;
    EXPECT_EQ(cudaMemcpyAsync(bytes.data(), *opened, bytes.size(), cudaMemcpyDeviceToHost,
                              stream_->get()),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_->get()), cudaSuccess);
    for (const unsigned char byte : bytes) {
      if (byte != value) return byte;
    }
    return value;
  }

  std::optional<CudaIpcExporter> exporter_;
  std::optional<ScopedStream> stream_;
  std::optional<CudaIpcImports> imports_;
};

TEST_P(CudaIpcBlockImportsTest, OpensEachHandleOnce) {
  const CudaMemory first(1000), second(2000), third(3000);
  const int64_t before = FakeCudaCalls("cudaIpcOpenMemHandle");
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(FillAndOpen(third, 33), 33);
    EXPECT_EQ(FillAndOpen(first, 11), 11);
    EXPECT_EQ(FillAndOpen(second, 22), 22);
  }
  const int64_t opened = FakeCudaCalls("cudaIpcOpenMemHandle") - before;
  EXPECT_EQ(opened, GetParam().handles_open_blocks || GetParam().ranges_are_blocks ? 1 : 3);
  imports_.reset();
}

TEST_P(CudaIpcBlockImportsTest, OpensABlockWhereAnotherOneWas) {
  std::optional<CudaMemory> first(1000), second(2000);
  const void* const place = second->data();
  EXPECT_EQ(FillAndOpen(*first, 1), 1);
  EXPECT_EQ(FillAndOpen(*second, 2), 2);
  first.reset();
  EXPECT_EQ(FillAndOpen(*second, 3), 3);
  second.reset();
  first.emplace(1000);
  second.emplace(2000);
  ASSERT_EQ(second->data(), place);
  EXPECT_EQ(FillAndOpen(*second, 5), -3);
  imports_->CloseMemory();
  exporter_->ForgetOffers();
  EXPECT_EQ(FillAndOpen(*second, 5), 5);
  EXPECT_EQ(FillAndOpen(*first, 4), 4);
  imports_.reset();
}

// Its allocations are where they were, but the block was closed and opened again between.
TEST_P(CudaIpcBlockImportsTest, OpensAgainWhatItHasClosed) {
  const CudaMemory first(1000), second(2000);
  EXPECT_EQ(FillAndOpen(second, 2), 2);
  EXPECT_EQ(FillAndOpen(first, 1), 1);
  imports_->CloseMemory();
  EXPECT_EQ(FakeCudaCalls("cudaIpcOpenMemHandle"), FakeCudaCalls("cudaIpcCloseMemHandle"));
  EXPECT_EQ(FillAndOpen(first, 3), 3);
  EXPECT_EQ(FillAndOpen(second, 4), 4);
  imports_.reset();
}

std::vector<Driver> Drivers() {
  return {{"HandlesOfAllocations", false, false},
          {"HandlesOfBlocks", true, false},
          {"RangesAndHandlesOfBlocks", true, true}};
}
std::string NameOf(const testing::TestParamInfo<Driver>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Drivers, CudaIpcBlocksTest, testing::ValuesIn(Drivers()), NameOf);
INSTANTIATE_TEST_SUITE_P(Drivers, CudaIpcBlockImportsTest, testing::ValuesIn(Drivers()), NameOf);

}  // namespace
}  // namespace sluice
