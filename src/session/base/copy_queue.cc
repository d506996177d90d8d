// Batches of copies.
#include "session/base/copy_queue.h"

#include <algorithm>
#include <array>

#include "tensor/contiguity.h"
#include "tensor/error_text.h"

namespace sluice {

CopyQueue::CopyQueue(Device* device, bool in_stream_order)
    : device_(device),
      in_stream_order_(in_stream_order),
      copies_(device->traits().batch_items),
      small_copies_(device->traits().batch_small_copies),
      flat_runs_(device->traits().batch_items),
      reductions_(device->traits().batch_items),
      normalizations_(device->traits().batch_items) {}

absl::Status CopyQueue::Add(const StridedCopy& copy) { return Place(copy).status(); }

absl::StatusOr<StridedCopy*> CopyQueue::Place(const StridedCopy& copy) {
  SmallCopy small;
  const bool is_small = MakeSmall(copy, &small);
  const bool is_full =
      is_small ? small_count_ == small_copies_.size() : copy_count_ == copies_.size();
  // A copy after a reduction may read what that has written.
  if (reduction_count_ > 0 || is_full) SLUICE_RETURN_IF_ERROR(Flush());
  if (is_small) {
    small_copies_[small_count_++] = small;
    return nullptr;
  }
  copies_[copy_count_] = copy;
  return &copies_[copy_count_++];
}

bool CopyQueue::MakeSmall(const StridedCopy& copy, SmallCopy* small) const {
  const int64_t bytes = (copy.end - copy.begin) * DTypeBytes(copy.src_dtype);
  const auto is_given_out = [](DeviceKind kind) { return kind != DeviceKind::kCpu; };
  const bool may_be = bytes > 0 && bytes <= device_->traits().small_copy_bytes &&
                      copy.src_dtype == copy.dst_dtype && is_given_out(copy.src_kind) &&
                      is_given_out(copy.dst_kind) &&
                      (copy.src_kind == DeviceKind::kCuda || copy.dst_kind == DeviceKind::kCuda);
  if (!may_be) return false;
  const int64_t from = ContiguousOffset(SrcSide(copy), copy.begin, copy.end);
  const int64_t to = from < 0 ? -1 : ContiguousOffset(DstSide(copy), copy.begin, copy.end);
  if (to < 0) return false;
  *small = {copy.src + from, copy.dst + to, static_cast<uint32_t>(bytes)};
  return true;
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
  const Stretch all = {0, 0, elements};
  copy.runs[0] = absl::MakeConstSpan(&all, 1);
  SLUICE_ASSIGN_OR_RETURN(StridedCopy* const placed, Place(copy));
  if (placed == nullptr) return absl::OkStatus();
  Stretch& run = flat_runs_[static_cast<size_t>(placed - copies_.data())];
  run = all;
  placed->runs[0] = absl::MakeConstSpan(&run, 1);
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
  if (copy_count_ == 0 && small_count_ == 0 && reduction_count_ == 0 && normalization_count_ == 0) {
    return absl::OkStatus();
  }
  const CopyBatch batch = {
      .copies = absl::MakeConstSpan(copies_.data(), copy_count_),
      .cookie = cookie_,
      .reductions = absl::MakeConstSpan(reductions_.data(), reduction_count_),
      .normalizations = absl::MakeConstSpan(normalizations_.data(), normalization_count_),
      .in_stream_order = in_stream_order_,
      .stage = stage_,
      .small_copies = absl::MakeConstSpan(small_copies_.data(), small_count_)};
  copy_count_ = small_count_ = reduction_count_ = normalization_count_ = 0;
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
