// Looks at the buckets of each pair of ranks in order.
#include "plan/coalescing.h"

#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"

namespace sluice::oracle {
namespace {

constexpr int64_t kSmallBytes = int64_t{256} << 10;
constexpr int64_t kAlignmentBytes = 8;

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InternalError(absl::StrCat(parts...));
}

// The part of one tensor that goes through one channel.
struct Part {
  int64_t element_bytes = 1;
  std::vector<int64_t> pieces;  // elements
  int64_t begin = 0;
  int64_t end = 0;
  bool alone = true;

  int64_t bytes() const { return (end - begin) * element_bytes; }
};

class PairCheck {
 public:
  PairCheck(const Job& job, const Plan& plan, const std::vector<const Bucket*>& buckets)
      : job_(job), plan_(plan), buckets_(buckets) {}

  absl::Status Run() {
    if (absl::Status status = CollectParts(); !status.ok()) return status;
    for (const auto& [tensor, part] : parts_) {
      if (absl::Status s = CheckPieces(part); !s.ok()) return Wrong("tensor ", tensor, s.message());
    }
    for (size_t b = 1; b < buckets_.size(); ++b) {
      const Bucket& left = *buckets_[b - 1];
      const Bucket& right = *buckets_[b];
      const int64_t joined =
          (left.bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes + right.bytes;
      if (joined <= job_.bucket_bytes && AllSmall(left) && AllSmall(right)) {
        return Wrong(left.id.ToString(), " and the next one would fit in one");
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CollectParts() {
    for (const Bucket* bucket : buckets_) {
      if (bucket->bytes > job_.bucket_bytes) return Wrong(bucket->id.ToString(), " is too large");
      for (int32_t c = 0; c < bucket->chunk_count; ++c) {
        const Chunk& chunk = plan_.chunks[static_cast<size_t>(bucket->first_chunk + c)];
        Part& part = parts_[chunk.tensor];
        if (part.pieces.empty()) {
          part.begin = part.end = chunk.begin;
          part.element_bytes =
              DTypeBytes(job_.spec.tensors[static_cast<size_t>(chunk.tensor)].src_dtype);
        }
        if (chunk.begin != part.end) return Wrong("pieces do not follow one another");
        part.end = chunk.end;
        part.pieces.push_back(chunk.end - chunk.begin);
        part.alone = part.alone && bucket->chunk_count == 1;
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckPieces(const Part& part) const {
    const int64_t most = job_.bucket_bytes / part.element_bytes;
    const int64_t needed = (part.end - part.begin + most - 1) / most;
    if (static_cast<int64_t>(part.pieces.size()) > needed) return Wrong(" has too many pieces");
    if (needed > 1 && !part.alone) return Wrong(" is large and not alone");
    for (size_t i = 0; i + 1 < part.pieces.size(); ++i) {
      if (part.pieces[i] != part.pieces[0]) return Wrong(" has unequal pieces");
    }
    if (part.pieces.back() > part.pieces[0]) return Wrong(" has a larger last piece");
    return absl::OkStatus();
  }

  bool AllSmall(const Bucket& bucket) const {
    for (int32_t c = 0; c < bucket.chunk_count; ++c) {
      const Part& part =
          parts_.at(plan_.chunks[static_cast<size_t>(bucket.first_chunk + c)].tensor);
      if (part.bytes() >= kSmallBytes || part.bytes() > job_.bucket_bytes) return false;
    }
    return true;
  }

  const Job& job_;
  const Plan& plan_;
  const std::vector<const Bucket*>& buckets_;
  std::map<int32_t, Part> parts_;  // by tensor
};

}  // namespace

absl::Status CheckBucketSizes(const Job& job, const std::vector<Plan>& plans) {
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    std::map<int32_t, std::vector<const Bucket*>> by_channel;
    for (const Bucket& bucket : plans[rank].buckets) by_channel[bucket.channel].push_back(&bucket);
    for (const auto& [channel, buckets] : by_channel) {
      if (absl::Status s = PairCheck(job, plans[rank], buckets).Run(); !s.ok()) {
        return Wrong("rank ", rank, ", channel ", channel, ": ", s.message());
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice::oracle
