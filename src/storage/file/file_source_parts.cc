// Reads of neighbours in one call: what joins, and what becomes of each part.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "storage/file/file_source_impl.h"

namespace sluice {
namespace {

// Limits of one call for several reads. So much keeps a disk's head where it is, and other reads
// wait little.
constexpr int64_t kPartsBytesMax = int64_t{8} << 20;
constexpr size_t kPartsMax = 256;

}  // namespace

// A part that others follow ends at a multiple of the alignment: the file's blocks do not overlap.
bool FileSource::AddParts(Read& first) {
  const int object = first.range.op().object;
  const int64_t alignment = first.range.alignment();
  int64_t end = first.range.op().offset + first.range.op().bytes;
  first.others.clear();
  first.parts.clear();
  const auto add = [&first](Read& read) {
    first.parts.push_back({.iov_base = read.range.data(), .iov_len = read.range.bytes()});
  };
  int64_t bytes = first.range.bytes();
  while (!first.alone && !queued_.empty() && first.others.size() + 1 < kPartsMax) {
    Read& next = queued_.front();
    const ReadOp& op = next.range.op();
    const bool follows = op.may_join && op.object == object && op.offset == end;
    if (!follows || next.alone || end % alignment != 0) break;
    next.range.Begin(op, alignment);
    bytes += next.range.bytes();
    if (bytes > kPartsBytesMax) break;
    if (first.others.empty()) add(first);
    add(next);
    end = op.offset + op.bytes;
    next.first = &first;
    first.others.push_back(&next);
    Move(next, State::kRunning, &queued_, &running_);
    files_.BeginRead(object);
    TellMoved(next);
  }
  if (first.others.empty()) return false;
  first.first = &first;
  TellMoved(first);
  ++in_flight_;
  ++counters_.requests;
  begun_bytes_ += bytes;
  io_->Add({.kind = FileCall::Kind::kReadParts,
            .fd = files_[object].fd,
            .parts = first.parts.data(),
            .part_count = static_cast<int>(first.parts.size()),
            .offset = first.range.offset(),
            .tag = TagOf(&first, kForParts)});
  return true;
}

// A read that came in part goes on alone, and then says itself what is wrong.
void FileSource::TakeParts(Read& first, int64_t value) {
  int64_t left = std::max<int64_t>(0, value);
  counters_.bytes_read += left;
  const auto take = [&](Read& read) {
    const int64_t part = std::min<int64_t>(left, read.range.bytes());
    left -= part;
    read.first = nullptr;
    TakePart(read, part);
  };
  take(first);
  for (Read* const read : first.others) take(*read);
  first.others.clear();
}

void FileSource::TakePart(Read& read, int64_t value) {
  read.tries = 0;
  read.at_once = false;  // or maybe it was
  if (value > 0 && read.range.Advance(value) == FileRead::Step::kDone) {
    return Finish(read, absl::OkStatus());
  }
  if (read.cancelled) return Finish(read, absl::CancelledError("the read was cancelled"));
  files_.EndRead(read.range.op().object);
  read.alone = true;
  Move(read, State::kQueued, &running_, &queued_);
}

}  // namespace sluice
