// What kernels do, run by the host: pieces and their bodies against the host's loops and against
// the oracles.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "device/cuda/cuda_cast.h"
#include "device/cuda/cuda_cast_move.h"
#include "device/cuda/cuda_cutter.h"
#include "device/cuda/cuda_move.h"
#include "device/cuda/cuda_normalize.h"
#include "device/cuda/cuda_normalize_pixels.h"
#include "device/cuda/cuda_pieces.h"
#include "device/cuda/cuda_pixel_cutter.h"
#include "device/cuda/cuda_reduce.h"
#include "device/cuda/cuda_small.h"
#include "device/float_oracle.h"
#include "device/normalization.h"
#include "device/plain_normalization.h"
#include "device/reduction.h"
#include "device/reduction_codes.h"
#include "device/reference_copy.h"
#include "device/strided_copy.h"
#include "fakes/fake_cuda_tiles.h"
#include "gtest/gtest.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice {
namespace {

std::vector<std::byte> RandomBytes(size_t bytes, std::mt19937_64& random) {
  std::vector<std::byte> all(bytes);
  for (std::byte& byte : all) byte = static_cast<std::byte>(random());
  return all;
}

constexpr uint64_t kSeeds = 5000;

// A device cannot load or store at an address that is no multiple of the access.
void ExpectAligned(const CudaMove& piece) {
  const int64_t src = piece.src_dtype == piece.dst_dtype   ? piece.unit_bytes
                      : piece.unit == CudaUnit::kUnaligned ? 1
                                                           : DTypeBytes(piece.src_dtype);
  for (int axis = 0; axis < CudaMove::kAxes; ++axis) ASSERT_EQ(piece.src_strides[axis] % src, 0);
  ASSERT_EQ(reinterpret_cast<uintptr_t>(piece.src) % static_cast<uint64_t>(src), 0u);
  if (piece.src_dtype == piece.dst_dtype) {
    ASSERT_EQ(reinterpret_cast<uintptr_t>(piece.dst) % piece.unit_bytes, 0u);
  }
}

std::vector<CudaMove> PiecesOf(const StridedCopy& copy, bool whole_stretches = false) {
  std::vector<CudaMove> pieces;
  MoveCutter cutter(copy, whole_stretches);
  for (CudaMove piece; cutter.Next(&piece);) {
    EXPECT_GT(piece.units, 0u);
    ExpectAligned(piece);
    pieces.push_back(piece);
  }
  return pieces;
}

void RunCopy(const StridedCopy& copy, bool whole_stretches = false) {
  std::vector<CudaMove> pieces = PiecesOf(copy, whole_stretches);
  std::vector<CudaTranspose> transposes;
  std::erase_if(pieces, [&](const CudaMove& piece) {
    CudaTranspose transpose;
    if (!MakeTranspose(piece, &transpose)) return false;
    transposes.push_back(transpose);
    return true;
  });
  const int transpose_count = static_cast<int>(transposes.size());
  RunTransposes(transposes.data(), transpose_count,
                NumberTiles(transposes.data(), transpose_count));
  const int count = static_cast<int>(pieces.size());
  const uint32_t tiles = NumberTiles(pieces.data(), count);
  if (copy.src_dtype == copy.dst_dtype) {
    RunTiles<CudaMove, &Move>(pieces.data(), count, tiles);
  } else {
    RunTiles<CudaMove, &Cast>(pieces.data(), count, tiles);
  }
}

TEST(CudaMoveTest, RandomCopiesMoveExactlyTheirElements) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    RandomCopy random(seed);
    const std::vector<std::byte> expected = random.Expected();
    RunCopy(random.copy, seed % 2 == 0);
    ASSERT_TRUE(random.dst_memory == expected) << "seed " << seed;
  }
}

TEST(CudaMoveTest, PartsThatFollowEachOtherMakeTheWhole) {
  for (uint64_t seed = 0; seed < kSeeds / 10; ++seed) {
    RandomCopy random(seed);
    const std::vector<std::byte> expected = random.Expected();
    const int64_t elements = random.copy.end - random.copy.begin;
    StridedCopy part = random.copy;
    for (const int64_t cut : {elements / 3, elements / 2, elements}) {
      part.end = random.copy.begin + cut;
      RunCopy(part);
      part.begin = part.end;
    }
    ASSERT_TRUE(random.dst_memory == expected) << "seed " << seed;
  }
}

// Both sides at each place modulo 16, sizes from one byte on. Each byte once, none beside them.
TEST(CudaSmallCopyTest, CopiesItsBytesAndNoOthers) {
  std::mt19937_64 random(1);
  constexpr uint32_t kRoom = 64;
  for (uint32_t src_at = 0; src_at < 16; ++src_at) {
    for (uint32_t dst_at = 0; dst_at < 16; ++dst_at) {
      for (const uint32_t bytes : {1u, 2u, 15u, 16u, 17u, 100u, 256u, 1023u, 4096u}) {
        const std::vector<std::byte> src = RandomBytes(bytes + 2 * kRoom, random);
        std::vector<std::byte> dst = RandomBytes(bytes + 2 * kRoom, random);
        std::vector<std::byte> expected = dst;
        std::copy_n(src.begin() + kRoom + src_at, bytes, expected.begin() + kRoom + dst_at);
        // Bases beyond 4 GiB away, as a launch has them.
        const uint64_t away = uint64_t{0x12'3456'7890} + src_at;
        CudaSmallCopy copy;
        copy.src = copy.dst = static_cast<uint32_t>(away);
        copy.src_high = copy.dst_high = static_cast<uint8_t>(away >> 32);
        copy.bytes = static_cast<uint16_t>(bytes);
        misaligned_accesses = 0;
        for (uint32_t lane = kSmallLanes; lane-- > 0;) {
          CopySmall(src.data() + kRoom + src_at - away, dst.data() + kRoom + dst_at - away, copy,
                    lane);
        }
        ASSERT_TRUE(dst == expected) << src_at << " to " << dst_at << ", " << bytes << " bytes";
        ASSERT_EQ(misaligned_accesses.exchange(0), 0);
      }
    }
  }
}

// The last dimension of src_memory, of one type, every second row.
TEST(CudaMoveTest, RowsAreOnePieceOfWideUnits) {
  alignas(16) std::array<std::byte, 4096> src = {};
  alignas(16) std::array<std::byte, 4096> dst = {};
  BoxCopy box(DType::kF32, {8, 64}, {512, 4}, {256, 4});
  box.copy.src = src.data();
  box.copy.dst = dst.data();
  const std::vector<CudaMove> pieces = PiecesOf(box.copy);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].unit_bytes, 16);
  EXPECT_EQ(pieces[0].units, 128u);
}

// Runs as a block-cyclic layout has them.
TEST(CudaMoveTest, RunsAtEqualDistancesAreOnePiece) {
  alignas(16) std::array<std::byte, 4096> src = {};
  alignas(16) std::array<std::byte, 4096> dst = {};
  std::vector<Stretch> runs;
  for (int64_t i = 0; i < 50; ++i) runs.push_back({i * 12, i * 4, 4});
  StridedCopy copy;
  copy.runs[0] = runs;
  copy.src_dtype = copy.dst_dtype = DType::kF32;
  copy.src_strides[0] = copy.dst_strides[0] = 4;
  copy.src = src.data();
  copy.dst = dst.data();
  copy.end = 200;
  const std::vector<CudaMove> pieces = PiecesOf(copy);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].unit_bytes, 16);
  EXPECT_EQ(pieces[0].units, 50u);
}

TEST(CudaMoveTest, StretchesAreWideButForTheirEnds) {
  alignas(16) std::array<std::byte, 4096> src = {};
  alignas(16) std::array<std::byte, 4096> dst = {};
  BoxCopy box(DType::kU8, {1000}, {1}, {1});
  box.copy.src = src.data() + 5;
  box.copy.dst = dst.data() + 21;
  const std::vector<CudaMove> pieces = PiecesOf(box.copy);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].units, 11u);
  EXPECT_EQ(pieces[1].unit_bytes, 16);
  EXPECT_EQ(pieces[1].units, 61u);
  EXPECT_EQ(pieces[2].units, 13u);
  EXPECT_EQ(PiecesOf(box.copy, true).size(), 1u);
}

TEST(CudaMoveTest, TransposesMatricesOfAnySizeAndType) {
  std::mt19937_64 random(7);
  int transposed = 0;
  for (const DType dtype : {DType::kU8, DType::kBF16, DType::kF32, DType::kF64}) {
    for (const int64_t rows : {16, 31, 64, 65, 200}) {
      for (const int64_t columns : {17, 64, 130}) {
        constexpr int64_t kMatrices = 3;
        const int64_t bytes = DTypeBytes(dtype);
        std::vector<std::byte> src =
            RandomBytes(static_cast<size_t>(kMatrices * rows * columns * bytes), random);
        std::vector<std::byte> dst(src.size());
        std::vector<std::byte> expected(src.size());
        const int64_t matrix = rows * columns * bytes;
        BoxCopy box(dtype, {kMatrices, rows, columns}, {matrix, bytes, rows * bytes},
                    {matrix, columns * bytes, bytes});
        StridedCopy& copy = box.copy;
        copy.src = src.data();
        copy.dst = expected.data();
        CopyStrided(copy);
        copy.dst = dst.data();
        for (const CudaMove& piece : PiecesOf(copy)) {
          CudaTranspose transpose;
          transposed += MakeTranspose(piece, &transpose) ? 1 : 0;
        }
        RunCopy(copy);
        ASSERT_TRUE(dst == expected) << DTypeName(dtype) << " " << rows << " x " << columns;
      }
    }
  }
  EXPECT_EQ(transposed, 60);
}

// Larger than what is cut at a time; nothing is touched.
TEST(CudaMoveTest, HugeCopiesAreCutIntoPiecesOfBoundedSize) {
  BoxCopy box(DType::kU8, {3'000'000, 1000}, {3001, 3}, {1000, 1});
  StridedCopy& copy = box.copy;
  copy.src = reinterpret_cast<const std::byte*>(0x100'0000'0000);
  copy.dst = reinterpret_cast<std::byte*>(0x1000'0000'0000);
  copy.begin = 17;
  copy.end = 3'000'000'000;
  int64_t units = 0;
  for (const CudaMove& piece : PiecesOf(copy)) {
    EXPECT_LE(piece.units, kMaxPieceUnits);
    units += int64_t{piece.units} * piece.unit_bytes;
  }
  EXPECT_EQ(units, copy.end - copy.begin);
}

TEST(CudaPiecesTest, DivisionsAreExact) {
  std::mt19937 random(3);
  for (int i = 0; i < 200000; ++i) {
    const uint32_t divisor = (static_cast<uint32_t>(random()) >> (1 + random() % 31)) + 1;
    const FastDivisor fast(divisor);
    for (uint32_t value : {static_cast<uint32_t>(random()) >> (1 + random() % 30), divisor - 1,
                           divisor, 2 * divisor - 1, (uint32_t{1} << 31) - 1}) {
      value &= 0x7FFFFFFFu;
      ASSERT_EQ(fast.Quotient(value), value / divisor) << value << " / " << divisor;
    }
  }
}

// One row of all codes, cast by the body that GPUs run.
void ExpectCasts(DType from, DType to, const std::vector<uint64_t>& codes) {
  const std::vector<std::byte> src = StoreCodes(codes, from);
  const auto bytes = static_cast<size_t>(DTypeBytes(to));
  std::vector<std::byte> dst(codes.size() * bytes);
  BoxCopy box(from, {static_cast<int64_t>(codes.size())}, {DTypeBytes(from)}, {DTypeBytes(to)});
  box.copy.dst_dtype = to;
  box.copy.src = src.data();
  box.copy.dst = dst.data();
  RunCopy(box.copy);
  for (size_t i = 0; i < codes.size(); ++i) {
    ASSERT_EQ(LoadCode(dst.data() + i * bytes, to), CastCode(from, to, codes[i]))
        << DTypeName(from) << " " << std::hex << codes[i] << " to " << DTypeName(to);
  }
}

TEST(CudaCastTest, EveryValueOfTheSmallTypesToEveryType) {
  for (const DType from : kSmallTypes) {
    const int bits = FormatOf(from).bits();
    ASSERT_LT(bits, 32);
    std::vector<uint64_t> codes(size_t{1} << bits);
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = i;
    for (const DType to : kFloatTypes) {
      if (to != from) ExpectCasts(from, to, codes);
    }
  }
}

// All signs, exponents and leading bits of the mantissa, with what decides a rounding below them.
TEST(CudaCastTest, DenseSamplesOfTheWideTypes) {
  std::vector<uint64_t> f32;
  std::vector<uint64_t> f64;
  std::mt19937_64 random(4);
  for (uint64_t high = 0; high < 1 << 16; ++high) {
    for (const uint64_t low : {uint64_t{0}, uint64_t{1}, uint64_t{0x7FFF}, uint64_t{0x8000},
                               uint64_t{0x8001}, uint64_t{0xFFFF}, random() & 0xFFFF}) {
      f32.push_back(high << 16 | low);
      const uint64_t wide = CastCode(DType::kF32, DType::kF64, f32.back());
      for (const uint64_t lowest : {uint64_t{0}, uint64_t{1}, uint64_t{0x10000000}, random()}) {
        f64.push_back(wide | (lowest & 0x1FFFFFFF));
      }
    }
  }
  for (int i = 0; i < 200000; ++i) f64.push_back(random());
  for (const DType to : kFloatTypes) {
    if (to != DType::kF32) ExpectCasts(DType::kF32, to, f32);
    if (to != DType::kF64) ExpectCasts(DType::kF64, to, f64);
  }
}

template <class Piece, void (*kOnUnits)(const Piece&, uint32_t, uint32_t), class Work>
void RunStretches(const Work& work) {
  std::vector<Piece> pieces;
  StretchCutter cutter = CutterOf(work);
  for (CudaStretch stretch; cutter.Next(&stretch);) pieces.push_back(PieceOf(work, stretch));
  const int count = static_cast<int>(pieces.size());
  const uint32_t tiles = NumberTiles(pieces.data(), count);
  RunTiles<Piece, kOnUnits>(pieces.data(), count, tiles);
}

TEST(CudaReduceTest, GivesTheBitsOfTheHost) {
  std::mt19937_64 random(5);
  for (const DType dtype : kReducedTypes) {
    for (const ReduceOp op : kReduceOps) {
      for (const int64_t divisor : {0, 1, 2, 3, 7}) {
        const int64_t bytes = DTypeBytes(dtype);
        const int64_t elements = static_cast<int64_t>(random() % 3000);
        // Aligned alike, differently, and not at all.
        const size_t src_shift = random() % 3 == 0 ? random() % 16 : 0;
        const size_t dst_shift = random() % 3 == 0 ? random() % 16 : src_shift;
        const size_t size = static_cast<size_t>(elements * bytes) + 64;
        const std::vector<std::byte> src = RandomBytes(size, random);
        std::vector<std::byte> dst = RandomBytes(size, random);
        std::copy_n(src.begin() + 40, std::min<size_t>(size - 40, 30), dst.begin() + 40);
        std::vector<std::byte> expected = dst;
        Reduction reduction = {
            op, dtype, src.data() + src_shift, expected.data() + dst_shift, elements, divisor};
        Reduce(reduction);
        reduction.dst = dst.data() + dst_shift;
        RunStretches<CudaReduction, &Reduce>(reduction);
        ASSERT_TRUE(dst == expected)
            << DTypeName(dtype) << " op " << static_cast<int>(op) << " / " << divisor;
      }
    }
  }
}

TEST(CudaNormalizeTest, GivesTheBitsOfTheHost) {
  std::mt19937_64 random(6);
  for (const DType from : {DType::kU8, DType::kI16, DType::kF16, DType::kBF16, DType::kF32}) {
    for (const DType to : {DType::kF16, DType::kBF16, DType::kF32}) {
      for (int round = 0; round < 20; ++round) {
        const auto elements = static_cast<int64_t>(random() % 5000);
        const size_t src_shift = random() % 2 == 0 ? random() % 16 : 0;
        const size_t dst_shift = random() % 2 == 0 ? random() % 16 : 0;
        const std::vector<std::byte> src =
            RandomBytes(static_cast<size_t>(elements * DTypeBytes(from)) + 16, random);
        std::vector<std::byte> dst(static_cast<size_t>(elements * DTypeBytes(to)) + 16);
        std::vector<std::byte> expected = dst;
        Normalization normalization = {from, to,
                                       std::bit_cast<float>(static_cast<uint32_t>(random())),
                                       std::bit_cast<float>(static_cast<uint32_t>(random()))};
        if (round % 2 == 0) normalization.scale = 0.1f, normalization.bias = -1.7f;
        normalization.src = src.data() + src_shift;
        normalization.dst = expected.data() + dst_shift;
        normalization.elements = elements;
        Normalize(normalization);
        normalization.dst = dst.data() + dst_shift;
        RunStretches<CudaNormalization, &Normalize>(normalization);
        ASSERT_TRUE(dst == expected) << DTypeName(from) << " to " << DTypeName(to);
      }
    }
  }
}

TEST(CudaNormalizePixelsTest, GivesTheBitsOfPlainCode) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    RandomPixels random(seed);
    const std::vector<std::byte> expected = random.Expected();
    std::vector<CudaPixels> pieces;
    PixelCutter cutter(random.how);
    for (CudaPixels piece; cutter.Next(&piece);) {
      ASSERT_GT(piece.units, 0u);
      pieces.push_back(piece);
    }
    ASSERT_LE(pieces.size(), 5u);
    const int count = static_cast<int>(pieces.size());
    const uint32_t tiles = NumberTiles(pieces.data(), count);
    const int64_t misaligned = misaligned_accesses;
    RunTiles<CudaPixels, &NormalizePixels>(pieces.data(), count, tiles);
    ASSERT_TRUE(random.dst_memory == expected) << "seed " << seed;
    ASSERT_EQ(misaligned_accesses, misaligned) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice
