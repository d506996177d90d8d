// The loop between engine, device and transport.
#include "session/runner.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "session/clock.h"
#include "tensor/check.h"

namespace sluice {
namespace {

// Buckets submitted between two looks at the transport.
constexpr int kFeedBatch = 256;
// Steps of one Poll, so that it returns to the caller now and then.
constexpr int kStepsPerPoll = 32;
constexpr int kLookAheadMin = 4096;
constexpr size_t kEventBatch = 64;

// An operation's cookie holds its bucket's index in the plan and its ticket.
uint64_t CookieOf(size_t bucket, Ticket ticket) { return uint64_t{bucket} << 32 | ticket; }
size_t BucketOf(uint64_t cookie) { return static_cast<size_t>(cookie >> 32); }
Ticket TicketOf(uint64_t cookie) { return static_cast<Ticket>(cookie); }

}  // namespace

Runner::Runner(std::unique_ptr<Device> device, std::unique_ptr<Transport> transport, int64_t slots,
               int max_in_flight)
    : slots_(slots),
      max_in_flight_(max_in_flight),
      device_(std::move(device)),
      transport_(std::move(transport)),
      events_(kEventBatch),
      copied_(Device::kMaxOutstanding) {}

Runner::~Runner() {
  // The network may still write into staging: memory that outlives the process's use of it is
  // better than memory that is somebody else's by then.
  if (transport_->outstanding() > 0) staging_.Abandon();
}

absl::Status Runner::Prepare(const CompiledTransfer& transfer) {
  SLUICE_CHECK(!in_flight(), "a run is in flight");
  const Plan& plan = transfer.plan();
  // More slots than the channels can fill would never be used.
  const int64_t most = std::max<int64_t>(1, plan.peak_buckets_without_budget);
  const int64_t wanted = slots_ == 0 ? most : std::min(slots_, most);
  const int64_t slot_bytes =
      std::max(slot_bytes_, (std::max<int64_t>(transfer.bucket_bytes_max(), 1) + 63) / 64 * 64);
  if (wanted > std::numeric_limits<int>::max() / 4 || plan.buckets.size() > UINT32_MAX) {
    return absl::ResourceExhaustedError(
        absl::StrCat(wanted, " slots for ", plan.buckets.size(), " buckets are too many"));
  }
  EngineOptions options;
  options.channels = static_cast<int>(plan.channels.size());
  options.max_in_flight = max_in_flight_;
  options.slots = static_cast<int>(wanted);
  if (engine_) {
    options.channels = std::max(options.channels, engine_->options().channels);
    options.slots = std::max(options.slots, engine_->options().slots);
  }
  // An error leaves everything as the transfers before need it.
  const size_t staging_bytes = static_cast<size_t>(options.slots) * static_cast<size_t>(slot_bytes);
  if (staging_bytes > staging_.bytes()) {
    absl::StatusOr<DeviceMemory> staging = device_->AllocateStaging(staging_bytes);
    if (!staging.ok()) {
      return absl::Status(staging.status().code(),
                          absl::StrCat("staging of ", options.slots, " slots x ", slot_bytes,
                                       " bytes: ", staging.status().message()));
    }
    staging_ = *std::move(staging);
  }
  slot_bytes_ = slot_bytes;
  if (absl::Status status = transport_->Reserve(options.slots); !status.ok()) return status;
  if (!engine_ || options.channels > engine_->options().channels ||
      options.slots > engine_->options().slots) {
    options.look_ahead = std::max(kLookAheadMin, 2 * options.slots);
    engine_.emplace(options);
    moves_.reserve(static_cast<size_t>(options.slots));
  }
  contiguous_.resize(std::max(contiguous_.size(), plan.buckets.size()));
  batches_.resize(std::max(batches_.size(), plan.buckets.size()));
  return absl::OkStatus();
}

void Runner::Begin(const CompiledTransfer* transfer, uint64_t run) {
  SLUICE_CHECK(!in_flight(), "a run is in flight");
  transfer_ = transfer;
  run_ = run;
  next_bucket_ = 0;
  last_time_ns_ = MonotonicNs();
}

absl::StatusOr<bool> Runner::Poll() {
  if (!in_flight()) return false;
  KeepTime();
  bool moved = false;
  for (int step = 0; step < kStepsPerPoll; ++step) {
    absl::StatusOr<bool> stepped = Step();
    if (!stepped.ok()) {
      engine_->Poison(stepped.status());
      return stepped.status();
    }
    if (!*stepped) break;
    moved = true;
  }
  if (next_bucket_ == transfer_->plan().buckets.size() && engine_->idle()) {
    KeepTime();
    transfer_ = nullptr;
    moved = true;
  }
  return moved;
}

// Looks at the transport between any two copies: a rendezvous makes progress only then.
absl::StatusOr<bool> Runner::Step() {
  absl::StatusOr<bool> moved = PollTransport();
  if (!moved.ok()) return moved;
  absl::StatusOr<bool> copied = PollDevice();
  if (!copied.ok()) return copied;
  Feed();
  bool commanded = false;
  Command command;
  while (engine_->Next(&command)) {
    commanded = true;
    if (absl::Status status = CarryOut(command); !status.ok()) {
      return Explain(status, CookieOf(command.cookie, command.ticket));
    }
    if (command.stage != Stage::kMoving) break;
  }
  if (absl::Status status = FlushMoves(); !status.ok()) return status;
  return *moved || *copied || commanded;
}

absl::StatusOr<bool> Runner::PollTransport() {
  if (transport_->outstanding() == 0) return false;
  const absl::StatusOr<int> count = transport_->Poll(absl::MakeSpan(events_));
  if (!count.ok()) return count.status();
  absl::Status failure;
  for (int i = 0; i < *count; ++i) {
    const TransportEvent& event = events_[static_cast<size_t>(i)];
    if (event.status.ok()) {
      engine_->Finish(TicketOf(event.cookie));
      continue;
    }
    const absl::Status status = Explain(event.status, event.cookie);
    engine_->Fail(TicketOf(event.cookie), status);
    failure.Update(status);
  }
  if (!failure.ok()) return failure;
  return *count > 0;
}

absl::StatusOr<bool> Runner::PollDevice() {
  if (device_outstanding_ == 0) return false;
  const absl::StatusOr<int> count = device_->Poll(absl::MakeSpan(copied_));
  if (!count.ok()) return count.status();
  device_outstanding_ -= *count;
  for (int i = 0; i < *count; ++i) EndCopy(copied_[static_cast<size_t>(i)]);
  return *count > 0;
}

void Runner::Feed() {
  const size_t end = transfer_->plan().buckets.size();
  for (int i = 0; i < kFeedBatch && next_bucket_ < end && engine_->CanSubmit(); ++i) {
    engine_->Submit(SubmissionOf(next_bucket_++));
  }
}

Submission Runner::SubmissionOf(size_t index) {
  const Bucket& bucket = BucketAt(index);
  Submission submission;
  submission.id = bucket.id.WithRun(run_);
  submission.channel = bucket.channel;
  submission.cookie = index;
  contiguous_[index] = ContiguousAddress(bucket);
  const bool staged = bucket.role != Role::kLocal && contiguous_[index] == nullptr;
  submission.staging_bytes = staged ? bucket.bytes : 0;
  submission.operations = bucket.role == Role::kLocal ? 0 : 1;
  switch (bucket.role) {
    case Role::kSource:
      submission.stages = staged ? kStageFill | kStageMove : kStageMove;
      break;
    case Role::kDestination:
      submission.stages = staged ? kStageMove | kStageDrain : kStageMove;
      break;
    case Role::kLocal:
      submission.stages = kStageDrain;
      break;
  }
  return submission;
}

absl::Status Runner::CarryOut(const Command& command) {
  if (command.stage == Stage::kMoving) {
    QueueMove(command);
    return absl::OkStatus();
  }
  // What can already cross should not wait for a copy.
  if (absl::Status status = FlushMoves(); !status.ok()) return status;
  return CopyChunks(command);
}

void Runner::QueueMove(const Command& command) {
  const Bucket& bucket = BucketAt(command.cookie);
  const Channel& channel = transfer_->plan().channels[static_cast<size_t>(bucket.channel)];
  const bool sends = bucket.role == Role::kSource;
  std::byte* direct = contiguous_[command.cookie];
  TransportOp op;
  op.kind = sends ? TransportOp::Kind::kSend : TransportOp::Kind::kReceive;
  op.peer = sends ? channel.dst : channel.src;
  // Ranks that run different transfers at once must stall, not take each other's messages.
  op.tag = (channel.tag + transfer_->number) % (kMaxTransportTag + 1);
  op.data = direct != nullptr ? direct : SlotAddress(command.slots[0]);
  op.bytes = static_cast<size_t>(bucket.bytes);
  op.cookie = CookieOf(command.cookie, command.ticket);
  moves_.push_back(op);
}

absl::Status Runner::FlushMoves() {
  if (moves_.empty()) return absl::OkStatus();
  absl::Status status = transport_->Start(moves_);
  moves_.clear();
  return status;
}

absl::Status Runner::CopyChunks(const Command& command) {
  const Bucket& bucket = BucketAt(command.cookie);
  const uint64_t cookie = CookieOf(command.cookie, command.ticket);
  std::byte* staging = bucket.role == Role::kLocal ? nullptr : SlotAddress(command.slots[0]);
  const absl::Span<const Chunk> chunks = absl::MakeConstSpan(transfer_->plan().chunks)
                                             .subspan(static_cast<size_t>(bucket.first_chunk),
                                                      static_cast<size_t>(bucket.chunk_count));
  // One more than there are batches, so that the copy cannot end before all have been started.
  batches_[command.cookie] = 1;
  size_t count = 0;
  for (const Chunk& chunk : chunks) {
    batch_[count++] = CopyOf(bucket, chunk, staging);
    if (count < batch_.size()) continue;
    if (absl::Status status = StartBatch(count, cookie); !status.ok()) return status;
    count = 0;
  }
  if (count > 0) {
    if (absl::Status status = StartBatch(count, cookie); !status.ok()) return status;
  }
  EndCopy(cookie);
  return absl::OkStatus();
}

absl::Status Runner::StartBatch(size_t count, uint64_t cookie) {
  while (device_outstanding_ == Device::kMaxOutstanding) {
    absl::StatusOr<bool> copied = PollDevice();
    if (!copied.ok()) return copied.status();
  }
  absl::Status status = device_->Start({absl::MakeConstSpan(batch_.data(), count), cookie});
  if (!status.ok()) return status;
  ++batches_[BucketOf(cookie)];
  ++device_outstanding_;
  return status;
}

void Runner::EndCopy(uint64_t cookie) {
  if (--batches_[BucketOf(cookie)] == 0) engine_->Finish(TicketOf(cookie));
}

std::byte* Runner::ContiguousAddress(const Bucket& bucket) const {
  if (bucket.role == Role::kLocal || bucket.chunk_count != 1) return nullptr;
  const Chunk& chunk = transfer_->plan().chunks[static_cast<size_t>(bucket.first_chunk)];
  const StridedCopy copy = CopyOf(bucket, chunk, nullptr);
  const bool sends = bucket.role == Role::kSource;
  const int64_t offset = sends ? ContiguousSrcOffset(copy) : ContiguousDstOffset(copy);
  if (offset < 0) return nullptr;
  const size_t tensor = static_cast<size_t>(chunk.tensor);
  return (sends ? transfer_->src() : transfer_->dst())[tensor].base + offset;
}

std::byte* Runner::SlotAddress(int slot) const { return staging_.data() + slot * slot_bytes_; }

StridedCopy Runner::CopyOf(const Bucket& bucket, const Chunk& chunk, std::byte* staging) const {
  const Plan& plan = transfer_->plan();
  const RegionRuns& region = plan.regions[static_cast<size_t>(chunk.region)];
  const size_t tensor = static_cast<size_t>(chunk.tensor);
  const BoundView& src = transfer_->src()[tensor];
  const BoundView& dst = transfer_->dst()[tensor];
  StridedCopy copy;
  copy.dims = region.dims;
  const int64_t element_bytes =
      bucket.role == Role::kDestination ? dst.element_bytes : src.element_bytes;
  copy.src_dtype = transfer_->spec().tensors[tensor].src_dtype;
  copy.dst_dtype = transfer_->spec().tensors[tensor].dst_dtype;
  copy.begin = chunk.begin;
  copy.end = chunk.end;
  std::array<int64_t, kMaxTensorDims> wire_strides{};
  int64_t stride = element_bytes;
  for (size_t d = static_cast<size_t>(region.dims); d-- > 0;) {
    wire_strides[d] = stride;
    stride *= region.extent[d];
    const size_t first = static_cast<size_t>(region.first_run[d]);
    copy.runs[d] = absl::MakeConstSpan(plan.runs).subspan(
        first, static_cast<size_t>(region.first_run[d + 1]) - first);
  }
  // Where element 0 of the region would lie on the wire.
  std::byte* wire = staging == nullptr
                        ? nullptr
                        : staging + (chunk.bucket_offset - chunk.begin * element_bytes);
  copy.src = bucket.role == Role::kDestination ? wire : src.base;
  copy.src_strides = bucket.role == Role::kDestination ? wire_strides : src.stride_bytes;
  copy.dst = bucket.role == Role::kSource ? wire : dst.base;
  copy.dst_strides = bucket.role == Role::kSource ? wire_strides : dst.stride_bytes;
  return copy;
}

absl::Status Runner::Explain(const absl::Status& status, uint64_t cookie) const {
  const Bucket& bucket = BucketAt(BucketOf(cookie));
  return absl::Status(status.code(), absl::StrCat("bucket ", bucket.id.WithRun(run_).ToString(),
                                                  ": ", status.message()));
}

void Runner::Poison(const absl::Status& status) {
  if (engine_) engine_->Poison(status);
}

bool Runner::Settle() {
  if (!engine_) return true;
  transport_->Withdraw();
  // Errors of what is taken back change nothing: the run has failed already.
  if (transport_->outstanding() > 0) static_cast<void>(PollTransport());
  if (device_outstanding_ > 0) static_cast<void>(PollDevice());
  if (transport_->outstanding() > 0 || device_outstanding_ > 0) return false;
  transfer_ = nullptr;
  return true;
}

bool Runner::AskAboutOldest(BucketQuestion* question, std::vector<int>* members) const {
  Engine::Oldest oldest;
  if (!in_flight() || !engine_->OldestUnfinished(&oldest)) return false;
  const Bucket& bucket = BucketAt(oldest.cookie);
  const Channel& channel = transfer_->plan().channels[static_cast<size_t>(bucket.channel)];
  *question = {oldest.id, transfer_->number, 0};
  members->assign({channel.src, channel.dst});
  return true;
}

BucketReport Runner::Report(const BucketQuestion& question) const {
  BucketReport report;
  report.transfer = transfer_->number;
  if (report.transfer != question.transfer) {
    report.state = BucketState::kOtherTransfer;
    return report;
  }
  const std::vector<Bucket>& buckets = transfer_->plan().buckets;
  Engine::Oldest oldest;
  if (engine_->OldestUnfinished(&oldest)) report.oldest = oldest.id;
  if (next_bucket_ < buckets.size() && question.id >= BucketAt(next_bucket_).id.WithRun(run_)) {
    report.state = BucketState::kNotFed;
  } else if (!report.oldest || question.id < *report.oldest) {
    report.state = BucketState::kInStage;
    report.stage = Stage::kDone;
  } else if (question.id == *report.oldest && oldest.stage != Stage::kWaiting) {
    report.state = BucketState::kInStage;
    report.stage = oldest.stage;
  } else if (oldest.stage == Stage::kWaiting) {
    report.state = BucketState::kWaitsForBudget;
  }
  return report;
}

std::string Runner::DescribeStall() const {
  return engine_ ? engine_->DescribeStall() : std::string("nothing is planned");
}

void Runner::KeepTime() {
  const int64_t now_ns = MonotonicNs();
  const int64_t passed_ns = now_ns - std::exchange(last_time_ns_, now_ns);
  running_ns_ += passed_ns;
  if (engine_->blocked() == Blocked::kBudget) budget_wait_ns_ += passed_ns;
}

SessionCounters Runner::counters() const {
  SessionCounters counters;
  counters.running = absl::Nanoseconds(running_ns_);
  counters.budget_wait = absl::Nanoseconds(budget_wait_ns_);
  if (!engine_) return counters;
  const EngineCounters& engine = engine_->counters();
  counters.buckets_finished = engine.finished;
  counters.buckets_peak = engine.held_buckets_peak;
  counters.staging_bytes_peak = engine.staging_bytes_peak;
  counters.operations_peak = engine.operations_peak;
  counters.waited_for_channel = engine.waited_for_channel;
  counters.waited_for_budget = engine.waited_for_budget;
  return counters;
}

void Runner::ResetCounters() {
  running_ns_ = budget_wait_ns_ = 0;
  if (engine_) engine_->ResetCounters();
}

}  // namespace sluice
