// Handles the results of the kernel's calls: another call, or a read's end.
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/file/file_source_impl.h"
#include "storage/source_check.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// Tries of one call that was interrupted, in a row.
constexpr int kTriesMax = 16;

bool IsInterruption(int error) {
  // Cancelled, but not by us: io_uring gives up calls of a thread that ends.
  return error == EINTR || error == EAGAIN || error == ECANCELED;
}

}  // namespace

void FileSource::Take(const FileResult& result) {
  --in_flight_;
  void* const whose = std::bit_cast<void*>(result.tag & ~kPurposeBits);
  switch (result.tag & kPurposeBits) {
    case kForRead:
      return TakeRead(*static_cast<Read*>(whose), result);
    case kForParts:
      return TakeParts(*static_cast<Read*>(whose), result.value);
    case kForOpen:
      return TakeOpen(*static_cast<OpenFiles::File*>(whose), result.value);
    case kToMakeRoom:
      return AddOpen(*static_cast<OpenFiles::File*>(whose));
  }
}

void FileSource::TakeRead(Read& read, const FileResult& result) {
  const int64_t value = result.value;
  const bool is_cached = !files_[read.range.op().object].facts.direct;
  const bool answered = result.at_once || (in_round_ && read.round == round_);
  read.at_once = read.at_once && is_cached && answered;
  if (value < 0) {
    const int error = static_cast<int>(-value);
    const bool again = error == EINVAL
                           ? Realign(read)
                           : IsInterruption(error) && !read.cancelled && ++read.tries < kTriesMax;
    if (again) return AddRead(read);
    return Finish(read, IsInterruption(error) && read.cancelled
                            ? absl::CancelledError("the read was cancelled")
                            : ReadError(read, error));
  }
  counters_.bytes_read += value;
  read.tries = 0;
  const ReadOp& op = read.range.op();
  switch (read.range.Advance(value)) {
    case FileRead::Step::kDone:
      return Finish(read, absl::OkStatus());
    case FileRead::Step::kEnd:
      return Finish(read,
                    absl::DataLossError(absl::StrCat(
                        RangeText(names_[static_cast<size_t>(op.object)], op.offset, op.bytes),
                        ": the file ends before them")));
    case FileRead::Step::kMore:
      if (!read.cancelled) return AddRead(read);
      return Finish(read, absl::CancelledError("the read was cancelled"));
  }
}

bool FileSource::Realign(Read& read) {
  OpenFiles::File& file = files_[read.range.op().object];
  // Maybe another read has found out already.
  if (file.facts.direct && read.range.alignment() == file.facts.alignment) {
    if (file.facts.alignment < kReadAlignment) {
      file.facts.alignment = kReadAlignment;
    } else {
      MakeFileBuffered(file.fd);
      file.facts = FileFacts{};
    }
  }
  if (read.range.alignment() == file.facts.alignment) return false;
  read.range.Begin(read.range.op(), file.facts.alignment);
  return true;
}

absl::Status FileSource::ReadError(const Read& read, int error) const {
  const ReadOp& op = read.range.op();
  return ReadErrnoStatus(
      error, absl::StrCat("reading ",
                          RangeText(names_[static_cast<size_t>(op.object)], op.offset, op.bytes)));
}

void FileSource::Finish(Read& read, absl::Status status) {
  read.status = std::move(status);
  if (read.state == State::kRunning) files_.EndRead(read.range.op().object);
  Move(read, State::kFinished, ListOf(read), &finished_);
}

void FileSource::TakeOpen(OpenFiles::File& file, int64_t value) {
  if (value < 0) return OpenFailed(file, static_cast<int>(-value));
  const int fd = static_cast<int>(value);
  const int object = files_.object_of(file);
  const absl::StatusOr<FileFacts> facts = LearnFileFacts(fd, is_direct_ && !file.refuses_direct);
  absl::Status status = facts.status();
  if (status.ok() && identities_ != nullptr) status = identities_->Opened(object, fd);
  if (!status.ok()) {
    close(fd);
    files_.Failed(object);
    return FailWaiting(object, status);
  }
  ++counters_.opens;
  files_.Opened(object, fd, *facts);
  Reads& waiting = waiting_[static_cast<size_t>(object)];
  for (Read& read : waiting) read.state = State::kQueued;
  queued_.merge(waiting, [](const Read& a, const Read& b) { return a.serial < b.serial; });
}

void FileSource::OpenFailed(OpenFiles::File& file, int error) {
  const int object = files_.object_of(file);
  if (error == EINVAL && is_direct_ && !file.refuses_direct) {
    file.refuses_direct = true;
    return AddOpen(file);
  }
  files_.Failed(object);
  Reads& waiting = waiting_[static_cast<size_t>(object)];
  if (waiting.empty()) return;  // all were cancelled
  const bool too_many = (error == EMFILE || error == ENFILE) && files_.open() > 0;
  if (too_many) files_.set_open_max(files_.open());
  const bool again = too_many || (IsInterruption(error) && ++waiting.front().tries < kTriesMax);
  if (again) return files_.Want(object);
  absl::Status status;
  if (identities_ != nullptr && error == ENOENT) status = identities_->Missing(object);
  if (status.ok()) status = ReadErrnoStatus(error, "opening it");
  FailWaiting(object, status);
}

void FileSource::FailWaiting(int object, const absl::Status& status) {
  Reads& waiting = waiting_[static_cast<size_t>(object)];
  while (!waiting.empty()) {
    Read& read = waiting.front();
    const ReadOp& op = read.range.op();
    const std::string range = RangeText(names_[static_cast<size_t>(object)], op.offset, op.bytes);
    Finish(read, Annotate(status, range));
  }
}

}  // namespace sluice
