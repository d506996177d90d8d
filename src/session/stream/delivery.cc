// Publishing, taking and releasing device buffers; leases.
#include "session/stream/delivery.h"

#include <utility>

#include "tensor/check.h"

namespace sluice {

Delivery::Delivery(DeliveryMemory memory, int buffers, int64_t batch_items)
    : memory_(std::move(memory)), ring_(static_cast<size_t>(buffers)) {
  for (int i = 0; i < buffers; ++i) {
    buffers_.push_back(std::make_unique<Buffer>());
    At(i).memory = memory_.data + i * memory_.stride;
    At(i).block = memory_.first_block + i;
    At(i).items.reserve(static_cast<size_t>(batch_items));
  }
}

int Delivery::TakeFree() {
  waits_for_device_ = false;
  for (int i = 0; i < buffers(); ++i) {
    Buffer& buffer = At(i);
    // Acquires what the consumer did before it released the buffer.
    if (!buffer.free.load(std::memory_order_acquire)) continue;
    if (buffer.fenced && !IsPastFence(i)) {
      waits_for_device_ = true;
      continue;
    }
    buffer.fenced = false;
    buffer.free.store(false, std::memory_order_relaxed);
    buffer.items.clear();
    return i;
  }
  return -1;
}

// A device that has failed uses nothing any more; whoever copies there next learns of it.
bool Delivery::IsPastFence(int buffer) {
  return memory_.released[static_cast<size_t>(buffer)]->Passed().value_or(true);
}

int Delivery::SwapBuffer(int buffer, std::byte* memory, int block) {
  At(buffer).memory = memory;
  return std::exchange(At(buffer).block, block);
}

void Delivery::Publish(int buffer) {
  const uint64_t published = published_.load(std::memory_order_relaxed);
  ring_[published % ring_.size()] = buffer;
  published_.store(published + 1, std::memory_order_release);
  Wake();
}

void Delivery::End(const absl::Status& status) {
  if (ended_.load(std::memory_order_relaxed)) return;
  status_ = status;
  ended_.store(true, std::memory_order_release);
  Wake();
}

void Delivery::Wake() {
  changes_.fetch_add(1, std::memory_order_release);
  changes_.notify_one();
}

// Buffers that were published before the end count, unless the end is an error.
Delivery::State Delivery::state() const {
  const bool ended = ended_.load(std::memory_order_acquire);
  if (ended && !status_.ok()) return State::kEnd;
  if (published_.load(std::memory_order_acquire) > taken_) return State::kReady;
  if (ended) return State::kEnd;
  return leased_ == buffers() ? State::kAllLeased : State::kNotReady;
}

Lease Delivery::Take(const std::shared_ptr<Delivery>& self) {
  const int buffer = self->ring_[self->taken_++ % self->ring_.size()];
  ++self->leased_;
  self->At(buffer).leased = true;
  return Lease(self, buffer);
}

void Delivery::Sleep() {
  const uint32_t seen = changes_.load(std::memory_order_acquire);
  if (state() == State::kNotReady) changes_.wait(seen, std::memory_order_acquire);
}

void Delivery::Release(int buffer) {
  SLUICE_CHECK(leased_ > 0, "a release of nothing");
  --leased_;
  At(buffer).leased = false;
  if (listener_ != nullptr) listener_->Releasing(buffer, At(buffer).items);
  // Memory that was lent goes back now, not when the buffer is used again.
  for (DeliveredItem& item : At(buffer).items) item.lender = nullptr;
  At(buffer).free.store(true, std::memory_order_release);
  if (listener_ != nullptr) listener_->Released();
}

void Delivery::ForgetUntaken() {
  for (const std::unique_ptr<Buffer>& buffer : buffers_) {
    if (!buffer->leased) buffer->items.clear();
  }
}

namespace {

absl::Status NoStreams() {
  return absl::FailedPreconditionError("the items are in host memory, which has no streams");
}

}  // namespace

absl::Status Delivery::AwaitInStream(int buffer, StreamHandle stream) const {
  if (memory_.ready.empty()) return NoStreams();
  return ReadyFence(buffer)->HoldBack(stream);
}

absl::Status Delivery::ReleaseInStream(int buffer, StreamHandle stream) {
  if (memory_.released.empty()) return NoStreams();
  absl::Status status = memory_.released[static_cast<size_t>(buffer)]->Record(stream);
  if (!status.ok()) return status;
  At(buffer).fenced = true;
  Release(buffer);
  return absl::OkStatus();
}

Lease::Lease(std::shared_ptr<Delivery> buffers, int buffer)
    : buffers_(std::move(buffers)), buffer_(buffer) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  Release();
  buffers_ = std::move(other.buffers_);
  buffer_ = other.buffer_;
  other.buffers_ = nullptr;
  return *this;
}

void Lease::Release() {
  if (buffers_ == nullptr) return;
  // The last one out takes the memory along.
  const std::shared_ptr<Delivery> buffers = std::move(buffers_);
  buffers_ = nullptr;
  buffers->Release(buffer_);
}

absl::Status Lease::Await(StreamHandle stream) const {
  SLUICE_CHECK(!end(), "an item of no lease");
  return buffers_->AwaitInStream(buffer_, stream);
}

absl::Status Lease::Release(StreamHandle stream) {
  if (buffers_ == nullptr) return absl::OkStatus();
  absl::Status status = buffers_->ReleaseInStream(buffer_, stream);
  if (status.ok()) buffers_ = nullptr;
  return status;
}

int64_t Lease::items() const {
  return buffers_ == nullptr ? 0 : static_cast<int64_t>(buffers_->LeasedItems(buffer_).size());
}

namespace {

const DeliveredItem& ItemAt(const Delivery& buffers, int buffer, int64_t i) {
  const std::vector<DeliveredItem>& items = buffers.LeasedItems(buffer);
  SLUICE_CHECK(i >= 0 && static_cast<size_t>(i) < items.size(), "no such item in a lease");
  return items[static_cast<size_t>(i)];
}

TensorView ViewIn(const Delivery& buffers, std::byte* data, absl::Span<const int64_t> shape,
                  DType dtype) {
  TensorView view = DenseView(data, shape, dtype);
  view.device = buffers.kind();
  view.device_ordinal = buffers.ordinal();
  return view;
}

}  // namespace

int64_t Lease::item(int64_t i) const {
  SLUICE_CHECK(!end(), "an item of no lease");
  return ItemAt(*buffers_, buffer_, i).item;
}

int64_t Lease::epoch(int64_t i) const {
  SLUICE_CHECK(!end(), "an item of no lease");
  return ItemAt(*buffers_, buffer_, i).epoch;
}

TensorView Lease::view(int64_t i) const {
  SLUICE_CHECK(!end(), "an item of no lease");
  const DeliveredItem& item = ItemAt(*buffers_, buffer_, i);
  // A view has a dimension at least.
  static constexpr int64_t kOne[] = {1};
  const absl::Span<const int64_t> shape =
      item.shape.empty() ? absl::MakeConstSpan(kOne) : absl::MakeConstSpan(item.shape);
  return ViewIn(*buffers_, buffers_->DataOf(buffer_, item), shape, item.dtype);
}

bool Lease::is_batch() const {
  SLUICE_CHECK(!end(), "an item of no lease");
  const DeliveredItem& first = ItemAt(*buffers_, buffer_, 0);
  const std::byte* next = buffers_->DataOf(buffer_, first);
  int64_t item_bytes = DTypeBytes(first.dtype);
  for (const int64_t size : first.shape) item_bytes *= size;
  for (int64_t i = 0; i < items(); ++i) {
    const DeliveredItem& item = ItemAt(*buffers_, buffer_, i);
    if (item.shape != first.shape || item.dtype != first.dtype ||
        buffers_->DataOf(buffer_, item) != next) {
      return false;
    }
    next += item_bytes;
  }
  return true;
}

TensorView Lease::batch() const {
  SLUICE_CHECK(is_batch(), "items of several sizes are no batch");
  const DeliveredItem& first = ItemAt(*buffers_, buffer_, 0);
  std::vector<int64_t> shape = {items()};
  shape.insert(shape.end(), first.shape.begin(), first.shape.end());
  return ViewIn(*buffers_, buffers_->DataOf(buffer_, first), shape, first.dtype);
}

}  // namespace sluice
