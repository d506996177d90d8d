// A read desk with one order after the other.
#include "session/shard/read_ranges.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "device/device.h"
#include "session/base/backoff.h"
#include "session/shard/read_desk.h"

namespace sluice {
namespace {

// Memory for ranges at once, where they are not longer.
constexpr int64_t kBudgetBytes = int64_t{16} << 20;

}  // namespace

absl::Status ReadRanges(Source* source, const std::vector<std::string>& names,
                        const RetryOptions& retry, const WorkStop& stop,
                        absl::Span<RangeRead> ranges) {
  if (ranges.empty()) return absl::OkStatus();
  int64_t room = kReadAlignment;
  for (const RangeRead& range : ranges) {
    room = std::max(room, ReadRoom(range.offset, range.bytes, kReadAlignment));
  }
  const int64_t slots_max = std::min<int64_t>(kRangesAtOnceMax, std::ssize(ranges));
  const int slots = static_cast<int>(std::clamp(kBudgetBytes / room, int64_t{1}, slots_max));
  absl::StatusOr<DeviceMemory> memory =
      MakeHostDevice()->AllocateStaging(static_cast<size_t>(slots) * static_cast<size_t>(room));
  if (!memory.ok()) return memory.status();
  ReadDesk desk(source, names, slots, 0, 0, memory->data(), room, HedgeOptions(), retry);
  std::vector<size_t> range_of_slot(static_cast<size_t>(slots));
  std::vector<int> idle;
  for (int slot = slots; slot-- > 0;) idle.push_back(slot);
  std::vector<ReadDone> done(static_cast<size_t>(slots));
  absl::Status status;
  Backoff backoff;
  size_t next = 0;
  size_t ended = 0;
  // A read that waits for another attempt when all is given up does not end: nothing of it is under
  // way.
  while (status.ok() ? ended < ranges.size() : desk.outstanding() > 0) {
    for (; status.ok() && next < ranges.size() && !idle.empty(); ++next) {
      const int slot = idle.back();
      idle.pop_back();
      range_of_slot[static_cast<size_t>(slot)] = next;
      desk.Order({.slot = slot,
                  .object = ranges[next].object,
                  .offset = ranges[next].offset,
                  .bytes = ranges[next].bytes,
                  .item = static_cast<int64_t>(next)},
                 MonotonicNs());
    }
    if (absl::Status flushed = desk.Flush(); !flushed.ok()) return flushed;
    const absl::StatusOr<int> count = desk.Poll(absl::MakeSpan(done), MonotonicNs());
    if (!count.ok()) return count.status();
    for (int i = 0; i < *count; ++i) {
      const ReadDone& answer = done[static_cast<size_t>(i)];
      RangeRead& range = ranges[range_of_slot[static_cast<size_t>(answer.slot)]];
      idle.push_back(answer.slot);
      ++ended;
      if (answer.status.ok()) {
        range.text.assign(reinterpret_cast<const char*>(answer.data),
                          static_cast<size_t>(range.bytes));
      } else if (status.ok()) {
        status = answer.status;
        desk.CancelAll();
      }
    }
    if (status.ok() && stop.load(std::memory_order_relaxed)) {
      status = absl::CancelledError("nobody needs what is read any more");
      desk.CancelAll();
    }
    if (*count > 0) {
      backoff.Reset();
    } else {
      backoff.Pause();
    }
  }
  return status;
}

}  // namespace sluice
