// Joining and splitting chunks.
#include "plan/coalesce.h"

#include <algorithm>

#include "tensor/round.h"

namespace sluice {
namespace {

// Chunks begin at multiples of this in their bucket: the largest element.
constexpr int64_t kChunkAlignmentBytes = 8;

// From this size on, a chunk in a bucket of its own costs little and may spare both ends a copy.
// Alone, the chunk needs no staging where it is contiguous.
int64_t AloneBytes(int64_t bucket_bytes) {
  return std::max<int64_t>(bucket_bytes / 8, int64_t{256} << 10);
}

// Elements per piece of a chunk that travels without others. A chunk that fits one bucket is one
// piece. A larger chunk becomes even pieces: cut at rows where rows are short, and at a multiple of
// 16 bytes otherwise.
int64_t PieceElements(int64_t elements, int64_t row_elements, int64_t element_bytes,
                      int64_t bucket_bytes) {
  const int64_t most = bucket_bytes / element_bytes;
  if (elements <= most) return elements;
  const int64_t pieces = CeilDiv(elements, most);
  const int64_t even = CeilDiv(elements, pieces);
  const int64_t alignment =
      row_elements <= even / 16 ? row_elements : std::max<int64_t>(1, 16 / element_bytes);
  return std::min(RoundUp(even, alignment), most);
}

}  // namespace

void PartyBuckets::Start(int64_t bucket_bytes, bool reduced) {
  bucket_bytes_ = bucket_bytes;
  reduced_ = reduced;
  wanted_ = 0;
  joined_.clear();
  joining_ = Draft();
  chunks_.clear();
  drafts_.clear();
}

void PartyBuckets::Add(int32_t tensor, const Route& route, int64_t wire_bytes, int64_t src_bytes) {
  const int64_t elements = route.end - route.begin;
  const int64_t element_bytes = reduced_ ? src_bytes : wire_bytes;  // of what fills a bucket
  const Chunk chunk = {tensor, route.region, route.dst_region, route.begin, route.end, 0, 0};
  if (elements * element_bytes < AloneBytes(bucket_bytes_) &&
      elements * element_bytes <= bucket_bytes_) {
    if (coalesce_) return Join(chunk, wire_bytes, src_bytes);
    // As it would have joined: whole, whatever the party's pieces are.
    if (++wanted_ <= kBucketsMax) AppendAlone(chunk, wire_bytes, src_bytes);
    return;
  }
  const int64_t step = PieceElements(elements, route.row_elements, element_bytes,
                                     std::min(bucket_bytes_, route.party->piece_bytes));
  wanted_ += CeilDiv(elements, step);
  if (wanted_ > kBucketsMax) return;
  for (int64_t begin = route.begin; begin < route.end; begin += step) {
    Chunk piece = chunk;
    piece.begin = begin;
    piece.end = std::min(begin + step, route.end);
    AppendAlone(piece, wire_bytes, src_bytes);
  }
}

void PartyBuckets::Join(Chunk chunk, int64_t wire_bytes, int64_t src_bytes) {
  const int64_t elements = chunk.end - chunk.begin;
  const int64_t element_bytes = reduced_ ? src_bytes : wire_bytes;
  const int64_t filled = reduced_ ? joining_.contribution_bytes : joining_.bytes;
  if (RoundUp(filled, kChunkAlignmentBytes) + elements * element_bytes > bucket_bytes_) Finish();
  chunk.bucket_offset = RoundUp(joining_.bytes, kChunkAlignmentBytes);
  joining_.bytes = chunk.bucket_offset + elements * wire_bytes;
  if (reduced_) {
    chunk.contribution_offset = RoundUp(joining_.contribution_bytes, kChunkAlignmentBytes);
    joining_.contribution_bytes = chunk.contribution_offset + elements * src_bytes;
  }
  joined_.push_back(chunk);
}

void PartyBuckets::AppendAlone(const Chunk& chunk, int64_t wire_bytes, int64_t src_bytes) {
  const int64_t elements = chunk.end - chunk.begin;
  drafts_.push_back(
      {elements * wire_bytes, reduced_ ? elements * src_bytes : 0, chunks_.size(), 1});
  chunks_.push_back(chunk);
}

void PartyBuckets::Finish() {
  if (joined_.empty()) return;
  joining_.first_chunk = chunks_.size();
  joining_.chunk_count = joined_.size();
  drafts_.push_back(joining_);
  chunks_.insert(chunks_.end(), joined_.begin(), joined_.end());
  joined_.clear();
  joining_ = Draft();
  ++wanted_;
}

}  // namespace sluice
