// Takes reads, gives events, and keeps the kernel busy with as many as it may have.
#include "storage/file/file_source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "storage/file/file_directory.h"
#include "storage/file/file_source_impl.h"
#include "storage/source_check.h"
#include "storage/wake_set.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// Submitting a read can block: on a full disk queue, or while the system finds pages for fresh
// memory. Finished reads should not wait until hundreds have been submitted. So a call submits
// about kBeginBytes at a time, until it has taken kBeginNs.
constexpr int64_t kBeginBytes = int64_t{1} << 20;
constexpr int64_t kBeginNs = 200'000;

// Less is copied sooner than another thread is woken.
constexpr uint32_t kAsideBytesMin = 128U << 10;

}  // namespace

FileSource::FileSource(Fd directory, std::vector<std::string> names,
                       const FileSourceOptions& options, int in_flight_max,
                       std::unique_ptr<FileIo> io)
    : directory_(std::move(directory)),
      names_(std::move(names)),
      is_direct_(options.access == FileAccess::kDirect),
      in_flight_max_(in_flight_max),
      io_(std::move(io)),
      identities_(options.identities),
      files_(static_cast<int>(names_.size()),
             options.open_files_max > 0 ? options.open_files_max : OpenFilesMax()),
      waiting_(names_.size()) {}

FileSource::~FileSource() {
  Drain();
  for (size_t i = 0; i < names_.size(); ++i) {
    const int object = static_cast<int>(i);
    const OpenFiles::File& file = files_[object];
    if (file.fd < 0) continue;
    if (identities_ != nullptr) identities_->Closing(object, file.fd);
    close(file.fd);
  }
}

void FileSource::Move(Read& read, State state, Reads* from, Reads* to) {
  read.state = state;
  to->splice(to->end(), *from, read.self);
}

FileSource::Reads* FileSource::ListOf(const Read& read) {
  switch (read.state) {
    case State::kFree:
      return &free_;
    case State::kQueued:
      return &queued_;
    case State::kWaiting:
      return &waiting_[static_cast<size_t>(read.range.op().object)];
    case State::kRunning:
      return &running_;
    case State::kFinished:
      return &finished_;
  }
  return nullptr;
}

FileSource::Read& FileSource::NewRead(const ReadOp& op) {
  if (free_.empty()) {
    free_.emplace_back();
    free_.back().self = std::prev(free_.end());
    reads_.push_back(&free_.back());
  }
  Read& read = free_.front();
  read.range.Begin(op, 1);
  read.cancelled = false;
  read.alone = false;
  read.first = nullptr;
  read.tries = 0;
  read.at_once = true;
  read.serial = ++serial_;
  op.TellWaits();
  Move(read, State::kQueued, &free_, &queued_);
  return read;
}

absl::Status FileSource::Start(absl::Span<const ReadOp> ops) {
  if (!status_.ok()) return status_;
  SLUICE_RETURN_IF_ERROR(CheckReadOps(ops, static_cast<int>(names_.size())));
  for (const ReadOp& op : ops) NewRead(op);
  Carry();
  return status_;
}

void FileSource::Carry() {
  const int64_t begin_ns = MonotonicNs();
  bool is_late = false;
  do {
    begun_bytes_ = 0;
    ++round_;
    while (MayBegin() && begun_bytes_ < kBeginBytes) Route(queued_.front());
    BeginOpens();
    if (absl::Status status = io_->Submit(); !status.ok()) Break(std::move(status));
    if (!is_direct_) TakeAtOnce();
    is_late = MonotonicNs() - begin_ns >= kBeginNs;
  } while (MayBegin() && !is_late);
  if (!status_.ok()) return;
  if (MayBegin() || !finished_.empty()) io_->Wake();  // for the next Poll
  if (absl::Status status = io_->Submit(); !status.ok()) Break(std::move(status));
}

void FileSource::TakeAtOnce() {
  in_round_ = true;
  FileResult result;
  while (status_.ok() && io_->Next(&result)) Take(result);
  in_round_ = false;
}

void FileSource::Route(Read& read) {
  const int object = read.range.op().object;
  OpenFiles::File& file = files_[object];
  if (file.state == OpenFiles::State::kOpen) {
    read.range.Begin(read.range.op(), file.facts.alignment);
    Move(read, State::kRunning, &queued_, &running_);
    files_.BeginRead(object);
    if (!AddParts(read)) AddRead(read);
    return;
  }
  Move(read, State::kWaiting, &queued_, &waiting_[static_cast<size_t>(object)]);
  if (file.state == OpenFiles::State::kOpening) TellMoved(read);
  if (file.state != OpenFiles::State::kClosed) return;
  files_.Want(object);
  BeginOpens();
}

void FileSource::BeginOpens() {
  while (in_flight_ < in_flight_max_) {
    int object_to_close = -1;
    int fd_to_close = -1;
    const int object = files_.NextToOpen(&object_to_close, &fd_to_close);
    if (object < 0) return;
    OpenFiles::File& file = files_[object];
    if (fd_to_close < 0) {
      AddOpen(file);
      continue;
    }
    if (identities_ != nullptr) identities_->Closing(object_to_close, fd_to_close);
    ++in_flight_;
    io_->Add({.kind = FileCall::Kind::kClose, .fd = fd_to_close, .tag = TagOf(&file, kToMakeRoom)});
  }
}

void FileSource::AddOpen(OpenFiles::File& file) {
  const bool direct = is_direct_ && !file.refuses_direct;
  for (const Read& read : waiting_[static_cast<size_t>(files_.object_of(file))]) TellMoved(read);
  ++in_flight_;
  // O_NONBLOCK: a pipe is refused, not waited for.
  io_->Add({.kind = FileCall::Kind::kOpen,
            .fd = directory_.get(),
            .flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (direct ? O_DIRECT : 0),
            .path = names_[static_cast<size_t>(files_.object_of(file))].c_str(),
            .tag = TagOf(&file, kForOpen)});
}

// The kernel has been asked for the read, or for the open that it needs.
void FileSource::TellMoved(const Read& read) {
  const ReadOp& op = read.range.op();
  if (op.progress == nullptr) return;
  const int64_t now_ns = MonotonicNs();
  if (op.progress->begun_ns == ReadProgress::kNotBegun) op.TellBegun(now_ns);
  op.TellMoved(now_ns);
}

void FileSource::AddRead(Read& read) {
  TellMoved(read);
  ++in_flight_;
  ++counters_.requests;
  begun_bytes_ += static_cast<int64_t>(read.range.bytes());
  read.round = round_;
  const OpenFiles::File& file = files_[read.range.op().object];
  const bool cached = !file.facts.direct;
  io_->Add({.kind = FileCall::Kind::kRead,
            .fd = file.fd,
            .data = read.range.data(),
            .bytes = read.range.bytes(),
            .offset = read.range.offset(),
            .tag = TagOf(&read, kForRead),
            .cached = cached,
            .aside = cached && read.range.op().aside && read.range.bytes() >= kAsideBytesMin});
}

absl::StatusOr<int> FileSource::Poll(absl::Span<ReadEvent> events) {
  if (!status_.ok()) return status_;
  size_t count = 0;
  FileResult result;
  while (count < events.size()) {
    if (finished_.empty()) {
      if (!io_->Next(&result)) break;
      Take(result);
      continue;
    }
    Read& read = finished_.front();
    events[count++] = {.cookie = read.range.op().cookie,
                       .status = std::move(read.status),
                       .skew = read.range.skew(),
                       .at_once = read.at_once};
    Move(read, State::kFree, &finished_, &free_);
  }
  Carry();
  if (!status_.ok()) return status_;
  return static_cast<int>(count);
}

void FileSource::Cancel(uint64_t cookie) {
  for (Read* const read : reads_) {
    if (read->state == State::kFree || read->range.op().cookie != cookie) continue;
    if (read->state == State::kFinished || read->cancelled) return;
    read->cancelled = true;
    if (read->state == State::kRunning) {
      io_->Cancel(CallOf(*read));
    } else {
      const int object = read->range.op().object;
      const bool was_waiting = read->state == State::kWaiting;
      Finish(*read, absl::CancelledError("the read was cancelled"));
      io_->Wake();
      OpenFiles::File& file = files_[object];
      // Nobody needs the open any more.
      const bool is_opening = was_waiting && file.state == OpenFiles::State::kOpening;
      if (is_opening && waiting_[static_cast<size_t>(object)].empty()) {
        io_->Cancel(TagOf(&file, kForOpen));
      }
    }
    Carry();
    return;
  }
}

void FileSource::Drain() {
  for (Read& read : running_) io_->Cancel(CallOf(read));
  for (size_t i = 0; i < names_.size(); ++i) {
    OpenFiles::File& file = files_[static_cast<int>(i)];
    if (file.state == OpenFiles::State::kOpening) io_->Cancel(TagOf(&file, kForOpen));
  }
  (void)io_->Submit();  // what has begun ends without
  FileResult result;
  while (io_->running() > 0) {
    io_->Wait();
    while (io_->Next(&result)) {
      const bool opened = (result.tag & kPurposeBits) == kForOpen && result.value >= 0;
      if (opened) close(static_cast<int>(result.value));
    }
  }
}

void FileSource::Break(absl::Status status) {
  status_ = std::move(status);
  Drain();
}

namespace {

absl::StatusOr<std::unique_ptr<FileIo>> MakeFileIo(const FileSourceOptions& options,
                                                   int* in_flight_max) {
  *in_flight_max = options.in_flight_max;
  if (options.engine != FileEngine::kThreads) {
    absl::StatusOr<std::unique_ptr<FileIo>> io = MakeUringFileIo(*in_flight_max);
    const bool is_final = io.ok() || options.engine == FileEngine::kUring;
    if (is_final) return io;
  }
  *in_flight_max = std::min(*in_flight_max, options.threads_max);
  return MakeThreadFileIo(*in_flight_max);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Source>> MakeFileSource(const std::string& directory,
                                                       std::vector<std::string> names,
                                                       const FileSourceOptions& options) {
  constexpr int kInFlightMax = 16'384;
  if (options.in_flight_max < 1 || options.in_flight_max > kInFlightMax ||
      options.threads_max < 1 || options.open_files_max < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("reads in flight must be 1 to ", kInFlightMax, ", threads at least 1"));
  }
  SLUICE_ASSIGN_OR_RETURN(Fd fd, OpenObjectDirectory(directory, names));
  int in_flight_max = 0;
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<FileIo> io, MakeFileIo(options, &in_flight_max));
  return std::make_unique<FileSource>(std::move(fd), std::move(names), options, in_flight_max,
                                      std::move(io));
}

}  // namespace sluice
