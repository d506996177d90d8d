// Waves of reads: pieces that are begun together, waited for, and then consumed in order. One wave
// fills the whole budget, or a thread fills slabs one after the other while those before are
// consumed.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "device/device.h"
#include "plan/shard/stream_plan.h"
#include "session/stream/stream_limits.h"
#include "sluice/status.h"
#include "storage/source.h"
#include "stream/baselines/baseline.h"

namespace sluice::bench {
namespace {

// The content of one slab. The memory is the reader's.
struct Wave {
  struct Piece {
    int64_t position = 0;
    int64_t item = 0;
    int64_t offset = 0;  // in the item
    int64_t bytes = 0;
    bool last = false;  // of its item
  };
  std::vector<Piece> pieces;
  std::vector<ReadOp> ops;
  std::vector<const std::byte*> data;
};

// Cuts items into pieces as Sluice does, and the budget into slabs.
//
// Thread: Open first. Then Fill and AllBegun belong to one thread, and Consume to one, which may be
// another. A wave is filled before it is consumed, and its slab is filled again after that.
class WaveReader {
 public:
  // `job` must outlive this object.
  explicit WaveReader(const BaselineJob& job)
      : job_(job), plan_(job.plan), position_(plan_.NextPosition(0)) {}

  // InvalidArgument if the budget has fewer slots than `slabs`.

  absl::Status Open(int slabs) {
    StreamOptions stream = *job_.stream;
    stream.reads.hedge.enabled = false;  // all the budget is for slots
    constexpr int kReadsMax = 4096;
    SLUICE_ASSIGN_OR_RETURN(auto opened, OpenBaselineSource(stream, job_.delay, kReadsMax));
    SLUICE_ASSIGN_OR_RETURN(
        limits_, ResolveStreamLimits(stream, *opened.items, opened.source->alignment(),
                                     opened.whole_items, {.items_to_come = opened.items->items()}));
    slab_slots_ = limits_.slots / slabs;
    if (slab_slots_ < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a budget of ", limits_.slots, " slots has not one for each of ", slabs, " slabs"));
    }
    items_ = std::move(opened.items);
    source_ = std::move(opened.source);
    reader_ = std::make_unique<PlainReader>(source_.get(), stream.reads.retry);
    const std::unique_ptr<Device> device = MakeHostDevice();
    SLUICE_ASSIGN_OR_RETURN(blocks_,
                            device->AllocateStaging(static_cast<size_t>(slab_slots_ * slabs) *
                                                    static_cast<size_t>(limits_.block_bytes)));
    SLUICE_ASSIGN_OR_RETURN(cell_, device->AllocateBuffer(static_cast<size_t>(limits_.cell_bytes)));
    return absl::OkStatus();
  }

  // All items that are wanted have been read.
  bool AllBegun() const { return planned_ >= job_.consumer->wanted(); }
  // The next pieces, as many as slab number `slab` has slots, or fewer at the end. Blocks until all
  // have been read.
  absl::Status Fill(int slab, Wave* wave) {
    Plan(slab, wave);
    const auto slots = static_cast<int64_t>(wave->pieces.size());
    held_peak_ = std::max(held_peak_, held_.fetch_add(slots) + slots);
    return reader_->Read(absl::MakeSpan(wave->ops), &wave->data);
  }

  // In order. `waited`: the consumer had to wait for this wave.
  void Consume(const Wave& wave, bool waited) {
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

  // After both threads are done. Without Open, nothing.
  void AddTo(RankOutcome* outcome) const {
    if (source_ == nullptr) return;
    StreamStats& stats = outcome->stats;
    AddReads(source_->counters(), *reader_, copying_ns_, &stats);
    stats.slots_peak = held_peak_;
    stats.budget_bytes_peak = held_peak_ * limits_.block_bytes;
    stats.slots_max = limits_.slots;
    stats.budget_bytes = job_.stream->reads.budget_bytes;
    stats.device_bytes = limits_.cell_bytes;
  }

 private:
  void Plan(int slab, Wave* wave) {
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

  const BaselineJob& job_;
  const StreamPlan plan_;
  StreamLimits limits_;
  int64_t slab_slots_ = 0;
  DeviceMemory blocks_;
  DeviceMemory cell_;  // of the item that is consumed
  std::unique_ptr<StreamItems> items_;
  std::unique_ptr<Source> source_;  // ends before the blocks do
  std::unique_ptr<PlainReader> reader_;

  int64_t position_;
  int64_t offset_ = 0;   // of the next piece in its item
  int64_t planned_ = 0;  // items
  int64_t held_peak_ = 0;
  std::atomic<int64_t> held_ = 0;  // slots

  bool waited_ = false;  // for a piece of the present item
  int64_t copying_ns_ = 0;
};

// Thread: the consumer's, but for the one that it makes.
class Slabs {
 public:
  // `reader` is open, and must outlive this object.
  Slabs(WaveReader* reader, int count)
      : reader_(*reader), waves_(static_cast<size_t>(count)), thread_([this] { FillAll(); }) {}

  ~Slabs() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      change_.notify_all();
    }
    thread_.join();  // after the wave that is under way
  }

  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  // Waits for the next wave and consumes it. The filling thread's error, or DeadlineExceeded.
  absl::Status ConsumeNext(absl::Duration timeout) {
    bool waited = false;
    {
      std::unique_lock lock(mutex_);
      const auto has_come = [this] { return filled_ > consumed_ || !status_.ok(); };
      waited = !has_come();
      if (!change_.wait_for(lock, absl::ToChronoNanoseconds(timeout), has_come)) {
        return absl::DeadlineExceededError(
            absl::StrCat("no wave has come for ", absl::FormatDuration(timeout)));
      }
      if (filled_ == consumed_) return status_;
    }
    reader_.Consume(WaveAt(consumed_), waited);
    const std::lock_guard lock(mutex_);
    ++consumed_;
    change_.notify_all();
    return absl::OkStatus();
  }

 private:
  Wave& WaveAt(uint64_t number) { return waves_[number % waves_.size()]; }

  void FillAll() {
    for (uint64_t number = 0; !reader_.AllBegun(); ++number) {
      {
        std::unique_lock lock(mutex_);
        change_.wait(lock, [&] { return stop_ || number - consumed_ < waves_.size(); });
        if (stop_) return;
      }
      const auto slab = static_cast<int>(number % waves_.size());
      absl::Status status = reader_.Fill(slab, &WaveAt(number));
      const std::lock_guard lock(mutex_);
      status_ = std::move(status);
      if (status_.ok()) ++filled_;
      change_.notify_all();
      if (!status_.ok()) return;
    }
  }

  WaveReader& reader_;
  std::vector<Wave> waves_;  // by slab

  std::mutex mutex_;  // for what follows; consumed_ is changed by the consumer alone
  std::condition_variable change_;
  uint64_t filled_ = 0;  // waves
  uint64_t consumed_ = 0;
  bool stop_ = false;
  absl::Status status_;

  std::thread thread_;  // begins when all of the above is there
};

}  // namespace

absl::Status RunSerial(const BaselineJob& job, RankOutcome* outcome) {
  job.consumer->Asked();
  WaveReader reader(job);
  Wave wave;
  absl::Status status = reader.Open(1);
  while (status.ok() && !job.consumer->done()) {
    status = reader.Fill(0, &wave);
    if (status.ok()) reader.Consume(wave, true);
  }
  reader.AddTo(outcome);
  return status;
}

absl::Status RunWaves(const BaselineJob& job, int slabs, RankOutcome* outcome) {
  job.consumer->Asked();
  WaveReader reader(job);
  absl::Status status = reader.Open(slabs);
  if (status.ok()) {
    Slabs filled(&reader, slabs);
    while (status.ok() && !job.consumer->done()) status = filled.ConsumeNext(job.stream->timeout);
  }
  reader.AddTo(outcome);
  return status;
}

}  // namespace sluice::bench
