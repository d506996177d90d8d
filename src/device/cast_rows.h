// Casts of contiguous rows of elements between floating types, by the widest vectors at hand.
//
// Rounds once, to nearest even. Too large a value becomes infinity. In f8e4m3, which has none, such
// a value and infinities become 448, the largest number, with their sign. NaN stays NaN: quiet,
// with its sign and the leading bits of its payload. The results are the same bits on every
// processor. Callers set the mode for that (float_mode.h).
#ifndef SLUICE_SRC_DEVICE_CAST_ROWS_H_
#define SLUICE_SRC_DEVICE_CAST_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "device/copy_rows.h"
#include "device/stores.h"
#include "sluice/tensor.h"

namespace sluice {

// How to cast rows of one type into another; cheap to make.
class RowCast {
 public:
  // The types differ, and CastExists(from, to).
  RowCast(DType from, DType to);

  // Casts `elements` elements. Any alignment will do. The two sides must not overlap.
  void Cast(const std::byte* src, std::byte* dst, int64_t elements) const;

  // True if Stream() may be called: casts of two steps have none.
  bool streams() const { return stream_ != nullptr; }
  // Casts `axis.count` pieces with streaming stores, as stream_rows.h copies them.
  void Stream(const std::byte* src, std::byte* dst, const CopyAxis& axis,
              int64_t piece_elements) const {
    stream_(src, dst, axis, piece_elements);
  }

  int64_t src_bytes() const { return src_bytes_; }  // of one element
  int64_t dst_bytes() const { return dst_bytes_; }

 private:
  using Step = void (*)(const std::byte* src, std::byte* dst, int64_t elements);

  // With two steps there is a row of f32 between them.
  Step first_ = nullptr;
  Step second_ = nullptr;  // or none
  void (*stream_)(const std::byte* src, std::byte* dst, const CopyAxis& axis,
                  int64_t piece_elements) = nullptr;
  int64_t src_bytes_;
  int64_t dst_bytes_;
};

// Casts rows.count x columns.count pieces of `piece_elements` consecutive elements each: what
// copy_rows.h does, for two types instead of one. Source and destination must not overlap.
// CopyRows says more of `stores`.
void CastGrid(const RowCast& cast, const std::byte* src, std::byte* dst, const CopyAxis& rows,
              const CopyAxis& columns, int64_t piece_elements, WriteHint stores);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CAST_ROWS_H_
