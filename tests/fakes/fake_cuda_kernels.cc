// The fake of the kernels: launches that run the kernels' bodies on a stream of the fake runtime.
//
// What a launch may touch is checked when it is launched: all bytes between the first and the last
// that its pieces reach must lie in one live allocation each.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda_runtime_api.h"
#include "device/cuda/cuda_cast_move.h"
#include "device/cuda/cuda_elements.h"
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/cuda_move.h"
#include "device/cuda/cuda_normalize.h"
#include "device/cuda/cuda_normalize_pixels.h"
#include "device/cuda/cuda_pieces.h"
#include "device/cuda/cuda_reduce.h"
#include "device/cuda/cuda_small.h"
#include "fakes/fake_cuda.h"
#include "fakes/fake_cuda_state.h"
#include "fakes/fake_cuda_tiles.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

// One for few pieces, and one for many.
struct Kernel {
  const char* few;
  const char* many;
};
constexpr Kernel kMoves = {"the kernel of few moves", "the kernel of many moves"};
constexpr Kernel kSmallCopies = {"the kernel of few small copies",
                                 "the kernel of many small copies"};
constexpr Kernel kCasts = {"the kernel of few casts", "the kernel of many casts"};
constexpr Kernel kTransposes = {"the kernel of few transposes", "the kernel of many transposes"};
constexpr Kernel kReductions = {"the kernel of few reductions", "the kernel of many reductions"};
constexpr Kernel kNormalizations = {"the kernel of few normalizations",
                                    "the kernel of many normalizations"};
constexpr Kernel kPixels = {"the kernel of few pixel boxes", "the kernel of many pixel boxes"};

cudaError_t Load(const Kernel& kernel) {
  const cudaError_t error = FakeCudaLoad(kernel.few);
  return error == cudaSuccess ? FakeCudaLoad(kernel.many) : error;
}

// Where one side of a piece lies, from the lowest to the highest byte.
struct Extent {
  int64_t begin = 0;  // from the first unit
  int64_t end = 0;
};

Extent Along(const CudaMove& piece, const int64_t* strides, int64_t unit_bytes) {
  Extent extent = {0, unit_bytes};
  int64_t units = piece.units;
  for (int axis = 0; axis < CudaMove::kAxes; ++axis) {
    const int64_t count = axis + 1 < CudaMove::kAxes ? int64_t{piece.counts[axis].divisor} : units;
    units /= count;
    const int64_t last = (count - 1) * strides[axis];
    (last < 0 ? extent.begin : extent.end) += last;
  }
  return extent;
}

int64_t Elements(CudaUnit unit, DType src, DType dst) {
  if (unit != CudaUnit::kFull) return 1;
  return FullUnit(static_cast<size_t>(DTypeBytes(src)), static_cast<size_t>(DTypeBytes(dst)));
}

struct Sides {
  Extent src;
  Extent dst;
};

Sides SidesOf(const CudaMove& piece) {
  int64_t src_bytes = piece.unit_bytes;
  int64_t dst_bytes = piece.unit_bytes;
  if (piece.src_dtype != piece.dst_dtype) {
    const int64_t elements = Elements(piece.unit, piece.src_dtype, piece.dst_dtype);
    src_bytes = elements * DTypeBytes(piece.src_dtype);
    dst_bytes = elements * DTypeBytes(piece.dst_dtype);
  }
  return {Along(piece, piece.src_strides, src_bytes), Along(piece, piece.dst_strides, dst_bytes)};
}

Sides SidesOf(const CudaTranspose& piece) {
  Sides sides = {{0, piece.element_bytes}, {0, piece.element_bytes}};
  const auto reach = [](Extent* extent, int64_t last, int64_t stride) {
    (stride < 0 ? extent->begin : extent->end) += last * stride;
  };
  const int64_t outer = piece.tiles / (piece.tiles_across.divisor * piece.tiles_down.divisor);
  const int64_t counts[] = {piece.outer.divisor, outer / piece.outer.divisor};
  for (int i = 0; i < 2; ++i) {
    reach(&sides.src, counts[i] - 1, piece.src_outer[i]);
    reach(&sides.dst, counts[i] - 1, piece.dst_outer[i]);
  }
  reach(&sides.src, int64_t{piece.across} - 1, piece.element_bytes);
  reach(&sides.src, int64_t{piece.down} - 1, piece.src_stride);
  reach(&sides.dst, int64_t{piece.down} - 1, piece.element_bytes);
  reach(&sides.dst, int64_t{piece.across} - 1, piece.dst_stride);
  return sides;
}

Sides SidesOf(const CudaReduction& piece) {
  const int64_t bytes =
      piece.units * DTypeBytes(piece.dtype) *
      (piece.unit == CudaUnit::kFull ? FullUnit(static_cast<size_t>(DTypeBytes(piece.dtype)), 1)
                                     : 1);
  return {{0, bytes}, {0, bytes}};
}

Sides SidesOf(const CudaNormalization& piece) {
  const int64_t elements = piece.units * Elements(piece.unit, piece.src_dtype, piece.dst_dtype);
  return {{0, elements * DTypeBytes(piece.src_dtype)}, {0, elements * DTypeBytes(piece.dst_dtype)}};
}

Sides SidesOf(const CudaPixels& piece) {
  const int64_t columns = piece.columns.divisor;
  const int64_t channels = int64_t{piece.units_of_pixel.divisor} * piece.channels_of_unit;
  const int64_t rows = piece.units / (columns * piece.units_of_pixel.divisor);
  const int64_t src_bytes = DTypeBytes(piece.src_dtype);
  const int64_t src_last = (rows - 1) * piece.src_row + (columns - 1) * piece.src_pixel;
  const int64_t dst_last = (rows - 1) * piece.dst_row + (columns - 1) * piece.dst_pixel +
                           (channels - 1) * piece.dst_channel;
  return {{0, src_last + channels * src_bytes}, {0, dst_last + DTypeBytes(piece.dst_dtype)}};
}

FakeCudaRange RangeOf(const std::byte* at, const Extent& extent) {
  return {at + extent.begin, static_cast<size_t>(extent.end - extent.begin)};
}

// The same bytes for the host, or null if they are in no allocation.
std::byte* OnHost(const std::byte* at, const Extent& extent) {
  const FakeCudaRange range = RangeOf(at, extent);
  auto* const begin = static_cast<std::byte*>(FakeCudaHostPointer(range.pointer, range.bytes));
  return begin == nullptr ? nullptr : begin - extent.begin;
}

void NoteMisaligned() {
  if (const int64_t misaligned = misaligned_accesses.exchange(0); misaligned > 0) {
    fake_cuda::AddMisuse("a kernel's accesses at addresses that are no multiple of their size: " +
                         std::to_string(misaligned));
  }
}

template <class Piece, void (*kRun)(const Piece* pieces, int count, uint32_t tiles)>
cudaError_t Launch(const Kernel& kernel, const CudaLaunch& launch, Piece* pieces, int count) {
  if (count < 1 || count > LaunchRoom<Piece>::kMany) return cudaErrorInvalidValue;
  const uint32_t tiles = NumberTiles(pieces, count);
  std::vector<FakeCudaRange> uses;
  for (int i = 0; i < count; ++i) {
    const Sides sides = SidesOf(pieces[i]);
    uses.push_back(RangeOf(pieces[i].src, sides.src));
    uses.push_back(RangeOf(pieces[i].dst, sides.dst));
  }
  return FakeCudaLaunch(
      count <= LaunchRoom<Piece>::kFew ? kernel.few : kernel.many, launch.stream,
      [launched = std::vector<Piece>(pieces, pieces + count), tiles]() mutable {
        for (Piece& piece : launched) {
          const Sides sides = SidesOf(piece);
          piece.src = OnHost(piece.src, sides.src);
          piece.dst = OnHost(piece.dst, sides.dst);
          if (piece.src == nullptr || piece.dst == nullptr) return;
        }
        kRun(launched.data(), static_cast<int>(launched.size()), tiles);
        NoteMisaligned();
      },
      uses);
}

}  // namespace

cudaError_t LaunchMoves(const CudaLaunch& launch, CudaMove* pieces, int count) {
  return Launch<CudaMove, &RunTiles<CudaMove, &Move>>(kMoves, launch, pieces, count);
}

cudaError_t LaunchSmallCopies(const CudaLaunch& launch, const CudaSmallCopies& copies, int count) {
  using Room = LaunchRoom<CudaSmallCopy>;
  if (count < 1 || count > Room::kMany) return cudaErrorInvalidValue;
  struct OneCopy {
    const std::byte* src;
    std::byte* dst;
    Extent extent;
  };
  std::vector<OneCopy> all;
  std::vector<FakeCudaRange> uses;
  for (int i = 0; i < count; ++i) {
    const CudaSmallCopy& copy = copies.copies[i];
    all.push_back({copy.From(copies.src), copy.To(copies.dst), {0, copy.bytes}});
    uses.push_back(RangeOf(all.back().src, all.back().extent));
    uses.push_back(RangeOf(all.back().dst, all.back().extent));
  }
  return FakeCudaLaunch(
      count <= Room::kFew ? kSmallCopies.few : kSmallCopies.many, launch.stream,
      [all] {
        for (const OneCopy& one : all) {
          const std::byte* const src = OnHost(one.src, one.extent);
          std::byte* const dst = OnHost(one.dst, one.extent);
          if (src == nullptr || dst == nullptr) return;
          const CudaSmallCopy whole = {.bytes = static_cast<uint16_t>(one.extent.end)};
          for (uint32_t lane = 0; lane < kSmallLanes; ++lane) CopySmall(src, dst, whole, lane);
        }
        NoteMisaligned();
      },
      uses);
}

cudaError_t LaunchCasts(const CudaLaunch& launch, CudaMove* pieces, int count) {
  return Launch<CudaMove, &RunTiles<CudaMove, &Cast>>(kCasts, launch, pieces, count);
}

cudaError_t LaunchTransposes(const CudaLaunch& launch, CudaTranspose* pieces, int count) {
  return Launch<CudaTranspose, &RunTransposes>(kTransposes, launch, pieces, count);
}

cudaError_t LaunchReductions(const CudaLaunch& launch, CudaReduction* pieces, int count) {
  return Launch<CudaReduction, &RunTiles<CudaReduction, &Reduce>>(kReductions, launch, pieces,
                                                                  count);
}

cudaError_t LaunchNormalizations(const CudaLaunch& launch, CudaNormalization* pieces, int count) {
  return Launch<CudaNormalization, &RunTiles<CudaNormalization, &Normalize>>(kNormalizations,
                                                                             launch, pieces, count);
}

cudaError_t LaunchPixels(const CudaLaunch& launch, CudaPixels* pieces, int count) {
  return Launch<CudaPixels, &RunTiles<CudaPixels, &NormalizePixels>>(kPixels, launch, pieces,
                                                                     count);
}

cudaError_t LoadMoves() { return Load(kMoves); }

cudaError_t LoadSmallCopies() { return Load(kSmallCopies); }

cudaError_t LoadCasts() { return Load(kCasts); }

cudaError_t LoadTransposes() { return Load(kTransposes); }

cudaError_t LoadReductions() { return Load(kReductions); }

cudaError_t LoadNormalizations() { return Load(kNormalizations); }

cudaError_t LoadPixels() { return Load(kPixels); }

}  // namespace sluice
