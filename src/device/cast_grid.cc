// Long pieces are cast one by one. Short ones are gathered into a block in the first cache, cast
// there as one row, and scattered. So single elements go through the same vector code as rows.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "device/cast_rows.h"
#include "device/copy_rows.h"
#include "device/prefetcher.h"
#include "device/stores.h"
#include "device/stream_rows.h"
#include "tensor/check.h"

namespace sluice {
namespace {

// From here on a piece is cast where it lies; shorter ones are gathered.
constexpr int64_t kLongPieceElements = 128;

// Long pieces are cast by segments while what is read later is on its way. This holds also where
// long pieces follow each other without gaps, which the hardware alone reads a quarter slower.
constexpr int64_t kSegmentElements = 256;

// Elements of a block; both sides of it, of at most 8 bytes each, fit the first cache.
constexpr int64_t kBlockElements = 512;

// Side of a block where one side of the grid is the other transposed.
constexpr int64_t kTransposedSide = 32;

constexpr int64_t kElementBytesMax = 8;

// One side of a grid of pieces.
struct Side {
  int64_t row_stride;  // bytes
  int64_t column_stride;
  int64_t element_bytes;
};

// True if a block lies on this side as it lies in the buffer: without gaps, row after row.
bool IsDense(const Side& side, int64_t rows, int64_t columns, int64_t piece_elements) {
  const int64_t piece_bytes = piece_elements * side.element_bytes;
  return (columns == 1 || side.column_stride == piece_bytes) &&
         (rows == 1 || side.row_stride == columns * piece_bytes);
}

// Casts one block of at most kBlockElements elements.
void CastBlock(const RowCast& cast, const std::byte* src, std::byte* dst, const CopyAxis& rows,
               const CopyAxis& columns, int64_t piece_elements) {
  alignas(64) std::byte gathered[kBlockElements * kElementBytesMax];
  alignas(64) std::byte casted[kBlockElements * kElementBytesMax];
  const Side src_side = {rows.src_stride, columns.src_stride, cast.src_bytes()};
  const Side dst_side = {rows.dst_stride, columns.dst_stride, cast.dst_bytes()};
  if (!IsDense(src_side, rows.count, columns.count, piece_elements)) {
    const int64_t piece_bytes = piece_elements * cast.src_bytes();
    CopyGrid(src, gathered, {rows.count, rows.src_stride, columns.count * piece_bytes},
             {columns.count, columns.src_stride, piece_bytes}, piece_bytes, WriteHint::kPlain);
    src = gathered;
  }
  const int64_t elements = rows.count * columns.count * piece_elements;
  if (IsDense(dst_side, rows.count, columns.count, piece_elements)) {
    return cast.Cast(src, dst, elements);
  }
  cast.Cast(src, casted, elements);
  const int64_t piece_bytes = piece_elements * cast.dst_bytes();
  CopyGrid(casted, dst, {rows.count, columns.count * piece_bytes, rows.dst_stride},
           {columns.count, piece_bytes, columns.dst_stride}, piece_bytes, WriteHint::kPlain);
}

// How many rows and columns a block has.
struct BlockSize {
  int64_t rows;
  int64_t columns;
};

BlockSize BlockSizeOf(const CopyAxis& rows, const CopyAxis& columns, int64_t piece_elements) {
  const int64_t pieces = kBlockElements / piece_elements;
  const bool transposed =
      (rows.src_stride < columns.src_stride) != (rows.dst_stride < columns.dst_stride);
  const int64_t widest = transposed ? std::min(pieces, kTransposedSide) : pieces;
  const int64_t width = std::min(columns.count, widest);
  return {std::min(rows.count, std::max<int64_t>(1, pieces / width)), width};
}

void CastBlocks(const RowCast& cast, const std::byte* src, std::byte* dst, const CopyAxis& rows,
                const CopyAxis& columns, int64_t piece_elements) {
  const BlockSize block = BlockSizeOf(rows, columns, piece_elements);
  const int64_t piece_bytes = piece_elements * cast.src_bytes();
  // Gathered pieces are asked for early if each is at least one cache line.
  const bool prefetches = rows.count == 1 && piece_bytes >= kCacheLineBytes;
  Prefetcher prefetcher(src, columns.count, columns.src_stride, piece_bytes, piece_bytes);
  for (int64_t i = 0; i < rows.count; i += block.rows) {
    CopyAxis block_rows = rows;
    block_rows.count = std::min(block.rows, rows.count - i);
    for (int64_t j = 0; j < columns.count; j += block.columns) {
      CopyAxis block_columns = columns;
      block_columns.count = std::min(block.columns, columns.count - j);
      if (prefetches) {
        for (int64_t k = 0; k < block_columns.count; ++k) prefetcher.Next();
      }
      CastBlock(cast, src + i * rows.src_stride + j * columns.src_stride,
                dst + i * rows.dst_stride + j * columns.dst_stride, block_rows, block_columns,
                piece_elements);
    }
  }
}

void CastLongPieces(const RowCast& cast, const std::byte* src, std::byte* dst,
                    const CopyAxis& columns, int64_t piece_elements, WriteHint stores) {
  if (stores == WriteHint::kStreaming && cast.streams() &&
      StreamingPays(dst, columns, piece_elements * cast.dst_bytes())) {
    return cast.Stream(src, dst, columns, piece_elements);
  }
  const int64_t src_bytes = cast.src_bytes();
  Prefetcher prefetcher(src, columns.count, columns.src_stride, piece_elements * src_bytes,
                        kSegmentElements * src_bytes);
  for (int64_t i = 0; i < columns.count; ++i) {
    for (int64_t at = 0; at < piece_elements; at += kSegmentElements) {
      prefetcher.Next();
      cast.Cast(src + at * src_bytes, dst + at * cast.dst_bytes(),
                std::min(kSegmentElements, piece_elements - at));
    }
    src += columns.src_stride;
    dst += columns.dst_stride;
  }
}

}  // namespace

void CastGrid(const RowCast& cast, const std::byte* src, std::byte* dst, const CopyAxis& rows,
              const CopyAxis& columns, int64_t piece_elements, WriteHint stores) {
  SLUICE_CHECK(piece_elements > 0, "cast: pieces of no elements");
  if (columns.count > 1 && columns.src_stride == piece_elements * cast.src_bytes() &&
      columns.dst_stride == piece_elements * cast.dst_bytes()) {
    return CastGrid(cast, src, dst, {}, rows, columns.count * piece_elements, stores);
  }
  if (piece_elements < kLongPieceElements) {
    return CastBlocks(cast, src, dst, rows, columns, piece_elements);
  }
  for (int64_t i = 0; i < rows.count; ++i) {
    CastLongPieces(cast, src + i * rows.src_stride, dst + i * rows.dst_stride, columns,
                   piece_elements, stores);
  }
}

}  // namespace sluice
