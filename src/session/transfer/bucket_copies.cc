// The copies of each stage, and the sums of a reduction.
#include "session/transfer/bucket_sides.h"
#include "session/transfer/bucket_work.h"

namespace sluice {

absl::StatusOr<bool> BucketWork::MayAdd(CopyQueue* copies) {
  absl::StatusOr<bool> room = copies->HasRoom();
  if (!room.ok()) return room;
  is_cut_ = !*room;
  if (is_cut_) copies->AwaitRoom();
  return room;
}

template <class AddOne>
absl::Status BucketWork::AddChunks(CopyQueue* copies, const AddOne& add) {
  const absl::Span<const Chunk> chunks = ChunksOf(plan(), bucket());
  while (next_chunk_ < chunks.size()) {
    const absl::StatusOr<bool> may = MayAdd(copies);
    if (!may.ok() || !*may) return may.status();
    for (const Chunk& chunk : chunks.subspan(next_chunk_, copies->batch_items())) {
      if (absl::Status status = add(chunk); !status.ok()) return status;
      ++next_chunk_;
    }
  }
  next_chunk_ = 0;
  return absl::OkStatus();
}

bool BucketWork::Replays(bool writes_destinations) const {
  return run_->transfer().memory.copies_inline && !run_->cut() &&
         !(writes_destinations && run_->late_destinations());
}

absl::Status BucketWork::Pack(std::byte* wire, bool contribution, CopyQueue* copies) {
  if (!contribution && Replays(false) && run_->program()->Pack(*run_, index_, wire)) {
    return absl::OkStatus();
  }
  return AddChunks(copies, [&](const Chunk& chunk) {
    return copies->Add(contribution ? ContributionCopy(*run_, chunk, wire)
                                    : PackCopy(*run_, chunk, wire));
  });
}

absl::Status BucketWork::Unpack(const std::byte* wire, CopyQueue* copies) {
  if (Replays(true) && run_->program()->Unpack(*run_, index_, wire)) return absl::OkStatus();
  return AddChunks(copies, [&](const Chunk& chunk) {
    if (IsDropped(*run_, chunk)) return absl::OkStatus();
    return copies->Add(UnpackCopy(*run_, chunk, wire));
  });
}

absl::Status BucketWork::CopyLocally(CopyQueue* copies) {
  if (Replays(true) && run_->program()->CopyLocally(*run_, index_)) return absl::OkStatus();
  return AddChunks(copies, [&](const Chunk& chunk) {
    if (IsDropped(*run_, chunk)) return absl::OkStatus();
    return copies->Add(LocalCopy(*run_, chunk));
  });
}

// Full accumulators are passed up the levels.
absl::Status BucketWork::AddContribution(const MoveAction& action, CopyQueue* copies) {
  const std::byte* from = action.own ? src_.data : Incoming();
  int64_t number = action.number;
  for (size_t k = 0; k < levels().size(); ++k) {
    const int64_t size = AddedTo(k);
    const int64_t place = number % size;
    const bool last = place > 0 && place == size - 1;
    if (k >= next_level_) {
      absl::Status status = AddToLevel(k, place, from, copies);
      if (!status.ok() || is_cut_) return status;
      ++next_level_;
    }
    if (!last) break;
    from = Accumulator(k);
    number /= size;
  }
  next_level_ = 0;
  return absl::OkStatus();
}

absl::Status BucketWork::AddToLevel(size_t k, int64_t place, const std::byte* from,
                                    CopyQueue* copies) {
  if (place > 0) {
    return Merge(levels()[k], place == AddedTo(k) - 1, from, Accumulator(k), copies);
  }
  const absl::StatusOr<bool> may = MayAdd(copies);
  if (!may.ok() || !*may) return may.status();
  return copies->AddFlat({from, DType::kU8, staging()}, {Accumulator(k), DType::kU8, staging()},
                         bucket().contribution_bytes);
}

absl::Status BucketWork::Merge(const Level& level, bool last, const std::byte* from,
                               std::byte* accumulator, CopyQueue* copies) {
  return AddChunks(copies, [&](const Chunk& chunk) {
    Reduction reduction;
    reduction.op = level.op;
    reduction.dtype = TensorAt(*run_, chunk).src_dtype;
    reduction.src = from + chunk.contribution_offset;
    reduction.src_kind = from == src_.data ? src_.kind : staging();
    reduction.dst_kind = staging();
    reduction.dst = accumulator + chunk.contribution_offset;
    reduction.elements = chunk.end - chunk.begin;
    const bool divides = level.op == ReduceOp::kAvg && OwnsResult(bucket().role);
    if (last && divides) reduction.divisor = level.size;
    return copies->Add(reduction);
  });
}

absl::Status BucketWork::CastResult(CopyQueue* copies) {
  const std::byte* const result = Accumulator(static_cast<size_t>(channel().level_count) - 1);
  return AddChunks(copies, [&](const Chunk& chunk) {
    const TensorTransfer& tensor = TensorAt(*run_, chunk);
    return copies->AddFlat({result + chunk.contribution_offset, tensor.src_dtype, staging()},
                           {Incoming() + chunk.bucket_offset, WireDType(tensor), staging()},
                           chunk.end - chunk.begin);
  });
}

}  // namespace sluice
