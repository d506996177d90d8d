// Folds several rows of elements into one that is written once: a reduction whose contributions lie
// side by side.
#ifndef SLUICE_SRC_DEVICE_FOLD_ROWS_H_
#define SLUICE_SRC_DEVICE_FOLD_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "device/reduce_rows.h"
#include "device/stores.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {

// How to fold rows of one type; cheap to make.
class RowFold {
 public:
  // `dtype` is not bool. The result is divided by `divisor` if that is above 1.
  RowFold(ReduceOp op, DType dtype, int64_t divisor);

  // Stores ((sources[0][i] op sources[1][i]) op sources[2][i]) ... / divisor to dst[i]. The bits
  // are those that Reduction gives, which adds sources[1] to what sources[0] has, then sources[2],
  // and so on. Two sources or more, contiguous, of any alignment. The destination overlaps none of
  // them, or is the first. Each source is read once, and each line of dst is written once. Nothing
  // else is read. kStreaming (never kAuto) asks for a StreamFence() afterwards, as stream_rows.h
  // says. Allocates nothing. Thread: any.
  void Fold(absl::Span<const std::byte* const> sources, std::byte* dst, int64_t elements,
            WriteHint stores) const;

  int64_t element_bytes() const { return element_bytes_; }

 private:
  FoldRows fold_;
  FoldRows stream_;   // or null
  DivideRow divide_;  // null: the folds divide
  int64_t divisor_;
  int64_t element_bytes_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_FOLD_ROWS_H_
