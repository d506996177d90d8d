// Batches of copies.
#include "session/base/copy_queue.h"

#include <algorithm>
#include <array>

namespace sluice {

CopyQueue::CopyQueue(Device* device, bool in_stream_order)
    : device_(device),
      in_stream_order_(in_stream_order),
      copies_(device->traits().batch_items),
      flat_runs_(device->traits().batch_items),
      reductions_(device->traits().batch_items),
      normalizations_(device->traits().batch_items) {}

absl::Status CopyQueue::Add(const StridedCopy& copy) {
  // A copy after a reduction may read what that has written.
  if (reduction_count_ > 0 || copy_count_ == copies_.size()) {
    if (absl::Status status = Flush(); !status.ok()) return status;
  }
  copies_[copy_count_++] = copy;
  return absl::OkStatus();
}

absl::Status CopyQueue::AddFlat(const Flat& src, const Flat& dst, int64_t elements) {
  StridedCopy copy;
  copy.src = src.data;
  copy.src_dtype = src.dtype;
  copy.src_kind = src.kind;
  copy.src_strides[0] = DTypeBytes(src.dtype);
  copy.dst = const_cast<std::byte*>(dst.data);
  copy.dst_dtype = dst.dtype;
  copy.dst_kind = dst.kind;
  copy.dst_strides[0] = DTypeBytes(dst.dtype);
  copy.end = elements;
  if (absl::Status status = Add(copy); !status.ok()) return status;
  const size_t place = copy_count_ - 1;
  flat_runs_[place] = {0, 0, elements};
  copies_[place].runs[0] = absl::MakeConstSpan(&flat_runs_[place], 1);
  return absl::OkStatus();
}

absl::Status CopyQueue::Add(const Reduction& reduction) {
  if (reduction_count_ == reductions_.size()) {
    if (absl::Status status = Flush(); !status.ok()) return status;
  }
  reductions_[reduction_count_++] = reduction;
  return absl::OkStatus();
}

absl::Status CopyQueue::Add(const Normalization& normalization) {
  if (normalization_count_ == normalizations_.size()) {
    if (absl::Status status = Flush(); !status.ok()) return status;
  }
  normalizations_[normalization_count_++] = normalization;
  return absl::OkStatus();
}

absl::Status CopyQueue::Flush() {
  if (copy_count_ == 0 && reduction_count_ == 0 && normalization_count_ == 0) {
    return absl::OkStatus();
  }
  const CopyBatch batch = {
      .copies = absl::MakeConstSpan(copies_.data(), copy_count_),
      .cookie = cookie_,
      .reductions = absl::MakeConstSpan(reductions_.data(), reduction_count_),
      .normalizations = absl::MakeConstSpan(normalizations_.data(), normalization_count_),
      .in_stream_order = in_stream_order_,
      .stage = stage_};
  copy_count_ = reduction_count_ = normalization_count_ = 0;
  if (absl::Status status = Begin(batch); !status.ok()) return status;
  ++*pending_;
  ++begun_;
  return absl::OkStatus();
}

absl::Status CopyQueue::Mark(uint64_t cookie) {
  return Begin(CopyBatch{.cookie = cookie, .stage = BatchStage::kDrain});
}

absl::StatusOr<int64_t> CopyQueue::Order(Fence* after, Fence* then) {
  const CopyBatch batch = {.cookie = kOrder, .in_stream_order = true, .after = after, .then = then};
  if (absl::Status status = Begin(batch); !status.ok()) return status;
  return ++orders_begun_;
}

absl::Status CopyQueue::Finish() {
  if (absl::Status status = Begin(CopyBatch{.cookie = kOrder}); !status.ok()) return status;
  ++orders_begun_;
  return absl::OkStatus();
}

absl::StatusOr<bool> CopyQueue::HasRoom() {
  if (!is_full(kFull)) return true;
  if (absl::Status status = TakeEnded(); !status.ok()) return status;
  return !is_full(kFull);
}

void CopyQueue::AwaitRoom() {
  waiting_.push_back(cookie_);
  ++*pending_;
}

absl::Status CopyQueue::Begin(const CopyBatch& batch) {
  if (is_full(Device::kMaxOutstanding)) {
    if (absl::Status status = TakeEnded(); !status.ok()) return status;
  }
  if (absl::Status status = device_->Start(batch); !status.ok()) return status;
  ++outstanding_;
  return absl::OkStatus();
}

// One look: the device may be behind others for as long as they like.
absl::Status CopyQueue::TakeEnded() {
  std::array<uint64_t, Device::kMaxOutstanding> cookies{};
  const absl::StatusOr<int> count = device_->Poll(absl::MakeSpan(cookies));
  if (!count.ok()) return count.status();
  ended_.insert(ended_.end(), cookies.begin(), cookies.begin() + *count);
  return absl::OkStatus();
}

absl::StatusOr<int> CopyQueue::Poll(absl::Span<uint64_t> cookies) {
  int count = 0;
  if (ended_.empty()) {
    const absl::StatusOr<int> polled = device_->Poll(cookies);
    if (!polled.ok()) return polled.status();
    count = *polled;
  } else {
    const size_t taken = std::min(ended_.size(), cookies.size());
    std::copy(ended_.end() - static_cast<ptrdiff_t>(taken), ended_.end(), cookies.begin());
    ended_.resize(ended_.size() - taken);
    count = static_cast<int>(taken);
  }
  outstanding_ -= count;
  const auto end = std::remove(cookies.begin(), cookies.begin() + count, kOrder);
  orders_ended_ += cookies.begin() + count - end;
  return static_cast<int>(end - cookies.begin()) + CallIn(cookies.subspan(end - cookies.begin()));
}

int CopyQueue::CallIn(absl::Span<uint64_t> cookies) {
  if (waiting_.empty() || is_full(kFull)) return 0;
  const size_t count = std::min(waiting_.size(), cookies.size());
  const auto end = waiting_.begin() + static_cast<ptrdiff_t>(count);
  std::copy(waiting_.begin(), end, cookies.begin());
  waiting_.erase(waiting_.begin(), end);
  return static_cast<int>(count);
}

}  // namespace sluice
