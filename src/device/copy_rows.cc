// Loops over pieces whose size the compiler knows, where that is worth it; memcpy for the rest.
#include "device/copy_rows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/stores.h"
#include "device/stream_rows.h"

namespace sluice {
namespace {

// Up to here a piece is moved by a few loads and stores in line. Above, a call of memcpy is cheap
// beside the bytes it moves.
constexpr int64_t kInlineBytes = 128;

// Tiles of a transposed grid. The strided side of a tile touches kTileColumns cache lines at a
// time. These have to fit the ways of one L1 set, as strides are often powers of two.
constexpr int64_t kTileColumns = 8;
constexpr int64_t kTileRows = 64;

template <size_t kBytes>
void CopyFixedRows(const std::byte* src, std::byte* dst, const CopyAxis& axis) {
#pragma GCC unroll 4
  for (int64_t i = 0; i < axis.count; ++i) {
    std::memcpy(dst, src, kBytes);
    src += axis.src_stride;
    dst += axis.dst_stride;
  }
}

// Pieces of kHalf .. 2 * kHalf bytes: both halves have a known size and may overlap.
template <size_t kHalf>
void CopyHalvedRows(const std::byte* src, std::byte* dst, const CopyAxis& axis,
                    int64_t piece_bytes) {
  const int64_t second = piece_bytes - static_cast<int64_t>(kHalf);
  for (int64_t i = 0; i < axis.count; ++i) {
    std::memcpy(dst, src, kHalf);
    std::memcpy(dst + second, src + second, kHalf);
    src += axis.src_stride;
    dst += axis.dst_stride;
  }
}

void CopyLongRows(const std::byte* src, std::byte* dst, const CopyAxis& axis, int64_t piece_bytes) {
  for (int64_t i = 0; i < axis.count; ++i) {
    std::memcpy(dst, src, static_cast<size_t>(piece_bytes));
    src += axis.src_stride;
    dst += axis.dst_stride;
  }
}

void CopyShortRows(const std::byte* src, std::byte* dst, const CopyAxis& axis,
                   int64_t piece_bytes) {
  switch (piece_bytes) {
    case 1:
      return CopyFixedRows<1>(src, dst, axis);
    case 2:
      return CopyFixedRows<2>(src, dst, axis);
    case 4:
      return CopyFixedRows<4>(src, dst, axis);
    case 8:
      return CopyFixedRows<8>(src, dst, axis);
    case 16:
      return CopyFixedRows<16>(src, dst, axis);
    case 32:
      return CopyFixedRows<32>(src, dst, axis);
    case 64:
      return CopyFixedRows<64>(src, dst, axis);
    default:
      break;
  }
  if (piece_bytes < 4) return CopyHalvedRows<2>(src, dst, axis, piece_bytes);
  if (piece_bytes < 8) return CopyHalvedRows<4>(src, dst, axis, piece_bytes);
  if (piece_bytes < 16) return CopyHalvedRows<8>(src, dst, axis, piece_bytes);
  if (piece_bytes < 32) return CopyHalvedRows<16>(src, dst, axis, piece_bytes);
  if (piece_bytes < 64) return CopyHalvedRows<32>(src, dst, axis, piece_bytes);
  CopyHalvedRows<64>(src, dst, axis, piece_bytes);
}

template <size_t kBytes>
void CopyFixedGrid(const std::byte* src, std::byte* dst, const CopyAxis& rows,
                   const CopyAxis& columns) {
  for (int64_t i = 0; i < rows.count; ++i) {
    CopyFixedRows<kBytes>(src, dst, columns);
    src += rows.src_stride;
    dst += rows.dst_stride;
  }
}

template <size_t kBytes>
void CopyTiles(const std::byte* src, std::byte* dst, const CopyAxis& rows,
               const CopyAxis& columns) {
  for (int64_t i = 0; i < rows.count; i += kTileRows) {
    const CopyAxis tile_rows = {std::min(kTileRows, rows.count - i), rows.src_stride,
                                rows.dst_stride};
    for (int64_t j = 0; j < columns.count; j += kTileColumns) {
      const CopyAxis tile_columns = {std::min(kTileColumns, columns.count - j), columns.src_stride,
                                     columns.dst_stride};
      CopyFixedGrid<kBytes>(src + i * rows.src_stride + j * columns.src_stride,
                            dst + i * rows.dst_stride + j * columns.dst_stride, tile_rows,
                            tile_columns);
    }
  }
}

template <size_t kBytes>
void CopySmallGrid(const std::byte* src, std::byte* dst, const CopyAxis& rows,
                   const CopyAxis& columns) {
  const bool src_by_columns = rows.src_stride < columns.src_stride;
  const bool dst_by_columns = rows.dst_stride < columns.dst_stride;
  if (src_by_columns == dst_by_columns) {
    CopyFixedGrid<kBytes>(src, dst, rows, columns);
  } else if (src_by_columns) {
    CopyTiles<kBytes>(src, dst, rows, columns);
  } else {
    CopyTiles<kBytes>(src, dst, columns, rows);  // the narrow side of a tile is the strided one
  }
}

}  // namespace

void CopyRows(const std::byte* src, std::byte* dst, const CopyAxis& axis, int64_t piece_bytes,
              WriteHint stores) {
  if (axis.count > 1 && axis.src_stride == piece_bytes && axis.dst_stride == piece_bytes) {
    return CopyRows(src, dst, {}, axis.count * piece_bytes, stores);
  }
  if (stores == WriteHint::kStreaming && StreamingPays(dst, axis, piece_bytes)) {
    StreamRows(src, dst, axis, piece_bytes);
  } else if (axis.count > 1 && piece_bytes <= kInlineBytes) {
    CopyShortRows(src, dst, axis, piece_bytes);
  } else {
    CopyLongRows(src, dst, axis, piece_bytes);
  }
}

void CopyGrid(const std::byte* src, std::byte* dst, const CopyAxis& rows, const CopyAxis& columns,
              int64_t piece_bytes, WriteHint stores) {
  if (columns.src_stride == piece_bytes && columns.dst_stride == piece_bytes) {
    return CopyRows(src, dst, rows, columns.count * piece_bytes, stores);
  }
  switch (piece_bytes) {
    case 1:
      return CopySmallGrid<1>(src, dst, rows, columns);
    case 2:
      return CopySmallGrid<2>(src, dst, rows, columns);
    case 4:
      return CopySmallGrid<4>(src, dst, rows, columns);
    case 8:
      return CopySmallGrid<8>(src, dst, rows, columns);
    case 16:
      return CopySmallGrid<16>(src, dst, rows, columns);
    default:
      break;
  }
  for (int64_t i = 0; i < rows.count; ++i) {
    CopyRows(src + i * rows.src_stride, dst + i * rows.dst_stride, columns, piece_bytes, stores);
  }
}

}  // namespace sluice
