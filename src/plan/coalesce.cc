// Joining and splitting chunks.
#include "plan/coalesce.h"

#include <algorithm>

namespace sluice {
namespace {

// Chunks begin at multiples of this in their bucket: the largest element.
constexpr int64_t kChunkAlignmentBytes = 8;

// From this size on, a chunk in a bucket of its own costs little and may spare both ends a copy:
// alone, it needs no staging where it is contiguous.
int64_t AloneBytes(int64_t bucket_bytes) {
  return std::max<int64_t>(bucket_bytes / 8, int64_t{256} << 10);
}

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Elements per piece of a chunk that travels without others: all of it if it fits one bucket, else
// even pieces, cut at rows where rows are short, and at a multiple of 16 bytes otherwise.
int64_t PieceElements(int64_t elements, int64_t row_elements, int64_t element_bytes,
                      int64_t bucket_bytes) {
  const int64_t most = bucket_bytes / element_bytes;
  if (elements <= most) return elements;
  const int64_t pieces = (elements + most - 1) / most;
  const int64_t even = (elements + pieces - 1) / pieces;
  const int64_t alignment =
      row_elements <= even / 16 ? row_elements : std::max<int64_t>(1, 16 / element_bytes);
  return std::min(RoundUp(even, alignment), most);
}

}  // namespace

void PairBuckets::Add(int32_t tensor, const Route& route, int64_t element_bytes) {
  const int64_t elements = route.end - route.begin;
  const int64_t bytes = elements * element_bytes;
  if (bytes < AloneBytes(bucket_bytes_) && bytes <= bucket_bytes_) {
    Join({tensor, route.region, route.begin, route.end, 0}, bytes);
    return;
  }
  const int64_t step = PieceElements(elements, route.row_elements, element_bytes, bucket_bytes_);
  wanted_ += (elements + step - 1) / step;
  if (wanted_ > kBucketsMax) return;
  for (int64_t begin = route.begin; begin < route.end; begin += step) {
    const int64_t end = std::min(begin + step, route.end);
    AppendAlone({tensor, route.region, begin, end, 0}, (end - begin) * element_bytes);
  }
}

void PairBuckets::Join(Chunk chunk, int64_t bytes) {
  chunk.bucket_offset = RoundUp(joined_bytes_, kChunkAlignmentBytes);
  if (chunk.bucket_offset + bytes > bucket_bytes_) {
    Finish();
    chunk.bucket_offset = 0;
  }
  joined_.push_back(chunk);
  joined_bytes_ = chunk.bucket_offset + bytes;
}

void PairBuckets::AppendAlone(const Chunk& chunk, int64_t bytes) {
  drafts_.push_back({bytes, chunks_.size(), 1});
  chunks_.push_back(chunk);
}

void PairBuckets::Finish() {
  if (joined_.empty()) return;
  drafts_.push_back({joined_bytes_, chunks_.size(), joined_.size()});
  chunks_.insert(chunks_.end(), joined_.begin(), joined_.end());
  joined_.clear();
  joined_bytes_ = 0;
  ++wanted_;
}

}  // namespace sluice
