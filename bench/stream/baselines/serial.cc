// One wave of reads at a time.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "device/device.h"
#include "job/host_clock.h"
#include "session/stream/stream_limits.h"
#include "stream/baselines/baseline.h"
#include "stream/baselines/cell.h"
#include "stream/baselines/plain_reader.h"

namespace sluice::bench {
namespace {

class SerialLoader {
 public:
  explicit SerialLoader(const BaselineJob& job)
      : job_(job), plan_(job.plan), position_(plan_.NextPosition(0)) {}

  absl::Status Run(RankOutcome* outcome) {
    job_.consumer->Asked();
    absl::Status status = Open();
    while (status.ok() && !job_.consumer->done()) status = RunWave();
    if (source_ != nullptr) AddTo(outcome);
    return status;
  }

 private:
  struct Piece {
    int64_t position = 0;
    int64_t item = 0;
    int64_t offset = 0;  // in the item
    int64_t bytes = 0;
    bool last = false;  // of its item
  };

  absl::Status Open() {
    StreamOptions stream = *job_.stream;
    stream.reads.hedge.enabled = false;  // all the budget is for slots
    constexpr int kReadsMax = 4096;
    auto opened = OpenBaselineSource(stream, job_.delay, kReadsMax);
    if (!opened.ok()) return opened.status();
    const auto limits =
        ResolveStreamLimits(stream, *opened->items, opened->source->alignment(),
                            opened->whole_items, {.items_to_come = opened->items->items()});
    if (!limits.ok()) return limits.status();
    limits_ = *limits;
    items_ = std::move(opened->items);
    source_ = std::move(opened->source);
    reader_ = std::make_unique<PlainReader>(source_.get(), stream.reads.retry);
    const std::unique_ptr<Device> device = MakeHostDevice();
    auto blocks = device->AllocateStaging(static_cast<size_t>(limits_.slots) *
                                          static_cast<size_t>(limits_.block_bytes));
    if (!blocks.ok()) return blocks.status();
    blocks_ = *std::move(blocks);
    auto cell = device->AllocateBuffer(static_cast<size_t>(limits_.cell_bytes));
    if (!cell.ok()) return cell.status();
    cell_ = *std::move(cell);
    return absl::OkStatus();
  }

  // The next pieces, as many as there are slots, or fewer at the end.
  void PlanWave() {
    pieces_.clear();
    ops_.clear();
    while (pieces_.size() < static_cast<size_t>(limits_.slots) &&
           planned_ < job_.consumer->wanted()) {
      Piece piece{position_, plan_.ItemAt(position_), offset_, 0, false};
      const StreamItem place = items_->At(piece.item);
      piece.bytes = std::min(limits_.piece_bytes, place.bytes - offset_);
      offset_ += piece.bytes;
      piece.last = offset_ == place.bytes;
      std::byte* const block =
          blocks_.data() + static_cast<int64_t>(pieces_.size()) * limits_.block_bytes;
      ops_.push_back({.object = place.object,
                      .offset = place.offset + piece.offset,
                      .bytes = piece.bytes,
                      .data = block,
                      .item = piece.item});
      pieces_.push_back(piece);
      if (!piece.last) continue;
      offset_ = 0;
      position_ = plan_.NextPosition(position_ + 1);
      ++planned_;
    }
    slots_peak_ = std::max(slots_peak_, static_cast<int64_t>(pieces_.size()));
  }

  absl::Status RunWave() {
    PlanWave();
    if (absl::Status status = reader_->Read(absl::MakeSpan(ops_), &data_); !status.ok()) {
      return status;
    }
    bool waited = true;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      const Piece& piece = pieces_[i];
      const int64_t begin_ns = NowNs();
      CopyToCell(job_.stream->buffers.transform, data_[i], piece.offset, piece.bytes, cell_.data());
      copying_ns_ += NowNs() - begin_ns;
      if (!piece.last) continue;
      job_.consumer->Arrived(waited);
      job_.consumer->Consume(
          piece.item, plan_.EpochOf(piece.position),
          ViewOfCell(job_.stream->buffers.transform, *items_, piece.item, cell_.data()));
      job_.consumer->Asked();
      waited = false;
    }
    return absl::OkStatus();
  }

  void AddTo(RankOutcome* outcome) const {
    const SourceCounters& counters = source_->counters();
    outcome->requests = counters.requests;
    outcome->bytes_read = counters.bytes_read;
    outcome->opens = counters.opens;
    outcome->connections = counters.connections;
    outcome->retries = reader_->retries();
    outcome->peak_slots = slots_peak_;
    outcome->peak_bytes = slots_peak_ * limits_.block_bytes;
    outcome->limit_slots = limits_.slots;
    outcome->limit_bytes = job_.stream->reads.budget_bytes;
    outcome->device_bytes = limits_.cell_bytes;
    outcome->stage_s.read = static_cast<double>(reader_->reading_ns()) * 1e-9;
    outcome->stage_s.copy = static_cast<double>(copying_ns_) * 1e-9;
  }

  const BaselineJob& job_;
  const StreamPlan plan_;
  StreamLimits limits_;
  DeviceMemory blocks_;
  DeviceMemory cell_;
  std::unique_ptr<StreamItems> items_;
  std::unique_ptr<Source> source_;  // ends before the blocks do
  std::unique_ptr<PlainReader> reader_;

  int64_t position_;
  int64_t offset_ = 0;   // of the next piece in its item
  int64_t planned_ = 0;  // items
  std::vector<Piece> pieces_;
  std::vector<ReadOp> ops_;
  std::vector<const std::byte*> data_;
  int64_t slots_peak_ = 0;
  int64_t copying_ns_ = 0;
};

}  // namespace

absl::Status RunSerial(const BaselineJob& job, RankOutcome* outcome) {
  return SerialLoader(job).Run(outcome);
}

}  // namespace sluice::bench
