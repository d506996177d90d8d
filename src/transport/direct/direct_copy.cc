// Pieces, and the loops over their rows.
#include "transport/direct/direct_copy.h"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "device/copy_rows.h"
#include "device/stream_rows.h"
#include "transport/direct/process_memory.h"

namespace sluice {
namespace {

// Large enough that a claim costs nothing beside its copy.
constexpr uint64_t kPieceBytesMin = 64 << 10;
constexpr uint64_t kPiecesWanted = 8;
// Below that a second piece is not worth its claim, nor the word about it.
constexpr uint64_t kHalfBytesMin = 16 << 10;
// To look up a stretch costs as much as to copy so many bytes, about.
constexpr uint64_t kLongRowBytes = 8 << 10;

// How far apart a side's rows are when it is looked at in rows of `row_bytes`. Nothing if the side
// cannot be looked at so; 0 for a source that repeats one row.
std::optional<uint64_t> StrideFor(const DirectRows& rows, uint64_t row_bytes) {
  if (rows.row_bytes == 0) return row_bytes;
  if (rows.row_bytes != row_bytes) return std::nullopt;
  return rows.stride_bytes;
}

// One side of a copy: bytes from number `begin` on.
template <typename Byte>
struct Side {
  Byte* data;
  const DirectRows& rows;
  uint64_t begin;
};

void Copy(const Side<const std::byte>& from, const Side<std::byte>& to, uint64_t bytes,
          WriteHint stores) {
  const uint64_t row = std::max(from.rows.row_bytes, to.rows.row_bytes);
  const std::optional<uint64_t> from_stride = StrideFor(from.rows, row);
  const std::optional<uint64_t> to_stride = StrideFor(to.rows, row);
  if (row > 0 && from_stride && to_stride && from.begin % row == 0 && to.begin % row == 0 &&
      bytes % row == 0) {
    const CopyAxis axis = {static_cast<int64_t>(bytes / row), static_cast<int64_t>(*from_stride),
                           static_cast<int64_t>(*to_stride)};
    CopyRows(from.data + from.begin / row * *from_stride, to.data + to.begin / row * *to_stride,
             axis, static_cast<int64_t>(row), stores);
  } else {
    for (uint64_t done = 0; done < bytes;) {
      const uint64_t stretch = std::min({from.rows.StretchAt(from.begin + done),
                                         to.rows.StretchAt(to.begin + done), bytes - done});
      CopyRows(from.data + from.rows.OffsetOf(from.begin + done),
               to.data + to.rows.OffsetOf(to.begin + done), {}, static_cast<int64_t>(stretch),
               stores);
      done += stretch;
    }
  }
  if (stores == WriteHint::kStreaming) StreamFence();
}

}  // namespace

uint64_t DirectPieceBytes(const DirectRows& from, const DirectRows& to, uint64_t bytes_max) {
  const uint64_t share =
      std::clamp(from.bytes / kPiecesWanted, kPieceBytesMin, std::min(kPieceBytesMax, bytes_max));
  const uint64_t wanted = std::min(share, std::max(from.bytes / 2, kHalfBytesMin));
  const uint64_t row = std::max(from.row_bytes, to.row_bytes);
  const uint64_t unit = row > 0 && row <= wanted ? row : kKernelPageBytes;
  return wanted / unit * unit;
}

bool CostsMore(const DirectPlace& remote, const DirectPlace& other) {
  const auto stretches = [](const DirectPlace& place) -> uint64_t {
    if (place.segment > 0) return 0;
    const DirectRows& rows = place.rows;
    if (rows.row_bytes == 0 || rows.row_bytes == rows.stride_bytes) return 1;
    return (rows.bytes + rows.row_bytes - 1) / rows.row_bytes;
  };
  const uint64_t many = stretches(remote);
  return many > 1 && remote.rows.row_bytes < kLongRowBytes && many / 2 > stretches(other);
}

int CopyFromPeer(const DirectPeer& peer, const DirectPlace& from, std::byte* to,
                 const DirectRows& to_rows, uint64_t begin, uint64_t end, WriteHint stores) {
  const std::byte* const reached = peer.Reach(from);
  if (reached == nullptr) {
    if (peer.HasEndedLately()) return ESRCH;
    return ReadProcessMemory(peer.pid(), from.address, from.rows, to, to_rows, begin, end);
  }
  Copy({reached, from.rows, begin}, {to, to_rows, begin}, end - begin, stores);
  return 0;
}

int CopyToPeer(const DirectPeer& peer, const std::byte* from, const DirectRows& from_rows,
               const DirectPlace& to, uint64_t begin, uint64_t end, WriteHint stores) {
  std::byte* const reached = peer.Reach(to);
  if (reached == nullptr) {
    if (peer.HasEndedLately()) return ESRCH;
    return WriteProcessMemory(peer.pid(), to.address, to.rows, from, from_rows, begin, end);
  }
  Copy({from, from_rows, begin}, {reached, to.rows, begin}, end - begin, stores);
  return 0;
}

void PackPiece(const std::byte* from, const DirectRows& rows, uint64_t begin, uint64_t end,
               std::byte* slot) {
  Copy({from, rows, begin}, {slot, {end - begin, 0, 0}, 0}, end - begin, WriteHint::kPlain);
}

void UnpackPiece(const std::byte* slot, std::byte* to, const DirectRows& rows, uint64_t begin,
                 uint64_t end, WriteHint stores) {
  Copy({slot, {end - begin, 0, 0}, 0}, {to, rows, begin}, end - begin, stores);
}

}  // namespace sluice
