// Planning, reading and consuming waves.
#include "stream/baselines/wave.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "stream/baselines/cell.h"

namespace sluice::bench {

absl::Status WaveReader::Open(int slabs) {
  StreamOptions stream = *job_.stream;
  stream.reads.hedge.enabled = false;  // all the budget is for slots
  constexpr int kReadsMax = 4096;
  auto opened = OpenBaselineSource(stream, job_.delay, kReadsMax);
  if (!opened.ok()) return opened.status();
  const auto limits =
      ResolveStreamLimits(stream, *opened->items, opened->source->alignment(), opened->whole_items,
                          {.items_to_come = opened->items->items()});
  if (!limits.ok()) return limits.status();
  limits_ = *limits;
  slab_slots_ = limits_.slots / slabs;
  if (slab_slots_ < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a budget of ", limits_.slots, " slots has not one for each of ", slabs, " slabs"));
  }
  items_ = std::move(opened->items);
  source_ = std::move(opened->source);
  reader_ = std::make_unique<PlainReader>(source_.get(), stream.reads.retry);
  const std::unique_ptr<Device> device = MakeHostDevice();
  auto blocks = device->AllocateStaging(static_cast<size_t>(slab_slots_ * slabs) *
                                        static_cast<size_t>(limits_.block_bytes));
  if (!blocks.ok()) return blocks.status();
  blocks_ = *std::move(blocks);
  auto cell = device->AllocateBuffer(static_cast<size_t>(limits_.cell_bytes));
  if (!cell.ok()) return cell.status();
  cell_ = *std::move(cell);
  return absl::OkStatus();
}

void WaveReader::Plan(int slab, Wave* wave) {
  wave->pieces.clear();
  wave->ops.clear();
  while (wave->pieces.size() < static_cast<size_t>(slab_slots_) && !AllBegun()) {
    Wave::Piece piece{position_, plan_.ItemAt(position_), offset_, 0, false};
    const StreamItem place = items_->At(piece.item);
    piece.bytes = std::min(limits_.piece_bytes, place.bytes - offset_);
    offset_ += piece.bytes;
    piece.last = offset_ == place.bytes;
    const int64_t block = slab * slab_slots_ + static_cast<int64_t>(wave->pieces.size());
    wave->ops.push_back({.object = place.object,
                         .offset = place.offset + piece.offset,
                         .bytes = piece.bytes,
                         .data = blocks_.data() + block * limits_.block_bytes,
                         .item = piece.item});
    wave->pieces.push_back(piece);
    if (!piece.last) continue;
    offset_ = 0;
    position_ = plan_.NextPosition(position_ + 1);
    ++planned_;
  }
}

absl::Status WaveReader::Fill(int slab, Wave* wave) {
  Plan(slab, wave);
  const auto slots = static_cast<int64_t>(wave->pieces.size());
  held_peak_ = std::max(held_peak_, held_.fetch_add(slots) + slots);
  return reader_->Read(absl::MakeSpan(wave->ops), &wave->data);
}

void WaveReader::Consume(const Wave& wave, bool waited) {
  const auto& transform = job_.stream->buffers.transform;
  waited_ = waited_ || waited;
  for (size_t i = 0; i < wave.pieces.size(); ++i) {
    const Wave::Piece& piece = wave.pieces[i];
    const int64_t begin_ns = MonotonicNs();
    CopyToCell(transform, *items_, piece.item, wave.data[i], piece.offset, piece.bytes,
               cell_.data());
    copying_ns_ += MonotonicNs() - begin_ns;
    if (!piece.last) continue;
    job_.consumer->Arrived(std::exchange(waited_, false));
    job_.consumer->Consume(piece.item, plan_.EpochOf(piece.position),
                           ViewOfCell(transform, *items_, piece.item, cell_.data()));
    job_.consumer->Asked();
  }
  held_ -= static_cast<int64_t>(wave.pieces.size());
}

void WaveReader::AddTo(RankOutcome* outcome) const {
  if (source_ == nullptr) return;
  const SourceCounters& counters = source_->counters();
  outcome->requests = counters.requests;
  outcome->bytes_read = counters.bytes_read;
  outcome->opens = counters.opens;
  outcome->connections = counters.connections;
  outcome->retries = reader_->retries();
  outcome->peak_slots = held_peak_;
  outcome->peak_bytes = held_peak_ * limits_.block_bytes;
  outcome->limit_slots = limits_.slots;
  outcome->limit_bytes = job_.stream->reads.budget_bytes;
  outcome->device_bytes = limits_.cell_bytes;
  outcome->stage_s.read = static_cast<double>(reader_->reading_ns()) * 1e-9;
  outcome->stage_s.copy = static_cast<double>(copying_ns_) * 1e-9;
}

}  // namespace sluice::bench
