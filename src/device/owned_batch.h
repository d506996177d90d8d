// A batch with all that it refers to but memory: what is left to do may have to wait.
#ifndef SLUICE_SRC_DEVICE_OWNED_BATCH_H_
#define SLUICE_SRC_DEVICE_OWNED_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "device/device.h"
#include "device/normalization.h"
#include "device/pixel_grid.h"
#include "device/reduction.h"
#include "device/strided_copy.h"
#include "tensor/stretch.h"

namespace sluice {

// Allocates only where a batch is larger than all before it.
class OwnedBatch {
 public:
  OwnedBatch() = default;
  OwnedBatch(const OwnedBatch&) = delete;
  OwnedBatch& operator=(const OwnedBatch&) = delete;

  void Assign(const CopyBatch& batch);

  absl::Span<const StridedCopy> copies() const { return copies_; }
  absl::Span<const SmallCopy> small_copies() const { return small_copies_; }
  absl::Span<const Reduction> reductions() const { return reductions_; }
  absl::Span<const Normalization> normalizations() const { return normalizations_; }
  bool empty() const {
    return copies_.empty() && small_copies_.empty() && reductions_.empty() &&
           normalizations_.empty();
  }
  uint64_t cookie() const { return cookie_; }
  bool in_stream_order() const { return in_stream_order_; }
  BatchStage stage() const { return stage_; }
  Fence* after() const { return after_; }
  Fence* then() const { return then_; }

 private:
  void AssignFactors();

  std::vector<StridedCopy> copies_;
  std::vector<SmallCopy> small_copies_;
  std::vector<Stretch> runs_;
  std::vector<Reduction> reductions_;
  std::vector<Normalization> normalizations_;
  std::vector<ChannelFactors> factors_;
  uint64_t cookie_ = 0;
  bool in_stream_order_ = false;
  BatchStage stage_ = BatchStage::kAny;
  Fence* after_ = nullptr;
  Fence* then_ = nullptr;
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_OWNED_BATCH_H_
