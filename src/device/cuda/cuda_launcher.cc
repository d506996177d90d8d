// Fills launches, and counts those that the stream has not got past.
#include "device/cuda/cuda_launcher.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device/cuda/cuda_elements.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/cuda_event.h"
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/cuda_pieces.h"
#include "sluice/tensor.h"
#include "tensor/error_text.h"

namespace sluice {

// The largest launch's parameters: the pieces, their count and the count of tiles.
static_assert(kPiecesOfLaunch * sizeof(CudaMove) + 8 <= 32764);
static_assert(sizeof(CudaSmallCopies) + 4 <= 32764);
static_assert(sizeof(CudaTranspose) <= sizeof(CudaMove));
static_assert(sizeof(CudaReduction) <= sizeof(CudaMove));
static_assert(sizeof(CudaNormalization) <= sizeof(CudaMove));
static_assert(LaunchRoom<CudaPixels>::kMany * sizeof(CudaPixels) + 8 <= 32764);

void CudaLauncher::Hull::Add(const std::byte* at, uintptr_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  begin = std::min(begin, address);
  end = std::max(end, address + bytes);
}

CudaLauncher::CudaLauncher(const CudaLaunch& launch)
    : launch_(launch),
      moves_(kPiecesOfLaunch),
      small_(std::make_unique<CudaSmallCopies>()),
      transposes_(kPiecesOfLaunch),
      reductions_(kPiecesOfLaunch),
      normalizations_(kPiecesOfLaunch),
      pixels_(LaunchRoom<CudaPixels>::kMany) {}

absl::StatusOr<std::unique_ptr<CudaLauncher>> CudaLauncher::Create(int ordinal,
                                                                   cudaStream_t stream) {
  CudaLaunch launch;
  launch.stream = stream;
  SLUICE_CUDA_RETURN_IF_ERROR(cudaDeviceGetAttribute,
                              (&launch.multiprocessors, cudaDevAttrMultiProcessorCount, ordinal));
  auto launcher = absl::WrapUnique(new CudaLauncher(launch));
  for (Launch& one : launcher->launches_) {
    SLUICE_ASSIGN_OR_RETURN(one.passed, UniqueCudaEvent::Create());
  }
  return launcher;
}

absl::StatusOr<bool> CudaLauncher::Add(const CudaMove& piece) {
  return AddAs(piece.src_dtype == piece.dst_dtype ? Kind::kMove : Kind::kCast, &moves_, piece);
}

absl::StatusOr<bool> CudaLauncher::AddSmall(const std::byte* src, std::byte* dst, int64_t bytes) {
  constexpr uint64_t kReach = CudaSmallCopy::kReach;
  const auto from = reinterpret_cast<uintptr_t>(src);
  const auto to = reinterpret_cast<uintptr_t>(dst);
  const auto is_near = [&] {
    return from - reinterpret_cast<uintptr_t>(small_->src) < kReach &&
           to - reinterpret_cast<uintptr_t>(small_->dst) < kReach;
  };
  if (count_ > 0 && kind_ == Kind::kSmall && !is_near()) SLUICE_RETURN_IF_ERROR(Flush());
  absl::StatusOr<bool> room = MakeRoom(Kind::kSmall, LaunchRoom<CudaSmallCopy>::kMany);
  if (!room.ok() || !*room) return room;
  if (count_ == 0) {  // the first copy lies in the middle of what the launch reaches
    small_->src = src - std::min(from, kReach / 2);
    small_->dst = dst - std::min(to, kReach / 2);
  }
  const uint64_t src_apart = from - reinterpret_cast<uintptr_t>(small_->src);
  const uint64_t dst_apart = to - reinterpret_cast<uintptr_t>(small_->dst);
  small_->copies[count_++] = {static_cast<uint32_t>(src_apart), static_cast<uint32_t>(dst_apart),
                              static_cast<uint16_t>(bytes), static_cast<uint8_t>(src_apart >> 32),
                              static_cast<uint8_t>(dst_apart >> 32)};
  return true;
}

absl::StatusOr<bool> CudaLauncher::Add(const CudaTranspose& piece) {
  return AddAs(Kind::kTranspose, &transposes_, piece);
}

// Reductions of one launch run in any order: so none of them may touch what another one changes.
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
    SLUICE_RETURN_IF_ERROR(Flush());
  }
  absl::StatusOr<bool> added = AddAs(Kind::kReduction, &reductions_, piece);
  if (!added.ok() || !*added) return added;
  if (count_ == 1) read_ = changed_ = Hull();
  read_.Add(piece.src, static_cast<uintptr_t>(piece.units * elements * bytes));
  changed_.Add(piece.dst, static_cast<uintptr_t>(piece.units * elements * bytes));
  return true;
}

absl::StatusOr<bool> CudaLauncher::Add(const CudaNormalization& piece) {
  return AddAs(Kind::kNormalization, &normalizations_, piece);
}

absl::StatusOr<bool> CudaLauncher::Add(const CudaPixels& piece) {
  return AddAs(Kind::kPixels, &pixels_, piece);
}

absl::StatusOr<bool> CudaLauncher::MakeRoom(Kind kind, int most) {
  if (count_ > 0 && (kind != kind_ || count_ == most)) {
    SLUICE_RETURN_IF_ERROR(Flush());
  }
  Launch& next = launches_[next_];
  if (next.under_way) {
    absl::StatusOr<bool> passed = next.passed.Passed();
    if (!passed.ok() || !*passed) return passed;
    next.under_way = false;
  }
  kind_ = kind;
  return true;
}

template <class Piece>
absl::StatusOr<bool> CudaLauncher::AddAs(Kind kind, std::vector<Piece>* pieces,
                                         const Piece& piece) {
  absl::StatusOr<bool> room = MakeRoom(kind, LaunchRoom<Piece>::kMany);
  if (!room.ok() || !*room) return room;
  (*pieces)[static_cast<size_t>(count_++)] = piece;
  return true;
}

absl::Status CudaLauncher::Flush() {
  if (count_ == 0) return absl::OkStatus();
  const int count = std::exchange(count_, 0);
  int few = kFewPieces;
  absl::Status status;
  switch (kind_) {
    case Kind::kMove:
      status = CudaStatus(LaunchMoves(launch_, moves_.data(), count), "launch of the copy kernel");
      break;
    case Kind::kSmall:
      status = CudaStatus(LaunchSmallCopies(launch_, *small_, count),
                          "launch of the kernel of small copies");
      few = LaunchRoom<CudaSmallCopy>::kFew;
      break;
    case Kind::kCast:
      status = CudaStatus(LaunchCasts(launch_, moves_.data(), count), "launch of the cast kernel");
      break;
    case Kind::kTranspose:
      status = CudaStatus(LaunchTransposes(launch_, transposes_.data(), count),
                          "launch of the transposition kernel");
      break;
    case Kind::kReduction:
      status = CudaStatus(LaunchReductions(launch_, reductions_.data(), count),
                          "launch of the reduction kernel");
      break;
    case Kind::kNormalization:
      status = CudaStatus(LaunchNormalizations(launch_, normalizations_.data(), count),
                          "launch of the normalization kernel");
      break;
    case Kind::kPixels:
      status =
          CudaStatus(LaunchPixels(launch_, pixels_.data(), count), "launch of the pixel kernel");
      few = LaunchRoom<CudaPixels>::kFew;
      break;
  }
  if (!status.ok() || count <= few) return status;
  Launch& launched = launches_[next_];
  launched.under_way = true;
  next_ = (next_ + 1) % launches_.size();
  return launched.passed.Record(launch_.stream);
}

}  // namespace sluice
