// A loader with worker threads, whose items come in order.
#include <algorithm>
#include <array>
#include <condition_variable>
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
#include "session/stream/item_normalizer.h"
#include "session/stream/stream_source.h"
#include "sluice/status.h"
#include "stream/baselines/baseline.h"
#include "stream/contents.h"

namespace sluice::bench {
namespace {

constexpr int64_t kCacheLine = 64;

int64_t CellBytes(const StreamOptions& stream, const StreamItems& items) {
  const int64_t bytes = DeliveredSizesOf(stream.buffers.transform, items).bytes_max;
  return std::max(kCacheLine, (bytes + kCacheLine - 1) / kCacheLine * kCacheLine);
}

// A worker's part of the whole: items number, number + workers, ... of the first `items` of a
// rank's order.
struct LoaderShare {
  int number = 0;
  int workers = 1;
  int ahead = 1;  // most items that are there or being read, and not yet consumed
  int64_t items = 0;
};

// One worker: reads its items one after the other into a ring of its own.
//
// Thread: the consumer's, but for the one that it makes.
class LoaderWorker {
 public:
  // `opened` is this worker's own. ResourceExhausted if there is no memory.
  static absl::StatusOr<std::unique_ptr<LoaderWorker>> Make(const BaselineJob& job,
                                                            const LoaderShare& share,
                                                            OpenedSource opened) {
    auto worker = std::unique_ptr<LoaderWorker>(new LoaderWorker(job, share, std::move(opened)));
    const std::unique_ptr<Device> device = MakeHostDevice();
    SLUICE_ASSIGN_OR_RETURN(worker->block_,
                            device->AllocateStaging(static_cast<size_t>(worker->block_bytes_)));
    SLUICE_ASSIGN_OR_RETURN(worker->cells_,
                            device->AllocateBuffer(static_cast<size_t>(worker->cell_bytes_) *
                                                   static_cast<size_t>(share.ahead)));
    return worker;
  }

  // Waits for a read that is under way.
  ~LoaderWorker() {
    Stop();
    if (thread_.joinable()) thread_.join();
  }

  void Start() {
    thread_ = std::thread([this] { Work(); });
  }

  // Waits until its next item is there. `*waited`: it was not. The worker's error, or
  // DeadlineExceeded.
  absl::Status Take(absl::Duration timeout, bool* waited) {
    std::unique_lock lock(mutex_);
    const auto has_come = [this] { return loaded_ > consumed_ || !status_.ok(); };
    *waited = !has_come();
    if (!change_.wait_for(lock, absl::ToChronoNanoseconds(timeout), has_come)) {
      return absl::DeadlineExceededError(absl::StrCat("worker ", share_.number, " has no item for ",
                                                      absl::FormatDuration(timeout)));
    }
    return loaded_ > consumed_ ? absl::OkStatus() : status_;
  }

  // The item that was taken, which is at `position`: checks it and computes with it, then gives its
  // memory back.
  void Consume(int64_t position, Consumer* consumer) {
    const int64_t item = plan_.ItemAt(position);
    consumer->Consume(item, plan_.EpochOf(position),
                      ViewOfCell(stream_.buffers.transform, *items_, item, CellOf(consumed_)));
    const std::lock_guard lock(mutex_);
    ++consumed_;
    change_.notify_all();
  }

  // Begins no more reads. Not waited for.
  void Stop() {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    change_.notify_all();
  }

  // After Stop or the last item: waits for the thread to end, and adds what it did.
  void JoinAndAdd(RankOutcome* outcome) {
    if (thread_.joinable()) thread_.join();
    StreamStats& stats = outcome->stats;
    AddReads(source_->counters(), reader_, copying_ns_, &stats);
    stats.slots_peak += held_peak_;
    stats.budget_bytes_peak += block_bytes_ + held_peak_ * cell_bytes_;
    stats.slots_max += share_.ahead;
    stats.budget_bytes += block_bytes_ + share_.ahead * cell_bytes_;
  }

 private:
  LoaderWorker(const BaselineJob& job, const LoaderShare& share, OpenedSource opened)
      : stream_(*job.stream),
        plan_(job.plan),
        share_(share),
        items_(std::move(opened.items)),
        source_(std::move(opened.source)),
        reader_(source_.get(), stream_.reads.retry),
        // A read that begins and ends within a page.
        block_bytes_(ReadRoom(0, items_->item_bytes_max(), kReadAlignment) + kReadAlignment),
        cell_bytes_(CellBytes(stream_, *items_)) {}

  void Work() {
    int64_t place = 0;  // in the rank's order
    for (int64_t at = plan_.NextPosition(0); place < share_.items;
         at = plan_.NextPosition(at + 1), ++place) {
      if (place % share_.workers != share_.number) continue;
      std::byte* cell = nullptr;
      {
        std::unique_lock lock(mutex_);
        change_.wait(lock, [this] { return stop_ || begun_ - consumed_ < share_.ahead; });
        if (stop_) return;
        cell = CellOf(begun_++);
        held_peak_ = std::max(held_peak_, begun_ - consumed_);
      }
      absl::Status status = Load(plan_.ItemAt(at), cell);
      const std::lock_guard lock(mutex_);
      status_ = std::move(status);
      if (status_.ok()) ++loaded_;
      change_.notify_all();
      if (!status_.ok()) return;
    }
  }

  absl::Status Load(int64_t item, std::byte* cell) {
    const StreamItem place = items_->At(item);
    std::array<ReadOp, 1> ops = {{{.object = place.object,
                                   .offset = place.offset,
                                   .bytes = place.bytes,
                                   .data = block_.data(),
                                   .item = item}}};
    std::vector<const std::byte*> data;
    SLUICE_RETURN_IF_ERROR(reader_.Read(absl::MakeSpan(ops), &data));
    const int64_t begin_ns = MonotonicNs();
    CopyToCell(stream_.buffers.transform, *items_, item, data[0], 0, place.bytes, cell);
    copying_ns_ += MonotonicNs() - begin_ns;
    return absl::OkStatus();
  }

  std::byte* CellOf(int64_t index) const {
    return cells_.data() + index % share_.ahead * cell_bytes_;
  }

  const StreamOptions& stream_;
  const StreamPlan plan_;
  const LoaderShare share_;
  DeviceMemory block_;
  DeviceMemory cells_;
  std::unique_ptr<StreamItems> items_;
  std::unique_ptr<Source> source_;
  PlainReader reader_;
  int64_t block_bytes_ = 0;
  int64_t cell_bytes_ = 0;

  std::mutex mutex_;  // for what follows
  std::condition_variable change_;
  int64_t begun_ = 0;  // items of this worker's share
  int64_t loaded_ = 0;
  int64_t consumed_ = 0;
  bool stop_ = false;
  absl::Status status_;
  int64_t held_peak_ = 0;

  int64_t copying_ns_ = 0;  // the thread's
  std::thread thread_;
};

using Workers = std::vector<std::unique_ptr<LoaderWorker>>;

absl::Status MakeWorkers(const BaselineJob& job, int count, int ahead, Workers* workers) {
  StreamOptions stream = *job.stream;
  stream.source.connections = 1;  // each worker's own
  Catalog catalog;
  if (!stream.source.uri.empty()) {
    SLUICE_ASSIGN_OR_RETURN(catalog, FindCatalog(stream));
  }
  for (int w = 0; w < count; ++w) {
    SLUICE_ASSIGN_OR_RETURN(auto opened, OpenBaselineSource(stream, job.delay, catalog, 1));
    const LoaderShare share = {w, count, ahead, job.consumer->wanted()};
    SLUICE_ASSIGN_OR_RETURN(auto worker, LoaderWorker::Make(job, share, std::move(opened)));
    workers->push_back(std::move(worker));
  }
  return absl::OkStatus();
}

absl::Status ConsumeAll(const BaselineJob& job, const Workers& workers) {
  int64_t position = job.plan.NextPosition(0);
  for (size_t place = 0; !job.consumer->done(); ++place) {
    LoaderWorker& worker = *workers[place % workers.size()];
    bool waited = false;
    if (place > 0) job.consumer->Asked();
    SLUICE_RETURN_IF_ERROR(worker.Take(job.stream->timeout, &waited));
    job.consumer->Arrived(waited);
    worker.Consume(position, job.consumer);
    position = job.plan.NextPosition(position + 1);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunThreads(const BaselineJob& job, int workers, int ahead, RankOutcome* outcome) {
  job.consumer->Asked();
  Workers made;
  SLUICE_RETURN_IF_ERROR(MakeWorkers(job, workers, ahead, &made));
  for (const auto& worker : made) worker->Start();
  absl::Status status = ConsumeAll(job, made);
  for (const auto& worker : made) worker->Stop();
  for (const auto& worker : made) worker->JoinAndAdd(outcome);
  return status;
}

}  // namespace sluice::bench
