// Collects pieces and launches kernels on them, many pieces at a time.
#ifndef SLUICE_SRC_DEVICE_CUDA_CUDA_LAUNCHER_H_
#define SLUICE_SRC_DEVICE_CUDA_CUDA_LAUNCHER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_event.h"
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/cuda_pieces.h"

namespace sluice {

// Launches pieces when a launch is full, when pieces of another kind follow, or when Flush is
// called. The number of large launches under way is bounded. The runtime makes the host wait if a
// stream holds too much. Meanwhile the stream may wait for what only this host can do.
class CudaLauncher {
 public:
  // On a stream of the current device, `ordinal`.
  static absl::StatusOr<std::unique_ptr<CudaLauncher>> Create(int ordinal, cudaStream_t stream);

  // Adds a piece, unless (false) kLaunches launches of more than a few are under way: try
  // again later.
  absl::StatusOr<bool> Add(const CudaMove& piece);
  absl::StatusOr<bool> Add(const CudaTranspose& piece);
  // The same for a copy of 1 to kSmallCopyBytes bytes.
  absl::StatusOr<bool> AddSmall(const std::byte* src, std::byte* dst, int64_t bytes);
  absl::StatusOr<bool> Add(const CudaReduction& piece);
  absl::StatusOr<bool> Add(const CudaNormalization& piece);
  absl::StatusOr<bool> Add(const CudaPixels& piece);

  // Launches what has been added.
  absl::Status Flush();

  static constexpr size_t kLaunches = 8;

 private:
  enum class Kind { kMove, kSmall, kCast, kTranspose, kReduction, kNormalization, kPixels };
  struct Launch {
    UniqueCudaEvent passed;
    bool under_way = false;  // as far as is known
  };
  // Bytes from the lowest to the highest of some stretches.
  struct Hull {
    uintptr_t begin = UINTPTR_MAX;
    uintptr_t end = 0;
    void Add(const std::byte* at, uintptr_t bytes);
    bool Meets(const Hull& other) const { return begin < other.end && other.begin < end; }
  };

  explicit CudaLauncher(const CudaLaunch& launch);
  // Launches what is of another kind, or fills a launch. False: see Add.
  absl::StatusOr<bool> MakeRoom(Kind kind, int most);
  template <class Piece>
  absl::StatusOr<bool> AddAs(Kind kind, std::vector<Piece>* pieces, const Piece& piece);

  const CudaLaunch launch_;
  // Room for as many as a launch has. One of them holds `count_` pieces, of `kind_`.
  std::vector<CudaMove> moves_;
  const std::unique_ptr<CudaSmallCopies> small_;
  std::vector<CudaTranspose> transposes_;
  std::vector<CudaReduction> reductions_;
  std::vector<CudaNormalization> normalizations_;
  std::vector<CudaPixels> pixels_;
  int count_ = 0;
  Kind kind_ = Kind::kMove;
  std::array<Launch, kLaunches> launches_;  // of more than a few
  size_t next_ = 0;                         // of them
  // Memory that the reductions among the pieces only read, and memory that they change.
  Hull read_;
  Hull changed_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_CUDA_LAUNCHER_H_
