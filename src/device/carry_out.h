// Carries out the host's part of a batch of copies.
#ifndef SLUICE_SRC_DEVICE_CARRY_OUT_H_
#define SLUICE_SRC_DEVICE_CARRY_OUT_H_

#include "device/device.h"

namespace sluice {

// Copies, reduces and normalizes, in this order, with the calling thread. All memory is the host's.
void CarryOut(const CopyBatch& batch);

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CARRY_OUT_H_
