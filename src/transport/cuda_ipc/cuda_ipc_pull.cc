// Strided copies of device memory by the copy kernel.
#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "device/cuda/cuda_error.h"
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/cuda_pieces.h"
#include "tensor/error_text.h"
#include "transport/cuda_ipc/cuda_ipc_transport.h"

namespace sluice {
namespace {

// `count` stretches of `bytes`, then `groups` of those: distances on both sides.
struct Grid {
  const std::byte* src;
  std::byte* dst;
  size_t bytes;
  size_t count;
  size_t src_step;
  size_t dst_step;
  size_t groups;
  size_t src_group_step;
  size_t dst_group_step;
};

CudaMove ToMove(const Grid& grid) {
  const size_t all = reinterpret_cast<uintptr_t>(grid.src) | reinterpret_cast<uintptr_t>(grid.dst) |
                     grid.bytes | grid.src_step | grid.dst_step | grid.src_group_step |
                     grid.dst_group_step;
  const size_t unit = std::min<size_t>(16, all & (~all + 1));
  CudaMove move;
  move.src = grid.src;
  move.dst = grid.dst;
  move.unit_bytes = static_cast<uint8_t>(unit);
  move.counts[0] = FastDivisor(static_cast<uint32_t>(grid.bytes / unit));
  move.counts[1] = FastDivisor(static_cast<uint32_t>(grid.count));
  move.counts[2] = FastDivisor(static_cast<uint32_t>(grid.groups));
  move.units = static_cast<uint32_t>(grid.bytes / unit * grid.count * grid.groups);
  const std::array<size_t, 3> src_steps = {unit, grid.src_step, grid.src_group_step};
  const std::array<size_t, 3> dst_steps = {unit, grid.dst_step, grid.dst_group_step};
  for (size_t axis = 0; axis < src_steps.size(); ++axis) {
    move.src_strides[axis] = static_cast<int64_t>(src_steps[axis]);
    move.dst_strides[axis] = static_cast<int64_t>(dst_steps[axis]);
  }
  return move;
}

// Launches moves as many at a time as travel with a launch.
class Launcher {
 public:
  explicit Launcher(const CudaLaunch& launch) : launch_(launch) {}

  absl::Status Add(const Grid& grid) {
    if (count_ == kFewPieces) moves_.resize(kPiecesOfLaunch);
    moves_[static_cast<size_t>(count_++)] = ToMove(grid);
    return count_ == kPiecesOfLaunch ? Flush() : absl::OkStatus();
  }
  absl::Status Flush() {
    if (count_ == 0) return absl::OkStatus();
    const cudaError_t error = LaunchMoves(launch_, moves_.data(), count_);
    count_ = 0;
    return CudaStatus(error, "the launch of a strided copy");
  }

 private:
  const CudaLaunch launch_;
  std::vector<CudaMove> moves_ = std::vector<CudaMove>(kFewPieces);  // mostly there is one
  int count_ = 0;
};

// Rows of one side are some rows of the other each.
Grid Nested(const std::byte* src, const PullRows& from, std::byte* dst, const PullRows& to,
            size_t bytes) {
  const size_t inner = std::min(from.row_bytes, to.row_bytes);
  const size_t outer = std::max(from.row_bytes, to.row_bytes);
  const size_t count = outer / inner;
  const bool src_is_inner = from.row_bytes == inner;
  const bool dst_is_inner = to.row_bytes == inner;
  return {src,
          dst,
          inner,
          count,
          src_is_inner ? from.stride_bytes : inner,
          dst_is_inner ? to.stride_bytes : inner,
          bytes / outer,
          src_is_inner ? count * from.stride_bytes : from.stride_bytes,
          dst_is_inner ? count * to.stride_bytes : to.stride_bytes};
}

// Rows meet anew after `period` bytes; in between, each stretch that is whole on both sides is one
// move of all periods.
absl::Status Interleaved(const std::byte* src, const PullRows& from, std::byte* dst,
                         const PullRows& to, size_t bytes, Launcher* launcher) {
  const size_t period = std::lcm(from.row_bytes, to.row_bytes);
  const size_t src_period = period / from.row_bytes * from.stride_bytes;
  const size_t dst_period = period / to.row_bytes * to.stride_bytes;
  for (size_t at = 0; at < period;) {
    const size_t src_in_row = at % from.row_bytes;
    const size_t dst_in_row = at % to.row_bytes;
    const size_t stretch = std::min(from.row_bytes - src_in_row, to.row_bytes - dst_in_row);
    SLUICE_RETURN_IF_ERROR(
        launcher->Add({src + at / from.row_bytes * from.stride_bytes + src_in_row,
                       dst + at / to.row_bytes * to.stride_bytes + dst_in_row, stretch,
                       bytes / period, src_period, dst_period, 1, 0, 0}));
    at += stretch;
  }
  return absl::OkStatus();
}

// A stretch as rows of the other side's size, which follow one another.
PullRows AsRows(const PullRows& rows, const PullRows& other) {
  return rows.row_bytes != 0 ? rows : PullRows{other.row_bytes, other.row_bytes};
}

}  // namespace

size_t ExtentOf(size_t bytes, const PullRows& rows) {
  if (rows.row_bytes == 0 || bytes == 0) return bytes;
  return (bytes / rows.row_bytes - 1) * rows.stride_bytes + rows.row_bytes;
}

absl::Status EnqueuePull(const CudaQueue& queue, int multiprocessors, const std::byte* src,
                         const PullRows& src_rows, std::byte* dst, const PullRows& dst_rows,
                         size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  if (src_rows.row_bytes == 0 && dst_rows.row_bytes == 0) {
    return CudaStatus(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToDevice, queue.stream),
                      "cudaMemcpyAsync");
  }
  const PullRows from = AsRows(src_rows, dst_rows);
  const PullRows to = AsRows(dst_rows, src_rows);
  Launcher launcher({queue.stream, multiprocessors});
  const size_t longer = std::max(from.row_bytes, to.row_bytes);
  const size_t shorter = std::min(from.row_bytes, to.row_bytes);
  const absl::Status status = longer % shorter == 0
                                  ? launcher.Add(Nested(src, from, dst, to, bytes))
                                  : Interleaved(src, from, dst, to, bytes, &launcher);
  return status.ok() ? launcher.Flush() : status;
}

}  // namespace sluice
