// Cuts positions into pieces, and puts pieces together to items in device memory.
#include "session/stream/stream_work.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "session/peers/agreement.h"
#include "session/shard/stage_trace.h"
#include "storage/sized_item.h"
#include "tensor/check.h"

namespace sluice {
namespace {

constexpr int64_t kItemAlignment = 64;

}  // namespace

StreamWork::StreamWork(StreamPlan* plan, int rank, const StreamItems* items, DeviceCells* cells,
                       const StreamWorkOptions& options)
    : plan_(plan),
      rank_(rank),
      items_(items),
      cells_(cells),
      options_(options),
      pieces_max_(PiecesOf({0, 0, items->item_bytes_max()})),
      total_(plan->CountToCome()),
      position_(plan->NextPosition(0)),
      underway_(static_cast<size_t>(options.window)) {
  if (options.lends) lent_.resize(underway_.size());
  if (!options.transform) return;
  normalizer_.emplace(*options.transform, options.memory);
  grids_.resize(underway_.size());
}

int64_t StreamWork::PiecesOf(const StreamItem& item) const {
  return std::max<int64_t>(1, (item.bytes + options_.piece_bytes - 1) / options_.piece_bytes);
}

bool StreamWork::NextPiece(ShardPiece* piece) {
  if (over()) return false;
  const int64_t item_number = plan_->ItemAt(position_);
  if (part_ == 0) {
    Underway& fresh = At(index_);
    fresh = Underway();
    fresh.position = position_;
    fresh.item = items_->At(item_number);
    fresh.pieces = static_cast<int32_t>(std::min<int64_t>(PiecesOf(fresh.item), INT32_MAX));
    if (!lent_.empty()) lent_[PlaceOf(index_)] = Lent();
    fresh.payload = fresh.item.bytes;
    CountIntoBatch();
    may_lend_ = options_.lends && MayLend(fresh.item);
  }
  const Underway& item = At(index_);
  const absl::Span<const int> sharers = plan_->Sharers(position_);
  const int reader = ReaderOf(item, sharers);
  const int64_t begin = part_ * options_.piece_bytes;
  *piece = ShardPiece();
  piece->id = plan_->IdOf(position_, part_, reader);
  piece->channel = static_cast<int>((position_ * pieces_max_ + part_) % kStreamChannels);
  piece->bytes = std::min(options_.piece_bytes, item.item.bytes - begin);
  piece->index = index_;
  piece->part = part_;
  piece->stages = kStageDrain;
  // An item that is kept back here alone would hold up ranks that share it. This rank's consumer
  // may wait for these ranks.
  if (options_.groups_reads && sharers.size() == 1) piece->group = plan_->BlockOf(position_);
  if (piece->bytes > 0) {
    if (reader == rank_) piece->stages |= kStageFill;
    if (sharers.size() > 1) piece->stages |= kStageMove;
    piece->read = {.object = item.item.object,
                   .offset = item.item.offset + begin,
                   .bytes = piece->bytes,
                   .item = item_number,
                   .batch = batch_,
                   .may_lend = may_lend_};
  }
  if (++part_ == item.pieces) {
    part_ = 0;
    ++index_;
    position_ = plan_->NextPosition(position_ + 1);
  }
  return true;
}

// The batch that it ends must not wait for the next epoch, which a generator may not begin before.
bool StreamWork::IsLastOfEpoch(int64_t position) const {
  const int64_t next = plan_->NextPosition(position + 1);
  return next == plan_->end() || plan_->EpochOf(next) != plan_->EpochOf(position);
}

// As Grant deals items out to batches. Without an order it is the batch that the item would be in.
void StreamWork::CountIntoBatch() {
  const int64_t epoch = plan_->EpochOf(position_);
  const bool next_epoch = options_.in_order && epoch != last_given_epoch_;
  last_given_epoch_ = epoch;
  if (batch_taken_ == options_.batch_items || (next_epoch && batch_taken_ > 0)) {
    ++batch_;
    batch_taken_ = 0;
  }
  ++batch_taken_;
}

int StreamWork::ReaderOf(const Underway& item, absl::Span<const int> sharers) const {
  return items_->made() ? plan_->MakerOf(item.position, sharers)
                        : StreamPlan::ReaderOf(sharers, item.item.object);
}

// Batches are those that Grant makes. Without an order nobody knows what comes into one.
bool StreamWork::MayLend(const StreamItem& item) {
  if (options_.batch_items == 1) return MayLendAlone(position_, item);
  if (!options_.in_order) return false;
  const int64_t epoch = plan_->EpochOf(position_);
  if (batch_left_ > 0 && epoch == batch_epoch_) {
    --batch_left_;
    return may_lend_;
  }
  batch_epoch_ = epoch;
  batch_left_ = options_.batch_items - 1;
  return MayLendBatch(item);
}

// Ranks that share an item get it from a slot. Consumers find elements where they can load them.
bool StreamWork::MayLendAlone(int64_t position, const StreamItem& item) {
  return item.bytes > 0 && plan_->Sharers(position).size() == 1 &&
         item.offset % DTypeBytes(items_->DTypeOf(plan_->ItemAt(position))) == 0;
}

// Items of a batch lie one behind the other, wherever it is.
bool StreamWork::MayLendBatch(const StreamItem& first) {
  if (!MayLendAlone(position_, first)) return false;
  const int64_t epoch = plan_->EpochOf(position_);
  StreamItem before = first;
  int64_t position = position_;
  for (int64_t i = 1; i < options_.batch_items; ++i) {
    position = plan_->NextPosition(position + 1);
    if (position == plan_->end() || plan_->EpochOf(position) != epoch) break;
    const StreamItem item = items_->At(plan_->ItemAt(position));
    const bool follows = item.object == before.object && item.bytes == before.bytes &&
                         item.offset == before.offset + before.bytes;
    if (!follows || !MayLendAlone(position, item)) return false;
    before = item;
  }
  return true;
}

void StreamWork::AddMessages(const ShardPiece& piece, std::byte* data, uint64_t cookie,
                             std::vector<TransportOp>* messages) {
  const Underway& item = At(piece.index);
  const absl::Span<const int> sharers = plan_->Sharers(item.position);
  const int reader = ReaderOf(item, sharers);
  TransportOp op;
  op.tag = piece.channel;
  op.data = data;
  op.bytes = static_cast<size_t>(piece.bytes);
  op.cookie = cookie;
  if (reader != rank_) {
    op.kind = TransportOp::Kind::kReceive;
    op.peer = reader;
    messages->push_back(op);
    return;
  }
  for (const int sharer : sharers) {
    if (sharer == rank_) continue;
    op.peer = sharer;
    messages->push_back(op);
  }
}

void StreamWork::Arrived(const ShardPiece& piece) {
  Underway& item = At(piece.index);
  item.begin_ns = item.arrived == 0 ? piece.begin_ns : std::min(item.begin_ns, piece.begin_ns);
  ++item.arrived;
}

// In order, memory is granted to items whether their bytes have come or not, so that everything
// before an item can go on. As they come, memory is granted to what is here as a whole, for such an
// item needs nothing more. It is granted to the first item, too, whose other pieces nothing holds
// back.
bool StreamWork::MayDrain(const ShardPiece& piece) {
  const Underway& item = At(piece.index);
  if (item.granted) return true;
  if (options_.in_order) {
    while (first_ungranted_ <= piece.index) {
      if (!Grant(first_ungranted_)) return false;
      ++first_ungranted_;
    }
    return true;
  }
  while (At(first_ungranted_).granted) ++first_ungranted_;
  if (item.arrived < item.pieces && piece.index != first_ungranted_) return false;
  return Grant(piece.index);
}

bool StreamWork::Grant(int64_t index) {
  Underway& item = At(index);
  DeliveredItem delivered;
  delivered.item = plan_->ItemAt(item.position);
  delivered.epoch = plan_->EpochOf(item.position);
  delivered.position = item.position;
  delivered.dtype = items_->DTypeOf(delivered.item);
  delivered.shape = items_->ShapeOf(delivered.item);
  if (normalizer_) {
    delivered.dtype = options_.transform->dst;
    grids_[PlaceOf(index)] = normalizer_->GridOf(delivered.shape);
    delivered.shape = normalizer_->ShapeOf(delivered.shape);
  }
  // A batch does not reach from one epoch into the next.
  const int64_t epoch = delivered.epoch;
  if (options_.in_order && epoch != last_epoch_) cells_->CloseOpen();
  if (!cells_->Grant(std::move(delivered), &item.cell)) return false;
  last_epoch_ = epoch;
  item.granted = true;
  ++granted_;
  if (granted_ == total_ || (options_.in_order && IsLastOfEpoch(item.position))) {
    cells_->CloseOpen();
  }
  return true;
}

int StreamWork::KeepBlock(const ShardPiece& piece, std::byte* data, std::byte* memory, int block) {
  if (!options_.keep_blocks || piece.bytes == 0) return kNoBlock;
  // Consumers find items at whole cache lines, wherever they begin in a file.
  if ((data - memory) % kItemAlignment != 0) return kNoBlock;
  if (items_->sized()) TakeLength(piece, data);
  return cells_->SwapCell(At(piece.index).cell, memory, block, data);
}

bool StreamWork::KeepLent(const ShardPiece& piece, const std::byte* data,
                          const std::shared_ptr<const LentMemory>& lender) {
  if (lent_.empty()) return false;
  Lent& lent = lent_[PlaceOf(piece.index)];
  const int64_t begin = piece.part * options_.piece_bytes;
  ++lent.pieces;
  if (begin + piece.bytes <= lent.bytes) return true;
  // Each piece knows where the whole item is. Several mappings may lend parts: the one with the
  // longest part counts.
  lent.begin = data - begin;
  lent.bytes = begin + piece.bytes;
  lent.lender = lender;
  return true;
}

// Pieces that could not be lent are in the item's cell. Then the others have to go there, too.
void StreamWork::EndLent(int64_t index) {
  if (lent_.empty() || lent_[PlaceOf(index)].pieces == 0) return;
  Lent& lent = lent_[PlaceOf(index)];
  const Underway& item = At(index);
  const bool whole = lent.pieces == item.pieces;
  if (!whole) {
    std::memcpy(cells_->MemoryOf(item.cell), lent.begin, static_cast<size_t>(lent.bytes));
    bytes_copied_ += lent.bytes;
  }
  cells_->Lend(item.cell, whole ? lent.begin : nullptr, lent.bytes, std::move(lent.lender),
               item.item.offset + lent.bytes);
}

// An item that says itself how long it is comes as one piece.
int64_t StreamWork::TakeLength(const ShardPiece& piece, const std::byte* data) {
  Underway& item = At(piece.index);
  item.payload = StoredLength(data, piece.bytes);
  const int64_t element_bytes = DTypeBytes(items_->DTypeOf(plan_->ItemAt(item.position)));
  cells_->SetShape(item.cell, {item.payload / element_bytes});
  return item.payload;
}

absl::Status StreamWork::Drain(const ShardPiece& stored, std::byte* data, CopyQueue* copies) {
  ShardPiece piece = stored;
  if (items_->sized()) piece.bytes = TakeLength(stored, data);
  if (absl::Status status = AddCopy(piece, data, copies); !status.ok()) return status;
  Underway& item = At(piece.index);
  if (!options_.await_in_stream || ++item.started < item.pieces) return absl::OkStatus();
  if (absl::Status status = copies->Flush(); !status.ok()) return status;
  const auto ordered = copies->Order(nullptr, cells_->ReadyFence(item.cell));
  if (ordered.ok()) cells_->Fill(item.cell);
  return ordered.status();
}

absl::Status StreamWork::AddCopy(const ShardPiece& piece, std::byte* data, CopyQueue* copies) {
  if (piece.bytes == 0) return absl::OkStatus();
  bytes_copied_ += piece.bytes;
  const Underway& item = At(piece.index);
  const int64_t offset = piece.part * options_.piece_bytes;
  std::byte* const memory = cells_->MemoryOf(item.cell);
  if (!normalizer_) {
    return copies->AddFlat({data, DType::kU8, options_.memory.staging},
                           {memory + offset, DType::kU8, options_.memory.buffers}, piece.bytes);
  }
  return copies->Add(
      normalizer_->PieceOf(grids_[PlaceOf(piece.index)], offset, piece.bytes, data, memory));
}

ErrorText StreamWork::MembersOf(const ShardPiece& piece) {
  const Underway& item = At(piece.index);
  const absl::Span<const int> sharers = plan_->Sharers(item.position);
  if (sharers.size() < 2) return {};
  return ErrorText(items_->made() ? "made by " : "read by ", RankInWords(ReaderOf(item, sharers)),
                   " for ", NamedRanks(sharers));
}

absl::Status StreamWork::Done(const ShardPiece& piece, const std::byte*) {
  Underway& item = At(piece.index);
  if (++item.drained < item.pieces) return absl::OkStatus();
  EndLent(piece.index);
  ++items_done_;
  bytes_done_ += item.payload;
  if (options_.trace != nullptr) {
    options_.trace->Item(plan_->EpochOf(item.position), plan_->ItemAt(item.position),
                         item.item.bytes, item.begin_ns, MonotonicNs());
  }
  if (!options_.await_in_stream) cells_->Fill(item.cell);
  return absl::OkStatus();
}

}  // namespace sluice
