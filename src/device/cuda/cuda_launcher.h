// Collects pieces in tables and launches kernels on them, many pieces at a time.
#ifndef SLUICE_SRC_DEVICE_CUDA_LAUNCHER_H_
#define SLUICE_SRC_DEVICE_CUDA_LAUNCHER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda_event.h"
#include "device/cuda_kernels.h"
#include "device/cuda_pieces.h"
#include "device/device.h"

namespace sluice {

// Has tables for a bounded number of pieces. What is added is launched when a table is full, when
// something else follows, or when Flush is called.
class CudaLauncher {
 public:
  // On a stream of the current device, `ordinal`.
  static absl::StatusOr<std::unique_ptr<CudaLauncher>> Create(int ordinal, cudaStream_t stream);

  // Adds a piece, unless (false) all tables are under way: try again later.
  absl::StatusOr<bool> Add(const CudaMove& piece);
  absl::StatusOr<bool> Add(const CudaTranspose& piece);
  absl::StatusOr<bool> Add(const CudaReduction& piece);
  absl::StatusOr<bool> Add(const CudaNormalization& piece);

  // Launches what has been added.
  absl::Status Flush();

  static constexpr int kTablePieces = 512;
  static constexpr size_t kTables = 8;

 private:
  enum class Kind { kMove, kCast, kTranspose, kReduction, kNormalization };
  static constexpr size_t kTableBytes = kTablePieces * sizeof(CudaMove);

  struct Table {
    UniqueCudaEvent passed;  // the launch that uses it
    bool under_way = false;  // that launch may still be
  };
  // Bytes from the lowest to the highest of some stretches.
  struct Hull {
    uintptr_t begin = UINTPTR_MAX;
    uintptr_t end = 0;
    void Add(const std::byte* at, uintptr_t bytes);
    bool Meets(const Hull& other) const { return begin < other.end && other.begin < end; }
  };

  explicit CudaLauncher(const CudaLaunch& launch) : launch_(launch) {}
  template <class Piece>
  absl::StatusOr<bool> AddTo(Kind kind, const Piece& piece);
  template <class Piece>
  Piece* TableOf(const DeviceMemory& memory) const;

  const CudaLaunch launch_;
  DeviceMemory on_host_;
  DeviceMemory on_gpu_;
  std::array<Table, kTables> tables_;
  size_t table_ = 0;  // that is being filled
  int count_ = 0;     // pieces in it
  Kind kind_ = Kind::kMove;
  // What the reductions in the table read only, and what they change.
  Hull read_;
  Hull changed_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_CUDA_LAUNCHER_H_
