// Begins the stages of a bucket, and its messages.
#include "session/transfer/bucket_work.h"

#include <algorithm>

#include "plan/channels.h"
#include "session/transfer/bucket_sides.h"
#include "tensor/check.h"

namespace sluice {
namespace {

static_assert(kRunTags * kLinkTags <= kMaxTransportTag + 1);

}  // namespace

Submission BucketWork::SubmissionOf(const TransferRun& run, size_t index) {
  const Plan& plan = run.transfer().plan();
  const Bucket& bucket = plan.buckets[index];
  const Channel& channel = plan.channels[static_cast<size_t>(bucket.channel)];
  const BucketPart part = PartOf(run, bucket);
  Submission submission;
  submission.cookie = static_cast<uint64_t>(run.id()) << kIndexBits | index;
  submission.id = bucket.id.WithRun(static_cast<uint64_t>(run.id()));
  submission.lane = run.lane();
  submission.channel = run.transfer().engine_channels[static_cast<size_t>(bucket.channel)];
  submission.stages = part.stages;
  submission.staging_bytes = part.staging_bytes;
  submission.operations = bucket.role == Role::kLocal ? 0 : std::max(1, channel.child_count);
  if (part.folds) {
    submission.operations = std::max(submission.operations, 1 + channel.added_count);
  }
  return submission;
}

void BucketWork::Clear() {
  std::vector<FoldSource> sources = std::move(sources_);
  sources.clear();
  *this = BucketWork();
  sources_ = std::move(sources);
}

void BucketWork::Admit(TransferRun* run, size_t index, std::byte* slot) {
  Clear();
  run_ = run;
  index_ = index;
  slot_ = slot;
  const BucketPart part = PartOf(*run, bucket());
  src_ = part.src;
  dst_ = part.dst;
  stages_ = part.stages;
  drops_ = part.drops;
  shape_ = Shape(part.folds);
}

absl::Status BucketWork::Next(Stage stage, int rounds_max, const StageOperations& to) {
  waits_ = false;
  if (stage == Stage::kMoving) return Move(rounds_max, to);
  if (!is_cut_) begun_ = !begun_;
  if (!begun_) return absl::OkStatus();
  absl::Status status;
  if (stage == Stage::kFilling) {
    status = Pack(slot_, bucket().contribution_bytes > 0, to.copies);
  } else if (bucket().role == Role::kLocal) {
    if (!drops_) status = CopyLocally(to.copies);
  } else {
    status = Unpack(Wire().data, to.copies);
  }
  if (!status.ok()) return status;
  return to.copies->Flush();
}

MoveShape BucketWork::Shape(bool folds) const {
  MoveShape shape = ShapeOf(plan(), bucket());
  shape.folds = folds;
  // A fold takes rows as well.
  shape.own_lies = folds ? src_.data != nullptr : src_.one_stretch();
  shape.casts = OwnsResult(bucket().role) && ResultIsCast();
  return shape;
}

absl::Status BucketWork::Move(int rounds_max, const StageOperations& to) {
  while (*to.pending == 0) {
    if (!is_cut_) action_ = NextAction(shape_, rounds_max, &move_);
    waits_ = action_.kind == MoveKind::kWait;
    if (waits_ || action_.kind == MoveKind::kOver) break;
    if (absl::Status status = CarryOut(action_, to); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status BucketWork::CarryOut(const MoveAction& action, const StageOperations& to) {
  const int64_t contribution_bytes = bucket().contribution_bytes;
  std::byte* const area = action.first ? Accumulator(0) : Incoming();
  absl::Status status;
  switch (action.kind) {
    case MoveKind::kGive:
      Send(channel().owner, src_.data != nullptr ? src_ : WireMemory{slot_},
           {contribution_bytes, int64_t{channel().own_contribution} + channel().step}, to);
      break;
    case MoveKind::kTake:
      Receive(LinkOf(action.number), {area}, {contribution_bytes, HopOf(action.number)}, to);
      break;
    case MoveKind::kPackOwn:
      status = Pack(area, true, to.copies);
      break;
    case MoveKind::kFold:
      AddFold(to);
      break;
    case MoveKind::kAdd:
      status = AddContribution(action, to.copies);
      break;
    case MoveKind::kGiveSum:
      Send(channel().owner, {Accumulator(0)}, {contribution_bytes, HopOf(channel().added_count)},
           to);
      break;
    case MoveKind::kCast:
      status = CastResult(to.copies);
      break;
    case MoveKind::kReceive:
      Receive(channel().parent, Wire(), {bucket().bytes, HopToChildren() - 1}, to);
      break;
    case MoveKind::kForward:
      for (int32_t i = 0; i < channel().child_count; ++i) {
        const size_t link = static_cast<size_t>(channel().first_link) + static_cast<size_t>(i);
        Send(plan().links[link], Wire(), {bucket().bytes, HopToChildren()}, to);
      }
      break;
    case MoveKind::kWait:
    case MoveKind::kOver:
      break;
  }
  if (!status.ok()) return status;
  return to.copies->Flush();
}

void BucketWork::AddFold(const StageOperations& to) {
  const Link* first = nullptr;
  for (int64_t number = 0; number < channel().added_count; ++number) {
    const Link& link = LinkOf(number);
    FoldSource source;
    if (IsOwn(number)) {
      const WireMemory own = src_.data != nullptr ? src_ : WireMemory{Incoming()};
      source.data = own.data;
      source.row_bytes = static_cast<size_t>(own.row_bytes);
      source.stride_bytes = static_cast<size_t>(own.stride_bytes);
    } else {
      source.peer = link.peer;
      source.tag = TagOf(link);
      if (first == nullptr) first = &link;
    }
    sources_.push_back(source);
  }
  const Level& level = levels()[0];
  const Chunk& chunk = ChunksOf(plan(), bucket())[0];
  const bool divides = level.op == ReduceOp::kAvg && OwnsResult(bucket().role);
  fold_ = {level.op, TensorAt(*run_, chunk).src_dtype, divides ? level.size : 1, sources_};
  const bool in_place = OwnsResult(bucket().role) && dst_.data != nullptr;
  const WireMemory area = in_place ? dst_ : WireMemory{Accumulator(0)};
  Receive(*first, area, {bucket().contribution_bytes, HopOf(0)}, to);
  to.messages->back().fold = &fold_;
}

absl::Span<const Level> BucketWork::levels() const {
  return absl::MakeConstSpan(plan().levels)
      .subspan(static_cast<size_t>(channel().first_level),
               static_cast<size_t>(channel().level_count));
}

const Link& BucketWork::LinkOf(int64_t number) const {
  return plan().links[static_cast<size_t>(channel().first_link + channel().child_count + number)];
}

int64_t BucketWork::AddedTo(size_t level) const {
  return channel().step_count > 1 ? channel().added_count : levels()[level].size;
}

// The sum of the steps before comes right before the first contribution of a step, and after the
// last one of the step before.
int64_t BucketWork::HopOf(int64_t number) const {
  return int64_t{channel().first_added} + number + std::max(0, channel().step - 1);
}

int64_t BucketWork::HopToChildren() const {
  return int64_t{channel().contribution_count} + std::max(0, channel().step_count - 1) +
         channel().depth;
}

void BucketWork::Send(const Link& link, const WireMemory& memory, const Letter& letter,
                      const StageOperations& to) {
  AddMessage(TransportOp::Kind::kSend, link, memory, letter, to);
}

void BucketWork::Receive(const Link& link, const WireMemory& memory, const Letter& letter,
                         const StageOperations& to) {
  AddMessage(TransportOp::Kind::kReceive, link, memory, letter, to);
}

void BucketWork::AddMessage(TransportOp::Kind kind, const Link& link, const WireMemory& memory,
                            const Letter& letter, const StageOperations& to) {
  TransportOp op;
  op.kind = kind;
  op.peer = link.peer;
  op.tag = TagOf(link);
  op.data = memory.data;
  op.row_bytes = static_cast<size_t>(memory.row_bytes);
  op.stride_bytes = static_cast<size_t>(memory.stride_bytes);
  op.bytes = static_cast<size_t>(letter.bytes);
  op.hop = static_cast<int>(letter.hop);
  // Bytes in staging are unpacked next, and bytes for children are read for them.
  const bool stays = memory.data == dst_.data && channel().child_count == 0;
  if (kind == TransportOp::Kind::kReceive && stays) op.stores = run_->transfer().stores();
  op.cookie = to.cookie;
  to.messages->push_back(op);
  ++*to.pending;
}

// Shifted by the transfer, so that ranks which run different ones stall, rather than take each
// other's messages.
int BucketWork::TagOf(const Link& link) const {
  constexpr int kShift = 37;
  const int run_tag = static_cast<int>(run_->id() % kRunTags);
  const int shift = run_->transfer().number % kLinkTags * kShift;
  return run_tag * kLinkTags + (link.tag + shift) % kLinkTags;
}

std::byte* BucketWork::Area(size_t number) const {
  return slot_ + static_cast<int64_t>(number) * AreaBytes(bucket());
}

bool BucketWork::ResultIsCast() const {
  for (const Chunk& chunk : ChunksOf(plan(), bucket())) {
    const TensorTransfer& tensor = TensorAt(*run_, chunk);
    if (tensor.src_dtype != WireDType(tensor)) return true;
  }
  return false;
}

WireMemory BucketWork::Wire() const {
  if (OwnsResult(bucket().role)) {
    if (dst_.data != nullptr) return dst_;
    return {shape_.casts ? Incoming()
                         : Accumulator(static_cast<size_t>(channel().level_count) - 1)};
  }
  const WireMemory& memory = Has(bucket().role, Role::kDestination) ? dst_ : src_;
  return memory.data != nullptr ? memory : WireMemory{slot_};
}

}  // namespace sluice
