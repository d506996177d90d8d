// Copies from strings.
#include "storage/memory_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "storage/source_check.h"

namespace sluice {

MemorySource::MemorySource(std::vector<MemoryObject> objects)
    : wake_(*WakeSet::Make()), objects_(std::move(objects)), opened_(objects_.size()) {
  started_.reserve(1 << 16);  // it is the sources around this one that are tested for allocations
}

absl::Status MemorySource::Start(absl::Span<const ReadOp> ops) {
  const int objects = static_cast<int>(objects_.size());
  if (absl::Status status = CheckReadOps(ops, objects); !status.ok()) return status;
  started_.insert(started_.end(), ops.begin(), ops.end());
  waiting_.insert(waiting_.end(), ops.begin(), ops.end());
  for (const ReadOp& op : ops) op.TellWaits();
  wake_->SetReady(!held_ && !waiting_.empty());
  return absl::OkStatus();
}

absl::StatusOr<int> MemorySource::Poll(absl::Span<ReadEvent> events) {
  if (broken_) {
    waiting_.clear();
    cancelled_.clear();
    return absl::InternalError("the memory broke");
  }
  size_t count = 0;
  while (count < events.size() && !cancelled_.empty()) {
    events[count++] = {cancelled_.back(), absl::CancelledError("a read of memory"), 0};
    cancelled_.pop_back();
  }
  size_t carried = 0;
  while (!held_ && count < events.size() && carried < waiting_.size()) {
    const ReadOp& op = waiting_[carried++];
    op.TellBegun(MonotonicNs());
    events[count++] = {.cookie = op.cookie, .status = Carry(op), .at_once = true};
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(carried));
  wake_->SetReady(!cancelled_.empty() || (!held_ && !waiting_.empty()));
  return static_cast<int>(count);
}

void MemorySource::Cancel(uint64_t cookie) {
  const auto is = [&](const ReadOp& op) { return op.cookie == cookie; };
  const auto it = std::find_if(waiting_.begin(), waiting_.end(), is);
  if (it == waiting_.end()) return;
  waiting_.erase(it);
  cancelled_.push_back(cookie);
  wake_->SetReady(true);
}

void MemorySource::Hold(bool held) {
  held_ = held;
  wake_->SetReady(!cancelled_.empty() || (!held_ && !waiting_.empty()));
}

absl::Status MemorySource::Carry(const ReadOp& op) {
  const auto at = static_cast<size_t>(op.object);
  const MemoryObject& object = objects_[at];
  const auto error = [&](absl::StatusCode code, absl::string_view why) {
    return absl::Status(code, absl::StrCat(RangeText(object.name, op.offset, op.bytes), why));
  };
  ++counters_.requests;
  if (!object.content.has_value()) return error(absl::StatusCode::kNotFound, ": no such object");
  if (!opened_[at]) ++counters_.opens;
  opened_[at] = true;
  if (op.offset + op.bytes > static_cast<int64_t>(object.content->size())) {
    return error(absl::StatusCode::kDataLoss, ": the object ends before");
  }
  std::memcpy(op.data, object.content->data() + op.offset, static_cast<size_t>(op.bytes));
  counters_.bytes_read += op.bytes;
  return absl::OkStatus();
}

}  // namespace sluice
