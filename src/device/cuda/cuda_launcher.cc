// A ring of tables: each is free again when the stream has got past the launch that uses it.
#include "device/cuda_launcher.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda_elements.h"
#include "device/cuda_error.h"
#include "device/cuda_event.h"
#include "device/cuda_kernels.h"
#include "device/cuda_memory.h"
#include "device/cuda_pieces.h"
#include "sluice/tensor.h"

namespace sluice {

static_assert(sizeof(CudaTranspose) <= sizeof(CudaMove));
static_assert(sizeof(CudaReduction) <= sizeof(CudaMove));
static_assert(sizeof(CudaNormalization) <= sizeof(CudaMove));

void CudaLauncher::Hull::Add(const std::byte* at, uintptr_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  begin = std::min(begin, address);
  end = std::max(end, address + bytes);
}

absl::StatusOr<std::unique_ptr<CudaLauncher>> CudaLauncher::Create(int ordinal,
                                                                   cudaStream_t stream) {
  CudaLaunch launch;
  launch.stream = stream;
  SLUICE_CUDA_RETURN_IF_ERROR(cudaDeviceGetAttribute,
                              (&launch.multiprocessors, cudaDevAttrMultiProcessorCount, ordinal));
  auto launcher = absl::WrapUnique(new CudaLauncher(launch));
  absl::StatusOr<DeviceMemory> on_host = AllocatePinned(kTables * kTableBytes, "kernels' tables");
  if (!on_host.ok()) return on_host.status();
  launcher->on_host_ = *std::move(on_host);
  absl::StatusOr<DeviceMemory> on_gpu =
      AllocateOnGpu(ordinal, kTables * kTableBytes, "kernels' tables");
  if (!on_gpu.ok()) return on_gpu.status();
  launcher->on_gpu_ = *std::move(on_gpu);
  for (Table& table : launcher->tables_) {
    absl::StatusOr<UniqueCudaEvent> event = UniqueCudaEvent::Create();
    if (!event.ok()) return event.status();
    table.passed = *std::move(event);
  }
  return launcher;
}

absl::StatusOr<bool> CudaLauncher::Add(const CudaMove& piece) {
  return AddTo(piece.src_dtype == piece.dst_dtype ? Kind::kMove : Kind::kCast, piece);
}

absl::StatusOr<bool> CudaLauncher::Add(const CudaTranspose& piece) {
  return AddTo(Kind::kTranspose, piece);
}

// Those of one launch run in any order: so none of them may touch what another one changes.
absl::StatusOr<bool> CudaLauncher::Add(const CudaReduction& piece) {
  const int64_t bytes = DTypeBytes(piece.dtype);
  const int64_t elements =
      piece.unit == CudaUnit::kFull ? FullUnit(static_cast<size_t>(bytes), 1) : 1;
  Hull read;
  Hull changed;
  read.Add(piece.src, static_cast<uintptr_t>(piece.units * elements * bytes));
  changed.Add(piece.dst, static_cast<uintptr_t>(piece.units * elements * bytes));
  if (count_ > 0 && kind_ == Kind::kReduction &&
      (changed.Meets(changed_) || changed.Meets(read_) || read.Meets(changed_))) {
    if (absl::Status status = Flush(); !status.ok()) return status;
  }
  absl::StatusOr<bool> added = AddTo(Kind::kReduction, piece);
  if (!added.ok() || !*added) return added;
  if (count_ == 1) read_ = changed_ = Hull();
  read_.Add(piece.src, static_cast<uintptr_t>(piece.units * elements * bytes));
  changed_.Add(piece.dst, static_cast<uintptr_t>(piece.units * elements * bytes));
  return true;
}

absl::StatusOr<bool> CudaLauncher::Add(const CudaNormalization& piece) {
  return AddTo(Kind::kNormalization, piece);
}

template <class Piece>
Piece* CudaLauncher::TableOf(const DeviceMemory& memory) const {
  return reinterpret_cast<Piece*>(memory.data() + table_ * kTableBytes);
}

template <class Piece>
absl::StatusOr<bool> CudaLauncher::AddTo(Kind kind, const Piece& piece) {
  if (count_ == kTablePieces || (count_ > 0 && kind != kind_)) {
    if (absl::Status status = Flush(); !status.ok()) return status;
  }
  Table& table = tables_[table_];
  if (table.under_way) {
    absl::StatusOr<bool> passed = table.passed.Passed();
    if (!passed.ok() || !*passed) return passed;
    table.under_way = false;
  }
  kind_ = kind;
  TableOf<Piece>(on_host_)[count_++] = piece;
  return true;
}

absl::Status CudaLauncher::Flush() {
  if (count_ == 0) return absl::OkStatus();
  const int count = std::exchange(count_, 0);
  const auto on = [&]<class Piece>(cudaError_t (*launch)(const CudaLaunch&, Piece*, Piece*, int),
                                   const char* name) {
    return CudaStatus(launch(launch_, TableOf<Piece>(on_host_), TableOf<Piece>(on_gpu_), count),
                      name);
  };
  absl::Status status;
  switch (kind_) {
    case Kind::kMove:
      status = on(&LaunchMoves, "launch of the copy kernel");
      break;
    case Kind::kCast:
      status = on(&LaunchCasts, "launch of the cast kernel");
      break;
    case Kind::kTranspose:
      status = on(&LaunchTransposes, "launch of the transposition kernel");
      break;
    case Kind::kReduction:
      status = on(&LaunchReductions, "launch of the reduction kernel");
      break;
    case Kind::kNormalization:
      status = on(&LaunchNormalizations, "launch of the normalization kernel");
      break;
  }
  // A few pieces travel with the launch, and their table is free again.
  if (!status.ok() || count <= kPiecesOfLaunch) return status;
  Table& table = tables_[table_];
  table.under_way = true;
  table_ = (table_ + 1) % tables_.size();
  return table.passed.Record(launch_.stream);
}

}  // namespace sluice
