// Carries out batches, one at a time, as far as that goes without waiting. The work is on the
// stream, on the host, and on both through pinned memory.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_ISSUER_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_ISSUER_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_bounce.h"
#include "device/cuda/cuda_cutter.h"
#include "device/cuda/cuda_event.h"
#include "device/cuda/cuda_launcher.h"
#include "device/cuda/cuda_pieces.h"
#include "device/cuda/cuda_pixel_cutter.h"
#include "device/normalization.h"
#include "device/owned_batch.h"
#include "device/reduction.h"
#include "device/strided_copy.h"
#include "sluice/tensor.h"

namespace sluice {

class CudaIssuer {
 public:
  // On a stream of the current device, `ordinal`, which is current in all calls.
  static absl::StatusOr<std::unique_ptr<CudaIssuer>> Create(int ordinal, cudaStream_t stream,
                                                            int64_t bounce_bytes);

  // All that is done from now on comes after the fence.
  absl::Status ComeAfter(Fence* fence);

  // The batch must stay as it is until it is issued. The one before it must be. The issuer does not
  // look at its fences.
  void Begin(const OwnedBatch& batch);

  // True once all that the host does of the batch is done, and all else is on the stream.
  absl::StatusOr<bool> Continue();

  // Whether any of the batch's work is on the stream.
  bool used_stream() const { return used_stream_; }

 private:
  using Work = std::variant<StridedCopy, Reduction, Normalization>;
  enum class Phase { kCopies, kReductions, kNormalizations };
  // The host does the work, or the GPU, or each one half.
  enum class Route { kHost, kGpu, kHostThenGpu, kGpuThenHost };

  explicit CudaIssuer(cudaStream_t stream) : stream_(stream) {}

  size_t ItemCount() const;
  Work Item() const;
  absl::StatusOr<bool> AddSmallCopies();
  absl::Status BeginItem();
  absl::StatusOr<bool> ContinueItem();
  absl::StatusOr<bool> ContinueBounce();
  absl::Status TakeArrived();
  Work FirstHalf(std::byte* slot, int64_t begin, int64_t end) const;
  Work SecondHalf(std::byte* slot, int64_t begin, int64_t end) const;

  absl::StatusOr<bool> HostMayBegin(bool touches_pinned);
  static void DoOnHost(const Work& work);
  void BeginOnGpu(const Work& work);
  absl::StatusOr<bool> ContinueOnGpu();
  absl::StatusOr<bool> AddMoves();
  absl::StatusOr<bool> AddByCopyEngine(const CudaMove& piece);
  template <class OneWork, class Piece>
  absl::StatusOr<bool> AddStretches(const OneWork& work);
  absl::StatusOr<bool> AddPixels();

  const cudaStream_t stream_;
  std::unique_ptr<CudaLauncher> launcher_;
  std::unique_ptr<BounceRing> ring_;
  UniqueCudaEvent host_may_begin_;

  const OwnedBatch* batch_ = nullptr;
  Phase phase_ = Phase::kCopies;
  size_t small_ = 0;  // small copies that are added
  size_t item_ = 0;
  bool used_stream_ = false;
  // The host has to wait for the stream before it touches any memory.
  bool host_held_back_ = false;
  // Nothing that the host knows of is on the stream.
  bool stream_is_idle_ = false;
  bool waits_for_stream_ = false;  // by host_may_begin_

  // The item that has been begun.
  bool item_begun_ = false;
  Work work_;
  Route route_ = Route::kHost;
  bool touches_pinned_ = false;
  BouncedCopy bounced_;
  int64_t next_element_ = 0;
  int64_t end_element_ = 0;

  // The GPU's half of the item, as far as it has not been cut yet.
  bool on_gpu_ = false;
  Work gpu_work_;
  bool copy_engine_may_ = false;
  std::optional<MoveCutter> moves_;
  std::optional<StretchCutter> stretches_;
  std::optional<PixelCutter> pixels_;
  bool holds_piece_ = false;  // one that did not fit
  CudaMove move_;
  CudaStretch stretch_;
  CudaPixels pixel_piece_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_ISSUER_H_
