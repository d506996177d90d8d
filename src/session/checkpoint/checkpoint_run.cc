// Putting a run together.
#include "session/checkpoint/checkpoint_run.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

#include "session/checkpoint/checkpoint_input.h"

namespace sluice {
namespace {

int64_t ViewBytes(const BoundView& view, DType dtype) {
  if (view.base == nullptr) return 0;
  int64_t bytes = DTypeBytes(dtype);
  for (int d = 0; d < view.dims; ++d) bytes *= view.shape[static_cast<size_t>(d)];
  return bytes;
}

}  // namespace

// An accelerator reads its own staging fast, and other memory slowly.
bool CheckpointRun::MayLend(const Source& source, const Device& device) {
  return source.lends() && device.staging_is_device_memory();
}

// Pieces then come in the order of the files' bytes.
std::vector<CheckpointPlanTensor> CheckpointRun::SortByFile(
    absl::Span<const CheckpointTensor> tensors) {
  const std::vector<CheckpointPlace>& places = parts_.places;
  std::vector<size_t> order(places.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&places](size_t a, size_t b) {
    const CheckpointPlace &x = places[a], &y = places[b];
    return std::tie(x.object, x.begin, a) < std::tie(y.object, y.begin, b);
  });
  std::vector<CheckpointPlanTensor> planned;
  for (const size_t i : order) {
    planned.push_back(
        {LaidOutShape(tensors[i]), DTypeBytes(places[i].file_dtype), tensors[i].layout});
    places_.push_back(places[i]);
  }
  return planned;
}

std::unique_ptr<CheckpointWork> CheckpointRun::MakeWork(int window) {
  if (parts_.flow == CheckpointFlow::kLoad) {
    return std::make_unique<CheckpointLoadWork>(plan_.get(), parts_.rank, &places_, window);
  }
  return std::make_unique<CheckpointSaveWork>(plan_.get(), parts_.rank, &places_, window);
}

absl::StatusOr<std::unique_ptr<CheckpointRun>> CheckpointRun::Make(
    CheckpointRunParts parts, absl::Span<const CheckpointTensor> tensors,
    const CheckpointOptions& options) {
  std::unique_ptr<CheckpointRun> run(new CheckpointRun(std::move(parts), options));
  CheckpointRunParts& own = run->parts_;
  std::vector<CheckpointPlanTensor> planned = run->SortByFile(tensors);
  std::vector<int64_t> bytes;  // of each in its file
  bytes.reserve(planned.size());
  for (const CheckpointPlanTensor& tensor : planned) {
    bytes.push_back(std::accumulate(tensor.shape.begin(), tensor.shape.end(), tensor.element_bytes,
                                    std::multiplies<>()));
  }
  run->plan_ = std::make_unique<CheckpointPlan>(planned, options.piece_bytes, own.flow, own.rank);
  int64_t alignment = own.sink == nullptr ? own.source->alignment() : own.sink->alignment();
  absl::StatusOr<CheckpointLimits> limits =
      ResolveCheckpointLimits(options, *run->plan_, alignment);
  if (!limits.ok() && own.sink != nullptr) {
    alignment = 1;  // writes are slower, and need less room
    limits = ResolveCheckpointLimits(options, *run->plan_, alignment);
  }
  if (!limits.ok()) return limits.status();
  run->limits_ = *limits;
  const int window = ShardRunner::WindowOf(limits->slots);
  run->work_ = run->MakeWork(window);
  run->work_->set_staging(own.device->traits().staging);
  run->work_->set_progress(options.progress, bytes);
  run->work_->set_may_lend(own.source != nullptr && MayLend(*own.source, *own.device));
  run->work_->set_shares_mapping(own.shares_mapping);
  ShardRunnerOptions runner;
  runner.slots = limits->slots;
  runner.window = window;
  runner.block_bytes = limits->block_bytes;
  runner.channels = kCheckpointChannels;
  runner.operations_max = run->plan_->messages_max();
  runner.object_names = own.files;
  runner.retry = options.retry;
  runner.sink = own.sink;
  runner.write_alignment = alignment;
  absl::StatusOr<std::shared_ptr<DeviceMemory>> staging =
      ShardRunner::AllocateStaging(own.device.get(), runner);
  if (!staging.ok()) return staging.status();
  absl::StatusOr<std::unique_ptr<ShardRunner>> made =
      ShardRunner::Make(run->work_.get(), own.device.get(), own.source.get(),
                        std::move(own.transport), *std::move(staging), runner);
  if (!made.ok()) return made.status();
  run->runner_ = *std::move(made);
  return run;
}

std::unique_ptr<Source> CheckpointRun::EndReading() {
  runner_.reset();
  return std::move(parts_.source);
}

CheckpointStats CheckpointRun::stats() const {
  CheckpointStats stats;
  stats.tensors = static_cast<int64_t>(places_.size());
  stats.files = static_cast<int64_t>(parts_.files.size());
  stats.pieces = work_->pieces_done();
  stats.file_pieces = work_->file_pieces_done();
  stats.file_bytes = work_->file_bytes_done();
  stats.sent_bytes = work_->sent_bytes();
  if (parts_.shares_mapping) {
    stats.bytes_read = stats.file_bytes;
  } else if (parts_.source != nullptr) {
    stats.bytes_read = parts_.source->counters().bytes_read;
  }
  stats.retries = runner_->read_counters().retries;
  stats.slots_max = limits_.slots;
  stats.slots_peak = runner_->held_peak();
  stats.budget_bytes = options_.budget_bytes;
  stats.budget_bytes_peak = stats.slots_peak * limits_.block_bytes;
  stats.piece_bytes = plan_->box_bytes_max();
  stats.reading = absl::Nanoseconds(runner_->times().read_ns);
  stats.exchanging = absl::Nanoseconds(runner_->times().exchange_ns);
  stats.copying = absl::Nanoseconds(runner_->times().copy_ns);
  stats.writing = absl::Nanoseconds(runner_->times().write_ns);
  for (const CheckpointPlace& place : places_) {
    stats.bytes += ViewBytes(place.view, place.file_dtype);
    for (const BoundView& box : place.boxes) stats.bytes += ViewBytes(box, place.file_dtype);
  }
  return stats;
}

}  // namespace sluice
