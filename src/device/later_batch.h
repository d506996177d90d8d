// A batch of copies with all that it refers to, for devices that carry it out after Start.
#ifndef SLUICE_SRC_DEVICE_LATER_BATCH_H_
#define SLUICE_SRC_DEVICE_LATER_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/device.h"
#include "device/normalization.h"
#include "device/reduction.h"
#include "device/strided_copy.h"
#include "tensor/stretch.h"

namespace sluice {

class LaterBatch {
 public:
  // Takes the place of what was there. Allocates nothing for what is no larger.
  void Assign(const CopyBatch& batch);
  // Does what a host device does, with the calling thread.
  void CarryOut() const;

  uint64_t cookie() const { return cookie_; }
  // Bytes that come to or go from memory of `kind`, by what is written.
  int64_t BytesOf(DeviceKind kind) const;

 private:
  uint64_t cookie_ = 0;
  std::vector<StridedCopy> copies_;
  std::vector<Stretch> runs_;  // of all copies
  std::vector<Reduction> reductions_;
  std::vector<Normalization> normalizations_;
  std::vector<ChannelFactors> factors_;  // of all normalizations that have some
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_LATER_BATCH_H_
