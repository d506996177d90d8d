// The worker's thread, and its ring.
#include "stream/baselines/loader_worker.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "session/stream/item_normalizer.h"
#include "stream/baselines/cell.h"

namespace sluice::bench {
namespace {

constexpr int64_t kCacheLine = 64;

int64_t CellBytes(const StreamOptions& stream, const StreamItems& items) {
  const int64_t bytes = DeliveredSizesOf(stream.buffers.transform, items).bytes_max;
  return std::max(kCacheLine, (bytes + kCacheLine - 1) / kCacheLine * kCacheLine);
}

}  // namespace

LoaderWorker::LoaderWorker(const BaselineJob& job, const LoaderShare& share, OpenedSource opened)
    : stream_(*job.stream),
      plan_(job.plan),
      share_(share),
      items_(std::move(opened.items)),
      source_(std::move(opened.source)),
      reader_(source_.get(), stream_.reads.retry),
      // A read that begins and ends within a page.
      block_bytes_(ReadRoom(0, items_->item_bytes_max(), kReadAlignment) + kReadAlignment),
      cell_bytes_(CellBytes(stream_, *items_)) {}

absl::StatusOr<std::unique_ptr<LoaderWorker>> LoaderWorker::Make(const BaselineJob& job,
                                                                 const LoaderShare& share,
                                                                 OpenedSource opened) {
  auto worker = std::unique_ptr<LoaderWorker>(new LoaderWorker(job, share, std::move(opened)));
  const std::unique_ptr<Device> device = MakeHostDevice();
  auto block = device->AllocateStaging(static_cast<size_t>(worker->block_bytes_));
  if (!block.ok()) return block.status();
  worker->block_ = *std::move(block);
  auto cells = device->AllocateBuffer(static_cast<size_t>(worker->cell_bytes_) *
                                      static_cast<size_t>(share.ahead));
  if (!cells.ok()) return cells.status();
  worker->cells_ = *std::move(cells);
  return worker;
}

LoaderWorker::~LoaderWorker() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void LoaderWorker::Start() {
  thread_ = std::thread([this] { Work(); });
}

void LoaderWorker::Stop() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
  change_.notify_all();
}

void LoaderWorker::Work() {
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

absl::Status LoaderWorker::Load(int64_t item, std::byte* cell) {
  const StreamItem place = items_->At(item);
  std::array<ReadOp, 1> ops = {{{.object = place.object,
                                 .offset = place.offset,
                                 .bytes = place.bytes,
                                 .data = block_.data(),
                                 .item = item}}};
  std::vector<const std::byte*> data;
  if (absl::Status status = reader_.Read(absl::MakeSpan(ops), &data); !status.ok()) return status;
  const int64_t begin_ns = MonotonicNs();
  CopyToCell(stream_.buffers.transform, *items_, item, data[0], 0, place.bytes, cell);
  copying_ns_ += MonotonicNs() - begin_ns;
  return absl::OkStatus();
}

absl::Status LoaderWorker::Take(absl::Duration timeout, bool* waited) {
  std::unique_lock lock(mutex_);
  const auto has_come = [this] { return loaded_ > consumed_ || !status_.ok(); };
  *waited = !has_come();
  if (!change_.wait_for(lock, absl::ToChronoNanoseconds(timeout), has_come)) {
    return absl::DeadlineExceededError(
        absl::StrCat("worker ", share_.number, " has no item for ", absl::FormatDuration(timeout)));
  }
  return loaded_ > consumed_ ? absl::OkStatus() : status_;
}

void LoaderWorker::Consume(int64_t position, Consumer* consumer) {
  const int64_t item = plan_.ItemAt(position);
  consumer->Consume(item, plan_.EpochOf(position),
                    ViewOfCell(stream_.buffers.transform, *items_, item, CellOf(consumed_)));
  const std::lock_guard lock(mutex_);
  ++consumed_;
  change_.notify_all();
}

void LoaderWorker::JoinAndAdd(RankOutcome* outcome) {
  if (thread_.joinable()) thread_.join();
  const SourceCounters& counters = source_->counters();
  outcome->requests += counters.requests;
  outcome->bytes_read += counters.bytes_read;
  outcome->opens += counters.opens;
  outcome->connections += counters.connections;
  outcome->retries += reader_.retries();
  outcome->peak_slots += held_peak_;
  outcome->peak_bytes += block_bytes_ + held_peak_ * cell_bytes_;
  outcome->limit_slots += share_.ahead;
  outcome->limit_bytes += block_bytes_ + share_.ahead * cell_bytes_;
  outcome->stage_s.read += static_cast<double>(reader_.reading_ns()) * 1e-9;
  outcome->stage_s.copy += static_cast<double>(copying_ns_) * 1e-9;
}

}  // namespace sluice::bench
