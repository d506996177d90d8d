// Cuts normalizations of pixels into the boxes that a kernel works on.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_PIXEL_CUTTER_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_PIXEL_CUTTER_H_

#include "device/cuda/cuda_pieces.h"
#include "device/normalization.h"
#include "device/pixel_grid.h"

namespace sluice {

// Together the pieces are all elements that are kept, each once.
class PixelCutter {
 public:
  // `how` has pixels; its factors are referred to.
  explicit PixelCutter(const Normalization& how);

  // False if there is none any more.
  bool Next(CudaPixels* piece);

 private:
  Normalization how_;
  PixelBoxes boxes_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_PIXEL_CUTTER_H_
