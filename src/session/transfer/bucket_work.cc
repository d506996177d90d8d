// The steps of each role.
#include "session/bucket_work.h"

#include <algorithm>

#include "plan/channels.h"
#include "session/bucket_sides.h"
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

void BucketWork::Admit(TransferRun* run, size_t index, Ticket ticket, std::byte* slot) {
  Clear();
  run_ = run;
  index_ = index;
  ticket_ = ticket;
  slot_ = slot;
  const BucketPart part = PartOf(*run, bucket());
  src_ = part.src;
  dst_ = part.dst;
  stages_ = part.stages;
  drops_ = part.drops;
  folds_ = part.folds;
}

absl::Status BucketWork::Next(Stage stage, int rounds_max, uint64_t cookie, CopyQueue* copies,
                              std::vector<TransportOp>* messages) {
  rounds_max_ = rounds_max;
  waits_ = false;
  copies->Begin(cookie, &pending_);
  if (stage == Stage::kMoving) return Move(cookie, copies, messages);
  begun_ = !begun_;
  if (!begun_) return absl::OkStatus();
  absl::Status status;
  if (stage == Stage::kFilling) {
    status = Pack(slot_, bucket().contribution_bytes > 0, copies);
  } else if (bucket().role == Role::kLocal) {
    if (!drops_) status = CopyLocally(copies);
  } else {
    status = Unpack(Wire().data, copies);
  }
  if (!status.ok()) return status;
  return copies->Flush();
}

absl::Status BucketWork::Move(uint64_t cookie, CopyQueue* copies,
                              std::vector<TransportOp>* messages) {
  const Role role = bucket().role;
  while (pending_ == 0 && !waits_ && step_ != Step::kOver) {
    switch (step_) {
      case Step::kGive:
        if (Has(role, Role::kContributor) && !AddsForOwner(role)) {
          if (!BeginRound()) break;
          const int64_t hop = int64_t{channel().own_contribution} + channel().step;
          Send(channel().owner, src_.data != nullptr ? src_ : WireMemory{slot_},
               {bucket().contribution_bytes, hop, cookie}, messages);
        }
        step_ = Step::kCollect;
        break;
      case Step::kCollect:
        if (contribution_ < channel().added_count) {
          absl::Status status =
              folds_ ? CollectAtOnce(cookie, copies, messages) : Collect(cookie, copies, messages);
          if (!status.ok()) return status;
        } else {
          step_ = Step::kGiveSum;
        }
        break;
      case Step::kGiveSum:
        if (AddsForOwner(role)) {
          if (!BeginRound()) break;
          Send(channel().owner, {Accumulator(0)},
               {bucket().contribution_bytes, HopOf(channel().added_count), cookie}, messages);
        }
        step_ = Step::kCast;
        break;
      case Step::kCast:
        if (OwnsResult(role) && ResultIsCast()) {
          if (absl::Status status = CastResult(copies); !status.ok()) return status;
        }
        step_ = Step::kReceive;
        break;
      case Step::kReceive:
        if (channel().parent.peer >= 0) {
          if (!BeginRound()) break;
          Receive(channel().parent, Wire(), {bucket().bytes, HopToChildren() - 1, cookie},
                  messages);
        }
        step_ = Step::kForward;
        break;
      case Step::kForward:
        if (channel().child_count > 0 && !BeginRound()) break;
        for (int32_t i = 0; i < channel().child_count; ++i) {
          const size_t link = static_cast<size_t>(channel().first_link) + static_cast<size_t>(i);
          Send(plan().links[link], Wire(), {bucket().bytes, HopToChildren(), cookie}, messages);
        }
        step_ = Step::kOver;
        break;
      case Step::kOver:
        break;
    }
  }
  return absl::OkStatus();
}

// Takes the next contribution, or adds the one that is here.
absl::Status BucketWork::Collect(uint64_t cookie, CopyQueue* copies,
                                 std::vector<TransportOp>* messages) {
  if (arrived_) {
    arrived_ = false;
    if (absl::Status status = AddContribution(contribution_++, copies); !status.ok()) return status;
    return copies->Flush();
  }
  const int64_t place = contribution_ % AddedTo(0);
  const bool first = place == 0 || (place == 1 && FoldsItselfLast(contribution_ - 1));
  std::byte* const to = first ? Accumulator(0) : Incoming();
  if (!IsOwn(contribution_)) {
    if (!BeginRound()) return absl::OkStatus();
    Receive(LinkOf(contribution_), {to},
            {bucket().contribution_bytes, HopOf(contribution_), cookie}, messages);
    arrived_ = true;
    return absl::OkStatus();
  }
  arrived_ = true;
  // What lies in source memory as it crosses is added from there.
  if (src_.one_stretch() && (place > 0 || FoldsItselfLast(contribution_))) return absl::OkStatus();
  if (absl::Status status = Pack(to, true, copies); !status.ok()) return status;
  return copies->Flush();
}

// Its own contribution has to lie as the others do before they are received, added up.
absl::Status BucketWork::CollectAtOnce(uint64_t cookie, CopyQueue* copies,
                                       std::vector<TransportOp>* messages) {
  const bool contributes = channel().own_contribution >= 0;
  if (contributes && src_.data == nullptr && !arrived_) {
    arrived_ = true;
    if (absl::Status status = Pack(Incoming(), true, copies); !status.ok()) return status;
    return copies->Flush();
  }
  // Other buckets of the channel may take one contribution after another.
  if (!BeginRounds(channel().added_count - (contributes ? 1 : 0))) return absl::OkStatus();
  contribution_ = channel().added_count;
  AddFold(cookie, messages);
  return absl::OkStatus();
}

void BucketWork::AddFold(uint64_t cookie, std::vector<TransportOp>* messages) {
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
  const WireMemory to = in_place ? dst_ : WireMemory{Accumulator(0)};
  Receive(*first, to, {bucket().contribution_bytes, HopOf(0), cookie}, messages);
  messages->back().fold = &fold_;
}

// Contribution `number` stands where Collect put it. Full accumulators are passed up the levels.
absl::Status BucketWork::AddContribution(int64_t number, CopyQueue* copies) {
  const bool from_memory = (IsOwn(number) && src_.one_stretch()) ||
                           (number % AddedTo(0) == 1 && FoldsItselfLast(number - 1));
  const std::byte* from = from_memory ? src_.data : Incoming();
  for (size_t k = 0; k < levels().size(); ++k) {
    const int64_t size = AddedTo(k);
    const int64_t place = number % size;
    if (place == 0) {
      if (k == 0) return absl::OkStatus();
      return copies->AddFlat({from, DType::kU8, staging()}, {Accumulator(k), DType::kU8, staging()},
                             bucket().contribution_bytes);
    }
    const bool last = place == size - 1;
    absl::Status status = Merge(levels()[k], last, from, Accumulator(k), copies);
    if (!status.ok() || !last) return status;
    from = Accumulator(k);
    number /= size;
  }
  return absl::OkStatus();
}

absl::Span<const Level> BucketWork::levels() const {
  return absl::MakeConstSpan(plan().levels)
      .subspan(static_cast<size_t>(channel().first_level),
               static_cast<size_t>(channel().level_count));
}

const Link& BucketWork::LinkOf(int64_t number) const {
  return plan().links[static_cast<size_t>(channel().first_link + channel().child_count + number)];
}

bool BucketWork::FoldsItselfLast(int64_t number) const {
  const ReduceOp op = levels()[0].op;
  const bool commutes = op != ReduceOp::kMax && op != ReduceOp::kMin;
  return commutes && src_.one_stretch() && number % AddedTo(0) == 0 && IsOwn(number);
}

absl::Status BucketWork::Merge(const Level& level, bool last, const std::byte* from,
                               std::byte* accumulator, CopyQueue* copies) {
  for (const Chunk& chunk : ChunksOf(plan(), bucket())) {
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
    if (absl::Status status = copies->Add(reduction); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status BucketWork::CastResult(CopyQueue* copies) {
  const std::byte* const result = Accumulator(static_cast<size_t>(channel().level_count) - 1);
  for (const Chunk& chunk : ChunksOf(plan(), bucket())) {
    const TensorTransfer& tensor = TensorAt(*run_, chunk);
    absl::Status status = copies->AddFlat(
        {result + chunk.contribution_offset, tensor.src_dtype, staging()},
        {Incoming() + chunk.bucket_offset, WireDType(tensor), staging()}, chunk.end - chunk.begin);
    if (!status.ok()) return status;
  }
  return copies->Flush();
}

absl::Status BucketWork::Pack(std::byte* wire, bool contribution, CopyQueue* copies) {
  for (const Chunk& chunk : ChunksOf(plan(), bucket())) {
    absl::Status status = copies->Add(contribution ? ContributionCopy(*run_, chunk, wire)
                                                   : PackCopy(*run_, chunk, wire));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status BucketWork::Unpack(const std::byte* wire, CopyQueue* copies) {
  for (const Chunk& chunk : ChunksOf(plan(), bucket())) {
    if (IsDropped(*run_, chunk)) continue;
    absl::Status status = copies->Add(UnpackCopy(*run_, chunk, wire));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status BucketWork::CopyLocally(CopyQueue* copies) {
  for (const Chunk& chunk : ChunksOf(plan(), bucket())) {
    if (IsDropped(*run_, chunk)) continue;
    absl::Status status = copies->Add(LocalCopy(*run_, chunk));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

bool BucketWork::BeginRounds(int rounds) {
  waits_ = rounds > rounds_max_ - rounds_;
  if (!waits_) rounds_ += rounds;
  return !waits_;
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
                      std::vector<TransportOp>* messages) {
  AddMessage(TransportOp::Kind::kSend, link, memory, letter, messages);
}

void BucketWork::Receive(const Link& link, const WireMemory& memory, const Letter& letter,
                         std::vector<TransportOp>* messages) {
  AddMessage(TransportOp::Kind::kReceive, link, memory, letter, messages);
}

void BucketWork::AddMessage(TransportOp::Kind kind, const Link& link, const WireMemory& memory,
                            const Letter& letter, std::vector<TransportOp>* messages) {
  TransportOp op;
  op.kind = kind;
  op.peer = link.peer;
  op.tag = TagOf(link);
  op.data = memory.data;
  op.row_bytes = static_cast<size_t>(memory.row_bytes);
  op.stride_bytes = static_cast<size_t>(memory.stride_bytes);
  op.bytes = static_cast<size_t>(letter.bytes);
  op.hop = static_cast<int>(letter.hop);
  // What lies in staging is unpacked next, and what has children is read for them.
  const bool stays = memory.data == dst_.data && channel().child_count == 0;
  if (kind == TransportOp::Kind::kReceive && stays) op.stores = run_->transfer().stores();
  op.cookie = letter.cookie;
  messages->push_back(op);
  ++pending_;
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
    return {ResultIsCast() ? Incoming()
                           : Accumulator(static_cast<size_t>(channel().level_count) - 1)};
  }
  const WireMemory& memory = Has(bucket().role, Role::kDestination) ? dst_ : src_;
  return memory.data != nullptr ? memory : WireMemory{slot_};
}

}  // namespace sluice
