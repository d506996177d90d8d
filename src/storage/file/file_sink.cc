// Ranges become calls of the system's, and calls that end early go on.
#include "storage/file/file_sink.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "storage/source_check.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "tensor/round.h"

namespace sluice {
namespace {

// More than storage needs to be busy with writes of a megabyte.
constexpr int kCallsMax = 64;
constexpr int kThreadsMax = 16;  // each of which waits for one call
constexpr int64_t kCallBytesMax = int64_t{1} << 30;
// Tags are at least 8.
constexpr uint64_t kFirstTag = 8;

bool LiesAsInFile(const std::byte* data, int64_t offset) {
  const auto page = static_cast<uint64_t>(kReadAlignment);
  return reinterpret_cast<uint64_t>(data) % page == static_cast<uint64_t>(offset) % page;
}

}  // namespace

// The page cache writes whole pages.
int64_t FileSink::alignment() const {
  static const int64_t kPage = std::max<int64_t>(kReadAlignment, sysconf(_SC_PAGESIZE));
  return kPage;
}

absl::StatusOr<std::unique_ptr<FileSink>> FileSink::Make(std::vector<File> files) {
  int calls_max = kCallsMax;
  absl::StatusOr<std::unique_ptr<FileIo>> io = MakeUringFileIo(calls_max);
  if (!io.ok()) {
    calls_max = kThreadsMax;
    io = MakeThreadFileIo(calls_max);
  }
  if (!io.ok()) return io.status();
  return std::make_unique<FileSink>(std::move(files), *std::move(io), calls_max);
}

FileSink::~FileSink() {
  Cancel();
  EndCalls();
}

// Waits for all calls. Calls that the system will never begin end, too.
void FileSink::EndCalls() {
  FileResult result;
  while (io_->running() > 0) {
    io_->Wait();
    while (io_->Next(&result)) Take(result);
  }
  for (size_t number = 0; number < calls_.size(); ++number) {
    if (!is_free_[number]) EndCall(number, cancelled_);
  }
}

absl::Status FileSink::Submit() {
  absl::Status status = io_->Submit();
  if (status.ok()) return status;
  CancelFor(status);
  EndCalls();
  return status;
}

absl::StatusOr<FileSink::Open*> FileSink::OpenFile(int file) {
  Open& open = open_[static_cast<size_t>(file)];
  if (open.cached) return &open;
  const File& closed = files_[static_cast<size_t>(file)];
  SLUICE_ASSIGN_OR_RETURN(AtomicFile opened,
                          AtomicFile::OpenTemporary(closed.temporary, closed.bytes));
  open.cached = std::move(opened);
  return &open;
}

// Writes come in the order of files, so one descriptor more is enough for all.
void FileSink::OpenDirect(Open* open) {
  if (open->direct.is_open() || open->refuses_direct) return;
  for (Open& other : open_) {
    if (other.calls == 0) other.direct = Fd();
  }
  // The same file, whoever has its name by now.
  const std::string path = absl::StrCat("/proc/self/fd/", open->cached->fd());
  open->direct = Fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT));
  open->refuses_direct = !open->direct.is_open() && errno == EINVAL;
}

absl::Status FileSink::Begin(const WriteOp& op) {
  SLUICE_CHECK(op.bytes > 0, "a write of nothing");
  SLUICE_RETURN_IF_ERROR(cancelled_);
  SLUICE_ASSIGN_OR_RETURN(Open* const open, OpenFile(op.object));
  if (free_writes_.empty()) {
    free_writes_.push_back(writes_.size());
    writes_.emplace_back();
  }
  const size_t number = free_writes_.back();
  free_writes_.pop_back();
  writes_[number] = {.cookie = op.cookie, .file = op.object};
  ++outstanding_;
  const int64_t end = op.offset + op.bytes;
  int64_t begin_direct = RoundUp(op.offset, alignment());
  int64_t end_direct = end / alignment() * alignment();
  const bool may_go_direct = begin_direct < end_direct && LiesAsInFile(op.data, op.offset);
  if (may_go_direct) OpenDirect(open);
  if (!may_go_direct || !open->direct.is_open()) begin_direct = end_direct = end;
  const auto add = [&](int64_t from, int64_t to, bool direct) {
    if (from >= to) return;
    ++writes_[number].calls;
    ++open->calls;
    waiting_.push_back({.write = number,
                        .direct = direct,
                        .data = op.data + (from - op.offset),
                        .offset = from,
                        .bytes = to - from});
  };
  add(begin_direct, end_direct, true);
  add(op.offset, begin_direct, false);
  add(end_direct, end, false);
  StartCalls();
  return absl::OkStatus();
}

void FileSink::StartCalls() {
  while (!waiting_.empty() && !free_calls_.empty()) {
    const size_t number = free_calls_.back();
    free_calls_.pop_back();
    is_free_[number] = false;
    calls_[number] = waiting_.front();
    waiting_.pop_front();
    Start(number);
  }
}

void FileSink::Start(size_t number) {
  const Call& call = calls_[number];
  const Open& open = open_[static_cast<size_t>(writes_[call.write].file)];
  io_->Add({.kind = FileCall::Kind::kWrite,
            .fd = call.direct ? open.direct.get() : open.cached->fd(),
            // Only read from.
            .data = const_cast<std::byte*>(call.data),  // NOLINT
            .bytes = static_cast<uint32_t>(std::min(call.bytes, kCallBytesMax)),
            .offset = call.offset,
            .tag = kFirstTag + number});
}

void FileSink::Take(const FileResult& result) {
  const size_t number = result.tag - kFirstTag;
  Call& call = calls_[number];
  const std::string& name = files_[static_cast<size_t>(writes_[call.write].file)].temporary;
  const bool refuses = call.direct && (result.value == -EINVAL || result.value == -EOPNOTSUPP);
  const bool goes_on =
      result.value < call.bytes &&
      (result.value > 0 || refuses || result.value == -EINTR || result.value == -EAGAIN);
  if (goes_on && cancelled_.ok()) {
    const int64_t done = std::max<int64_t>(result.value, 0);
    call.data += done;
    call.offset += done;
    call.bytes -= done;
    // The cache takes what the file system does not take otherwise, or not to the end of a page.
    call.direct = call.direct && !refuses && done % alignment() == 0;
    return Start(number);
  }
  const bool whole = result.value == call.bytes;
  const int error = result.value < 0 ? static_cast<int>(-result.value) : EIO;
  EndCall(number, whole     ? absl::OkStatus()
                  : goes_on ? cancelled_
                            : ReadErrnoStatus(error, absl::StrCat("cannot write ", name)));
}

void FileSink::EndCall(size_t number, const absl::Status& status) {
  is_free_[number] = true;
  free_calls_.push_back(number);
  EndPart(calls_[number].write, status);
}

// One call of a write has ended, or will never be made.
void FileSink::EndPart(size_t number, const absl::Status& status) {
  Write& write = writes_[number];
  write.status.Update(status);
  --open_[static_cast<size_t>(write.file)].calls;
  if (--write.calls > 0) return;
  events_.push_back({write.cookie, std::move(write.status)});
  free_writes_.push_back(number);
}

bool FileSink::Next(WriteEvent* event) {
  FileResult result;
  while (events_.empty() && io_->Next(&result)) {
    Take(result);
    StartCalls();
  }
  if (events_.empty()) return false;
  *event = std::move(events_.front());
  events_.pop_front();
  --outstanding_;
  return true;
}

void FileSink::Cancel() {
  if (!cancelled_.ok()) return;
  CancelFor(absl::CancelledError("the write was cancelled"));
  // Whatever the system has been told of ends as it would, or with an error of all.
  static_cast<void>(Submit());
}

void FileSink::CancelFor(absl::Status status) {
  cancelled_ = std::move(status);
  for (const Call& call : std::exchange(waiting_, {})) EndPart(call.write, cancelled_);
}

absl::Status FileSink::Sync() {
  SLUICE_CHECK(outstanding_ == 0, "syncing what is not written yet");
  for (Open& open : open_) {
    if (!open.cached) continue;
    SLUICE_RETURN_IF_ERROR(open.cached->Sync());
  }
  return absl::OkStatus();
}

}  // namespace sluice
