// Fences between two streams.
#include "session/transfer/run_stream.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tensor/error_text.h"

namespace sluice {

void RunStream::Reset(const absl::optional<StreamHandle>& stream) {
  if (device_ != nullptr) {
    for (Window& window : windows_) {
      if (window.fence != nullptr) spare_.push_back(std::move(window.fence));
    }
    for (Opened& opened : opened_) spare_.push_back(std::move(opened.window.fence));
    windows_.clear();
    opened_.clear();
  }
  stream_ = stream;
  device_ = nullptr;
  last_order_ = 0;
  begun_ = made_ = held_ = 0;
  ends_ = false;
}

void RunStream::Begin(Device* device, const Ways& ways, size_t windows) {
  device_ = device;
  ways_ = ways;
  windows_.resize(windows);
}

absl::Status RunStream::Mark(size_t window, bool on_device) {
  if (device_ == nullptr || window >= windows_.size()) return absl::OkStatus();
  Window& marked = windows_[window];
  if (marked.fence == nullptr) {
    SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Fence> fence, TakeFence());
    marked.fence = std::move(fence);
    marked.host_waits = false;
  }
  // The host touches what is not device memory itself, or the network does that comes after
  // nothing.
  marked.host_waits = marked.host_waits || !ways_.network_is_behind || !on_device;
  return marked.fence->Record(*stream_);
}

void RunStream::Open(size_t window) {
  if (window >= windows_.size() || windows_[window].fence == nullptr) return;
  opened_.push_back({std::move(windows_[window]), 0});
}

absl::StatusOr<bool> RunStream::AwaitMarks(CopyQueue* copies) {
  bool moved = false;
  for (Opened& opened : opened_) {
    if (opened.order != 0) continue;
    SLUICE_ASSIGN_OR_RETURN(const bool ordered, Order(copies, opened.window.fence.get(), nullptr));
    if (!ordered) break;
    opened.order = last_order_;
    moved = true;
  }
  size_t passed = 0;
  for (; passed < opened_.size(); ++passed) {
    Opened& first = opened_[passed];
    if (first.order == 0 || !copies->HasEnded(first.order)) break;
    if (!first.window.host_waits) continue;
    SLUICE_ASSIGN_OR_RETURN(const bool host_may, first.window.fence->Passed());
    if (!host_may) break;
  }
  for (size_t i = 0; i < passed; ++i) Retire(std::move(opened_[i].window));
  opened_.erase(opened_.begin(), opened_.begin() + static_cast<ptrdiff_t>(passed));
  return moved || passed > 0;
}

// Marks are passed in order, so the last one tells of all.
void RunStream::Retire(Window window) {
  if (!window.host_waits && ways_.done_in_order) std::swap(newest_, window.fence);
  if (window.fence != nullptr) spare_.push_back(std::move(window.fence));
}

void RunStream::HandOver(std::vector<std::unique_ptr<Fence>>* marks) {
  const auto passed =
      std::partition(marks->begin(), marks->end(),
                     [](const std::unique_ptr<Fence>& mark) { return !HasPassed(*mark); });
  std::move(passed, marks->end(), std::back_inserter(spare_));
  marks->erase(passed, marks->end());
  if (newest_ != nullptr) marks->push_back(std::move(newest_));
}

absl::StatusOr<bool> RunStream::BeginMark(CopyQueue* copies) {
  std::unique_ptr<Fence>& fence = marks_[(begun_ + 1) % kMarks];
  if (absl::Status status = FillFence(&fence); !status.ok()) return status;
  absl::StatusOr<bool> ordered = Order(copies, nullptr, fence.get());
  if (ordered.ok() && *ordered) ++begun_;
  return ordered;
}

bool RunStream::TakeMark(const CopyQueue& copies) {
  if (begun_ == made_ || !copies.HasEnded(last_order_)) return false;
  made_ = begun_;
  return true;
}

absl::Status RunStream::HoldBack(uint64_t mark) {
  if (mark <= held_) return absl::OkStatus();
  absl::Status status = marks_[mark % kMarks]->HoldBack(*stream_);
  if (status.ok()) held_ = mark;
  return status;
}

absl::StatusOr<bool> RunStream::End(CopyQueue* copies) {
  if (!done_in_order()) return copies->HasEnded(last_order_);  // everything is complete
  if (!ends_) {
    if (absl::Status status = FillFence(&end_); !status.ok()) return status;
    absl::StatusOr<bool> ordered = Order(copies, nullptr, end_.get());
    if (!ordered.ok() || !*ordered) return ordered;
    ends_ = true;
  }
  if (!copies->HasEnded(last_order_)) return false;
  if (absl::Status status = end_->HoldBack(*stream_); !status.ok()) return status;
  return true;
}

absl::StatusOr<std::unique_ptr<Fence>> RunStream::TakeFence() {
  if (spare_.empty()) return device_->MakeFence();
  std::unique_ptr<Fence> taken = std::move(spare_.back());
  spare_.pop_back();
  return taken;
}

absl::Status RunStream::FillFence(std::unique_ptr<Fence>* fence) {
  if (*fence != nullptr) return absl::OkStatus();
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Fence> made, device_->MakeFence());
  *fence = std::move(made);
  return absl::OkStatus();
}

// Orders leave room for copies, and are not waited for.
absl::StatusOr<bool> RunStream::Order(CopyQueue* copies, Fence* after, Fence* then) {
  absl::StatusOr<bool> room = copies->HasRoom();
  if (!room.ok() || !*room) return room;
  SLUICE_ASSIGN_OR_RETURN(const int64_t order, copies->Order(after, then));
  last_order_ = order;
  return true;
}

}  // namespace sluice
