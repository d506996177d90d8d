// Which file is mapped, and which read is copied next.
#include "storage/file/mmap_source.h"

#include <algorithm>
#include <cstddef>
#include <list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/file/file_directory.h"
#include "storage/file/mapped_file.h"
#include "storage/ready_flag.h"
#include "storage/source_check.h"
#include "storage/wake_set.h"

namespace sluice {
namespace {

class MmapSource : public Source {
 public:
  MmapSource(UniqueFd directory, std::vector<std::string> names, const MmapSourceOptions& options,
             ReadyFlag ready);
  ~MmapSource() override;

  absl::string_view name() const override { return "mmap"; }
  int64_t alignment() const override { return 1; }
  absl::Status Start(absl::Span<const ReadOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<ReadEvent> events) override;
  void Cancel(uint64_t cookie) override;
  int ready_fd() const override { return ready_.fd(); }

 private:
  struct File {
    MappedFile mapped;
    std::list<int>::iterator place;  // in used_, while it is mapped
  };
  struct Read {
    ReadOp op;
    int64_t done = 0;  // bytes copied
    absl::Status status;
  };
  using Reads = std::list<Read>;

  absl::StatusOr<const MappedFile*> Use(int object);
  void Unmap(int object);
  // Copies at most `bytes_max` more of a read. Returns how many.
  absl::StatusOr<int64_t> Copy(Read& read, int64_t bytes_max);
  void Finish(Reads::iterator read, const absl::Status& status);

  const UniqueFd directory_;
  const std::vector<std::string> names_;
  const int64_t poll_bytes_max_;
  const size_t files_max_;
  const std::shared_ptr<FileIdentities> identities_;  // or null
  ReadyFlag ready_;                                   // set while there are reads
  std::vector<File> files_;
  std::list<int> used_;  // mapped files, the longest unused first
  Reads free_;
  Reads queued_;
  Reads finished_;
};

MmapSource::MmapSource(UniqueFd directory, std::vector<std::string> names,
                       const MmapSourceOptions& options, ReadyFlag ready)
    : directory_(std::move(directory)),
      names_(std::move(names)),
      poll_bytes_max_(options.poll_bytes_max),
      files_max_(static_cast<size_t>(options.files_max > 0 ? options.files_max : OpenFilesMax())),
      identities_(options.identities),
      ready_(std::move(ready)),
      files_(names_.size()) {}

MmapSource::~MmapSource() {
  for (const int object : used_) Unmap(object);
}

void MmapSource::Unmap(int object) {
  MappedFile& mapped = files_[static_cast<size_t>(object)].mapped;
  if (identities_ != nullptr) identities_->Closing(object, mapped.fd());
  mapped = MappedFile();
}

absl::StatusOr<const MappedFile*> MmapSource::Use(int object) {
  File& file = files_[static_cast<size_t>(object)];
  if (file.mapped.is_mapped()) {
    used_.splice(used_.end(), used_, file.place);
    return &file.mapped;
  }
  if (used_.size() >= files_max_) {
    Unmap(used_.front());
    used_.pop_front();
  }
  absl::StatusOr<MappedFile> mapped =
      MappedFile::Map(directory_.get(), names_[static_cast<size_t>(object)]);
  absl::Status status = mapped.status();
  if (identities_ != nullptr) {
    if (status.ok()) {
      status = identities_->Opened(object, mapped->fd());
    } else if (absl::IsNotFound(status)) {
      if (absl::Status missing = identities_->Missing(object); !missing.ok()) status = missing;
    }
  }
  if (!status.ok()) return status;
  ++counters_.opens;
  file.mapped = *std::move(mapped);
  file.place = used_.insert(used_.end(), object);
  return &file.mapped;
}

absl::Status MmapSource::Start(absl::Span<const ReadOp> ops) {
  absl::Status status = CheckReadOps(ops, static_cast<int>(names_.size()));
  if (!status.ok()) return status;
  for (const ReadOp& op : ops) {
    if (free_.empty()) free_.emplace_back();
    queued_.splice(queued_.end(), free_, free_.begin());
    queued_.back() = {.op = op, .done = 0, .status = absl::OkStatus()};
    ++counters_.requests;
    op.TellWaits();
    // What cannot be mapped says so when it is its turn.
    const absl::StatusOr<const MappedFile*> file = Use(op.object);
    if (file.ok()) (*file)->WillNeed(op.offset, op.bytes);
  }
  ready_.Set(!queued_.empty() || !finished_.empty());
  return absl::OkStatus();
}

absl::StatusOr<int64_t> MmapSource::Copy(Read& read, int64_t bytes_max) {
  const absl::StatusOr<const MappedFile*> file = Use(read.op.object);
  if (!file.ok()) return file.status();
  const int64_t count = std::min(bytes_max, read.op.bytes - read.done);
  absl::Status status =
      (*file)->Read(read.op.offset + read.done,
                    absl::MakeSpan(read.op.data + read.done, static_cast<size_t>(count)));
  if (!status.ok()) return status;
  read.done += count;
  if (read.done < read.op.bytes) return count;
  status = (*file)->CheckEnd(read.op.offset + read.op.bytes);
  if (!status.ok()) return status;
  return count;
}

void MmapSource::Finish(Reads::iterator read, const absl::Status& status) {
  const ReadOp& op = read->op;
  if (!status.ok()) {
    const std::string range =
        RangeText(names_[static_cast<size_t>(op.object)], op.offset, op.bytes);
    read->status = absl::Status(status.code(), absl::StrCat(range, ": ", status.message()));
  }
  finished_.splice(finished_.end(), queued_, read);
}

absl::StatusOr<int> MmapSource::Poll(absl::Span<ReadEvent> events) {
  size_t count = 0;
  int64_t copied = 0;
  while (count < events.size()) {
    if (!finished_.empty()) {
      Read& read = finished_.front();
      events[count++] = {.cookie = read.op.cookie, .status = std::move(read.status)};
      free_.splice(free_.end(), finished_, finished_.begin());
      continue;
    }
    if (queued_.empty() || copied >= poll_bytes_max_) break;
    Read& read = queued_.front();
    if (read.done == 0) read.op.TellBegun(WakeSet::NowNs());
    const absl::StatusOr<int64_t> bytes = Copy(read, poll_bytes_max_ - copied);
    copied += bytes.value_or(0);
    counters_.bytes_read += bytes.value_or(0);
    if (copied > 0) read.op.TellMoved(WakeSet::NowNs());
    const bool has_ended = !bytes.ok() || read.done == read.op.bytes;
    if (has_ended) Finish(queued_.begin(), bytes.status());
  }
  ready_.Set(!queued_.empty() || !finished_.empty());
  return static_cast<int>(count);
}

void MmapSource::Cancel(uint64_t cookie) {
  const auto has_cookie = [cookie](const Read& read) { return read.op.cookie == cookie; };
  const auto read = std::find_if(queued_.begin(), queued_.end(), has_cookie);
  if (read != queued_.end()) Finish(read, absl::CancelledError("the read was cancelled"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Source>> MakeMmapSource(const std::string& directory,
                                                       std::vector<std::string> names,
                                                       const MmapSourceOptions& options) {
  if (options.poll_bytes_max < 1 || options.files_max < 0) {
    return absl::InvalidArgumentError("a Poll copies at least a byte, files are not negative");
  }
  absl::StatusOr<UniqueFd> directory_fd = OpenObjectDirectory(directory, names);
  if (!directory_fd.ok()) return directory_fd.status();
  absl::StatusOr<ReadyFlag> ready = ReadyFlag::Make();
  if (!ready.ok()) return ready.status();
  return std::make_unique<MmapSource>(*std::move(directory_fd), std::move(names), options,
                                      *std::move(ready));
}

}  // namespace sluice
