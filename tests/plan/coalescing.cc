// Looks at the buckets of each party in order.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>

#include "plan/checks.h"
#include "plan/fanout.h"
#include "plan/wrong.h"

namespace sluice::oracle {
namespace {

constexpr int64_t kSmallBytes = int64_t{256} << 10;
constexpr int64_t kAlignmentBytes = 8;

int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

// The part of one tensor that goes through one party.
struct Part {
  int32_t tensor = 0;
  int64_t element_bytes = 1;    // of what fills a bucket
  std::vector<int64_t> pieces;  // elements
  int64_t begin = 0;
  int64_t end = 0;
  bool alone = true;

  int64_t bytes() const { return (end - begin) * element_bytes; }
};

class PartyCheck {
 public:
  PartyCheck(const Job& job, const Plan& plan, const std::vector<const Bucket*>& buckets)
      : job_(job),
        plan_(plan),
        buckets_(buckets),
        channel_(plan.channels[static_cast<size_t>(buckets[0]->channel)]),
        reduced_(buckets[0]->contribution_bytes > 0) {
    if (reduced_) room_bytes_ = ReductionAreaBytes(job.bucket_bytes, channel_.level_count);
    for (int32_t m = 1; m < channel_.member_count; ++m) {
      const Member& member = plan.members[static_cast<size_t>(int64_t{channel_.first_member} + m)];
      if (member.parent < 0) continue;
      ranks_.push_back(member.rank);
      parents_.push_back(member.parent);
    }
  }

  absl::Status Run() {
    if (absl::Status status = CheckSlots(); !status.ok()) return status;
    if (absl::Status status = CollectParts(); !status.ok()) return status;
    for (const auto& [tensor, part] : parts_) {
      if (absl::Status s = CheckPieces(part); !s.ok()) return Wrong("tensor ", tensor, s.message());
    }
    if (!job_.coalesce) return CheckApart();
    for (size_t b = 1; b < buckets_.size(); ++b) {
      const Bucket& left = *buckets_[b - 1];
      const Bucket& right = *buckets_[b];
      const int64_t joined = Aligned(Filled(left)) + Filled(right);
      if (joined <= room_bytes_ && AllSmall(left) && AllSmall(right)) {
        return Wrong(left.id.ToString(), " and the next one would fit in one");
      }
    }
    return absl::OkStatus();
  }

 private:
  int64_t Filled(const Bucket& bucket) const {
    return reduced_ ? bucket.contribution_bytes : bucket.bytes;
  }

  absl::Status CheckApart() const {
    for (const Bucket* bucket : buckets_) {
      if (bucket->chunk_count != 1) {
        return Wrong(bucket->id.ToString(), " has ", bucket->chunk_count, " chunks");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckSlots() const {
    for (const Bucket* bucket : buckets_) {
      const int64_t slot_bytes = SlotBytes(plan_, *bucket);
      const bool owner = Has(bucket->role, Role::kOwner);
      const int64_t areas = owner ? channel_.level_count + 1 : 1;
      const int64_t area_bytes = owner ? AreaBytes(*bucket) : slot_bytes;
      if (slot_bytes > job_.bucket_bytes || slot_bytes < areas * area_bytes ||
          area_bytes < std::max(bucket->bytes, bucket->contribution_bytes) ||
          (owner && area_bytes % kAlignmentBytes != 0)) {
        return Wrong(bucket->id.ToString(), " has a slot of ", slot_bytes, " bytes with ", areas,
                     " areas of ", area_bytes);
      }
    }
    return absl::OkStatus();
  }

  absl::Status CollectParts() {
    for (const Bucket* bucket : buckets_) {
      if (Filled(*bucket) > room_bytes_) return Wrong(bucket->id.ToString(), " is too large");
      for (int32_t c = 0; c < bucket->chunk_count; ++c) {
        const Chunk& chunk = plan_.chunks[static_cast<size_t>(bucket->first_chunk + c)];
        const TensorTransfer& tensor = job_.spec.tensors[static_cast<size_t>(chunk.tensor)];
        Part& part = parts_[chunk.tensor];
        if (part.pieces.empty()) {
          part.tensor = chunk.tensor;
          part.begin = part.end = chunk.begin;
          part.element_bytes = DTypeBytes(reduced_ ? tensor.src_dtype : WireDType(tensor));
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
    Fanout fanout = {FanoutShape::kStar, job_.bucket_bytes};
    const FanoutNodes nodes =
        CountNodes(channel_.src, RanksByNode(ranks_, job_.node_of_rank), job_.node_of_rank);
    if (nodes.others > 0) {
      const TensorTransfer& tensor = job_.spec.tensors[static_cast<size_t>(part.tensor)];
      const bool apart = !tensor.dst.mesh.PositionOf(channel_.src);
      fanout = apart && TreesCoincide(job_.slots, nodes.others)
                   ? ChooseCoincidingFanout(part.bytes(), nodes.others, job_.bucket_bytes)
                   : ChooseFanout(part.bytes(), nodes.others, job_.bucket_bytes);
    }
    if (nodes.relays) {
      fanout.piece_bytes =
          std::min(fanout.piece_bytes, RelayPieceBytes(part.bytes(), job_.bucket_bytes));
    }
    if (reduced_) {
      fanout.piece_bytes =
          std::min(fanout.piece_bytes, ReductionPieceBytes(part.bytes(), job_.bucket_bytes));
    }
    if (LastHeadsParent() != FanoutParent(fanout.shape, static_cast<int32_t>(nodes.others))) {
      return Wrong(" takes another tree than is best for it");
    }
    const bool small = part.bytes() < kSmallBytes && part.bytes() <= room_bytes_;
    const int64_t piece_bytes = small ? room_bytes_ : std::min(room_bytes_, fanout.piece_bytes);
    const int64_t most = piece_bytes / part.element_bytes;
    const int64_t needed = (part.end - part.begin + most - 1) / most;
    if (static_cast<int64_t>(part.pieces.size()) > needed) return Wrong(" has too many pieces");
    if (needed > 1 && part.pieces.size() > 1 && !part.alone)
      return Wrong(" is large and not alone");
    for (size_t i = 0; i + 1 < part.pieces.size(); ++i) {
      if (part.pieces[i] != part.pieces[0]) return Wrong(" has unequal pieces");
    }
    if (part.pieces.back() > part.pieces[0]) return Wrong(" has a larger last piece");
    return absl::OkStatus();
  }

  // Which node's rank the last node gets the bytes from; 0: the root's.
  int32_t LastHeadsParent() const {
    std::vector<int32_t> heads = {0};
    std::set<int> nodes = {NodeOf(channel_.src)};
    int32_t parent = 0;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (!nodes.insert(NodeOf(ranks_[i])).second) continue;
      parent = parents_[i];
      heads.push_back(static_cast<int32_t>(i) + 1);
    }
    return static_cast<int32_t>(std::find(heads.begin(), heads.end(), parent) - heads.begin());
  }
  int NodeOf(int rank) const { return job_.node_of_rank[static_cast<size_t>(rank)]; }

  bool AllSmall(const Bucket& bucket) const {
    for (int32_t c = 0; c < bucket.chunk_count; ++c) {
      const Part& part =
          parts_.at(plan_.chunks[static_cast<size_t>(bucket.first_chunk + c)].tensor);
      if (part.bytes() >= kSmallBytes || part.bytes() > room_bytes_) return false;
    }
    return true;
  }

  const Job& job_;
  const Plan& plan_;
  const std::vector<const Bucket*>& buckets_;
  const Channel& channel_;
  const bool reduced_;
  int64_t room_bytes_ = job_.bucket_bytes;
  std::vector<int> ranks_;  // below the root
  std::vector<int32_t> parents_;
  std::map<int32_t, Part> parts_;  // by tensor
};

}  // namespace

absl::Status CheckBucketSizes(const Job& job, const std::vector<Plan>& plans) {
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    using Party = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>;
    std::map<Party, std::vector<const Bucket*>> parties;
    for (const Bucket& bucket : plans[rank].buckets) {
      const BucketIdFields id = bucket.id.fields();
      parties[{id.window, id.src, id.dst, id.n}].push_back(&bucket);
    }
    for (const auto& [party, buckets] : parties) {
      if (absl::Status s = PartyCheck(job, plans[rank], buckets).Run(); !s.ok()) {
        return Wrong("rank ", rank, ", ", buckets[0]->id.ToString(), ": ", s.message());
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace sluice::oracle
