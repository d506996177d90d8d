// From positions to pieces, and from pieces to items in device memory.
#include "session/stream/stream_work.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/base/clock.h"
#include "session/peers/agreement.h"
#include "session/shard/stage_trace.h"
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
      underway_(static_cast<size_t>(options.window)) {}

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
    fresh.pieces = PiecesOf(fresh.item);
  }
  const Underway& item = At(index_);
  const absl::Span<const int> sharers = plan_->Sharers(position_);
  const int reader = StreamPlan::ReaderOf(sharers, item.item.object);
  const int64_t begin = part_ * options_.piece_bytes;
  *piece = ShardPiece();
  piece->id = plan_->IdOf(position_, part_, reader);
  piece->channel = static_cast<int>((position_ * pieces_max_ + part_) % kStreamChannels);
  piece->bytes = std::min(options_.piece_bytes, item.item.bytes - begin);
  piece->index = index_;
  piece->part = part_;
  piece->stages = kStageDrain;
  if (piece->bytes > 0) {
    if (reader == rank_) piece->stages |= kStageFill;
    if (sharers.size() > 1) piece->stages |= kStageMove;
    piece->read = {.object = item.item.object,
                   .offset = item.item.offset + begin,
                   .bytes = piece->bytes,
                   .item = item_number};
  }
  if (++part_ == item.pieces) {
    part_ = 0;
    ++index_;
    position_ = plan_->NextPosition(position_ + 1);
  }
  return true;
}

void StreamWork::AddMessages(const ShardPiece& piece, std::byte* data, uint64_t cookie,
                             std::vector<TransportOp>* messages) {
  const Underway& item = At(piece.index);
  const absl::Span<const int> sharers = plan_->Sharers(item.position);
  const int reader = StreamPlan::ReaderOf(sharers, item.item.object);
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
  if (options_.transform) delivered.dtype = options_.transform->dst;
  // A batch does not reach from one epoch into the next.
  const int64_t epoch = delivered.epoch;
  if (options_.in_order && epoch != last_epoch_) cells_->CloseOpen();
  if (!cells_->Grant(std::move(delivered), &item.cell)) return false;
  last_epoch_ = epoch;
  item.granted = true;
  if (++granted_ == total_) cells_->CloseOpen();
  return true;
}

int64_t StreamWork::DeliveredBytes(int64_t bytes) const {
  if (!options_.transform) return bytes;
  return bytes / DTypeBytes(options_.transform->src) * DTypeBytes(options_.transform->dst);
}

int StreamWork::KeepBlock(const ShardPiece& piece, std::byte* data, std::byte* memory, int block) {
  if (!options_.keep_blocks || piece.bytes == 0) return kNoBlock;
  // Consumers find items at whole cache lines, wherever they begin in a file.
  if ((data - memory) % kItemAlignment != 0) return kNoBlock;
  return cells_->SwapCell(At(piece.index).cell, memory, block, data);
}

absl::Status StreamWork::Drain(const ShardPiece& piece, std::byte* data, CopyQueue* copies) {
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
  std::byte* const dst =
      cells_->MemoryOf(At(piece.index).cell) + DeliveredBytes(piece.part * options_.piece_bytes);
  if (!options_.transform) {
    return copies->AddFlat({data, DType::kU8, options_.memory.staging},
                           {dst, DType::kU8, options_.memory.buffers}, piece.bytes);
  }
  const ItemTransform& transform = *options_.transform;
  return copies->Add(Normalization{.src_dtype = transform.src,
                                   .dst_dtype = transform.dst,
                                   .scale = transform.scale,
                                   .bias = transform.bias,
                                   .src = data,
                                   .dst = dst,
                                   .elements = piece.bytes / DTypeBytes(transform.src),
                                   .src_kind = options_.memory.staging,
                                   .dst_kind = options_.memory.buffers});
}

std::string StreamWork::MembersOf(const ShardPiece& piece) {
  const Underway& item = At(piece.index);
  const absl::Span<const int> sharers = plan_->Sharers(item.position);
  if (sharers.size() < 2) return "";
  return absl::StrCat("read by rank ", StreamPlan::ReaderOf(sharers, item.item.object),
                      " for ranks ", RanksText(sharers));
}

absl::Status StreamWork::Done(const ShardPiece& piece, const std::byte*) {
  Underway& item = At(piece.index);
  if (++item.drained < item.pieces) return absl::OkStatus();
  ++items_done_;
  bytes_done_ += item.item.bytes;
  if (options_.trace != nullptr) {
    options_.trace->Item(plan_->EpochOf(item.position), plan_->ItemAt(item.position),
                         item.item.bytes, item.begin_ns, MonotonicNs());
  }
  if (!options_.await_in_stream) cells_->Fill(item.cell);
  return absl::OkStatus();
}

}  // namespace sluice
