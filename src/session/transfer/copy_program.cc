// Works out pieces, and replays them.
#include "session/transfer/copy_program.h"

#include <algorithm>
#include <cstring>

#include "absl/types/span.h"
#include "device/strided_copy.h"
#include "session/transfer/bucket_sides.h"
#include "session/transfer/transfer_run.h"
#include "tensor/contiguity.h"

namespace sluice {
namespace {

// A chunk that is larger on average costs its bytes, and helpers of the device share them.
constexpr int64_t kChunkBytesMax = 16384;
// Replayed in one go: a session does nothing else meanwhile.
constexpr int64_t kBucketBytesMax = int64_t{8} << 20;
constexpr size_t kPiecesMax = (size_t{16} << 20) / 24;  // 16 MiB, of each run in flight
// So many pieces ahead the memory of tensors is asked for. It is cold: each run comes by once.
constexpr size_t kAhead = 8;

int32_t BytesOf(const StridedCopy& copy) {
  return static_cast<int32_t>((copy.end - copy.begin) * DTypeBytes(copy.src_dtype));
}

std::byte* BaseOf(absl::Span<std::byte* const> bases, int32_t tensor) {
  return bases[static_cast<size_t>(tensor)];
}

bool Moves(const StridedCopy& copy) { return copy.src_dtype == copy.dst_dtype; }

}  // namespace

void CopyProgram::Clear() {
  pieces_.clear();
  std::fill(packs_.begin(), packs_.end(), Range());
  std::fill(unpacks_.begin(), unpacks_.end(), Range());
}

template <class PieceOf>
CopyProgram::Range CopyProgram::Find(const TransferRun& run, size_t bucket, Range* range,
                                     const PieceOf& piece_of) {
  if (range->is_known) return *range;
  range->is_known = true;
  const Plan& plan = run.transfer().plan();
  const absl::Span<const Chunk> chunks = ChunksOf(plan, plan.buckets[bucket]);
  const int64_t bytes = plan.buckets[bucket].bytes;
  if (chunks.size() < 2 || bytes > kBucketBytesMax ||
      bytes > kChunkBytesMax * static_cast<int64_t>(chunks.size()) ||
      pieces_.size() + chunks.size() > kPiecesMax) {
    return *range;
  }
  const size_t first = pieces_.size();
  for (const Chunk& chunk : chunks) {
    const Piece piece = piece_of(chunk);
    if (piece.bytes == 0) {
      pieces_.resize(first);
      return *range;
    }
    pieces_.push_back(piece);
  }
  *range = {first, chunks.size(), true};
  return *range;
}

// `from` and `to` tell where a piece's sides begin.
template <class From, class To>
bool CopyProgram::Replay(const Range& range, const From& from, const To& to) const {
  const absl::Span<const Piece> pieces =
      absl::MakeConstSpan(pieces_).subspan(range.first, range.count);
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i + kAhead < pieces.size()) {
      const Piece& next = pieces[i + kAhead];
      __builtin_prefetch(from(next) + next.from);
      __builtin_prefetch(to(next) + next.to, /*rw=*/1);
    }
    const Piece& piece = pieces[i];
    std::memcpy(to(piece) + piece.to, from(piece) + piece.from, static_cast<size_t>(piece.bytes));
  }
  return !pieces.empty();
}

bool CopyProgram::Pack(const TransferRun& run, size_t bucket, std::byte* slot) {
  const auto piece_of = [&](const Chunk& chunk) -> Piece {
    const StridedCopy copy = PackCopy(run, chunk, slot);
    const int64_t from = ContiguousOffset(SrcSide(copy), copy.begin, copy.end);
    if (!Moves(copy) || from < 0) return {};
    return {chunk.tensor, BytesOf(copy), from, chunk.bucket_offset};
  };
  const auto from = [src = run.src_bases()](const Piece& piece) {
    return BaseOf(src, piece.tensor);
  };
  const auto to = [slot](const Piece&) { return slot; };
  return Replay(Find(run, bucket, &packs_[bucket], piece_of), from, to);
}

bool CopyProgram::Unpack(const TransferRun& run, size_t bucket, const std::byte* slot) {
  const auto piece_of = [&](const Chunk& chunk) -> Piece {
    const StridedCopy copy = UnpackCopy(run, chunk, slot);
    const int64_t to = ContiguousOffset(DstSide(copy), copy.begin, copy.end);
    if (!Moves(copy) || to < 0) return {};
    return {chunk.tensor, BytesOf(copy), chunk.bucket_offset, to};
  };
  const auto from = [slot](const Piece&) { return slot; };
  const auto to = [dst = run.dst_bases()](const Piece& piece) { return BaseOf(dst, piece.tensor); };
  return Replay(Find(run, bucket, &unpacks_[bucket], piece_of), from, to);
}

bool CopyProgram::CopyLocally(const TransferRun& run, size_t bucket) {
  const auto piece_of = [&](const Chunk& chunk) -> Piece {
    const StridedCopy copy = LocalCopy(run, chunk);
    const int64_t from = ContiguousOffset(SrcSide(copy), copy.begin, copy.end);
    const int64_t to = ContiguousOffset(DstSide(copy), copy.begin, copy.end);
    if (!Moves(copy) || from < 0 || to < 0) return {};
    return {chunk.tensor, BytesOf(copy), from, to};
  };
  const auto from = [src = run.src_bases()](const Piece& piece) {
    return BaseOf(src, piece.tensor);
  };
  const auto to = [dst = run.dst_bases()](const Piece& piece) { return BaseOf(dst, piece.tensor); };
  return Replay(Find(run, bucket, &packs_[bucket], piece_of), from, to);
}

}  // namespace sluice
