// Compares what was delivered with what the fill says, also after a transform.
//
// A transform is computed once more with plain scalar code; what is delivered must have its bits.
#ifndef SLUICE_BENCH_STREAM_ITEM_CHECK_H_
#define SLUICE_BENCH_STREAM_ITEM_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "job/flags.h"
#include "sluice/stream.h"
#include "sluice/tensor.h"
#include "stream/contents.h"

namespace sluice::bench {

class ItemCheck {
 public:
  // `contents` must outlive this object.
  ItemCheck(const Contents* contents, Check check, const absl::optional<ItemTransform>& transform);

  // Elements of `view` that are wrong, of those that are looked at: all, or with kSample the first
  // and the last 4 KiB, and 4 KiB of every 64. All elements, and one at least, if the view is not
  // as large as the item.
  int64_t Wrong(int64_t item, const TensorView& view) const;

 private:
  std::vector<int64_t> ShapeOf(int64_t item) const;
  std::vector<int64_t> DeliveredShape(int64_t item) const;
  bool IsOfRightShape(int64_t item, const TensorView& view) const;
  int64_t WrongIn(int64_t item, const std::byte* data, int64_t begin, int64_t end) const;

  const Contents* const contents_;
  const Check check_;
  const absl::optional<ItemTransform> transform_;
  // What the fill's numbers become, one behind the other, for each channel.
  std::vector<std::byte> transformed_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_STREAM_ITEM_CHECK_H_
