// Maps files, and chooses the read that is copied next.
#include "storage/file/mmap_source.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "storage/file/bus_guard.h"
#include "storage/file/file_directory.h"
#include "storage/file/mapped_file.h"
#include "storage/ready_flag.h"
#include "storage/source.h"
#include "storage/source_check.h"
#include "storage/wake_set.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

// A mapped file that the source shares with those to whom it lends parts of it.
class SharedMapping final : public LentMemory {
 public:
  // `name` is for messages. `alive` counts the mappings that there are.
  SharedMapping(MappedFile file, std::string name, std::shared_ptr<std::atomic<int>> alive);
  ~SharedMapping() override;

  const MappedFile& file() const { return file_; }
  // To be called before any of it is lent. False if it must not be. The source's thread.
  bool Guard();
  // Pages of it are zeros now, whatever the file has.
  bool damaged() const { return guard_ != nullptr && guard_->tripped(); }

  absl::Status Check(int64_t end) const override;

 private:
  const MappedFile file_;
  const std::string name_;
  const std::shared_ptr<std::atomic<int>> alive_;
  std::unique_ptr<BusGuard> guard_;  // goes before the mapping
};

SharedMapping::SharedMapping(MappedFile file, std::string name,
                             std::shared_ptr<std::atomic<int>> alive)
    : file_(std::move(file)), name_(std::move(name)), alive_(std::move(alive)) {
  alive_->fetch_add(1, std::memory_order_relaxed);
}

SharedMapping::~SharedMapping() { alive_->fetch_sub(1, std::memory_order_relaxed); }

bool SharedMapping::Guard() {
  if (guard_ == nullptr && file_.data() != nullptr) {
    guard_ = BusGuard::Watch(file_.data(), file_.bytes());
  }
  return guard_ != nullptr;
}

absl::Status SharedMapping::Check(int64_t end) const {
  if (damaged()) {
    return absl::DataLossError(absl::StrCat(
        Quoted(name_), " has become shorter or cannot be read: who was lent bytes saw zeros"));
  }
  absl::Status status = file_.CheckEnd(end);
  if (status.ok()) return status;
  return MakeError(status.code(), Quoted(name_), ", of which bytes were lent: ", status);
}

// With more mappings than this no new one is lent: a process may have 65,530 of all kinds.
constexpr int kMappingsMax = 1 << 15;

class MmapSource : public Source {
 public:
  MmapSource(Fd directory, std::vector<std::string> names, const MmapSourceOptions& options,
             ReadyFlag ready);
  ~MmapSource() override;

  absl::string_view name() const override { return "mmap"; }
  int64_t alignment() const override { return 1; }
  bool lends() const override { return true; }
  absl::Status Start(absl::Span<const ReadOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<ReadEvent> events) override;
  void Cancel(uint64_t cookie) override;
  int ready_fd() const override { return ready_.fd(); }

 private:
  struct File {
    std::shared_ptr<SharedMapping> mapping;  // null: not mapped, or only for those that it is lent
    std::weak_ptr<SharedMapping> lent;
    std::list<int>::iterator place;  // in used_, while there is a mapping
  };
  struct Read {
    ReadOp op;
    int64_t done = 0;  // bytes copied
    absl::Status status = {};
    const std::byte* lent = nullptr;
    std::shared_ptr<const LentMemory> lender = nullptr;
  };
  using Reads = std::list<Read>;

  absl::StatusOr<SharedMapping*> Use(int object);
  absl::StatusOr<std::shared_ptr<SharedMapping>> Map(int object);
  void Unmap(int object);
  // False if it is to be copied.
  absl::StatusOr<bool> Lend(Read& read);
  // Copies at most `bytes_max` more of a read. Returns how many.
  absl::StatusOr<int64_t> Copy(Read& read, int64_t bytes_max);
  void Finish(Reads::iterator read, const absl::Status& status);

  const Fd directory_;
  const std::vector<std::string> names_;
  const int64_t poll_bytes_max_;
  const size_t files_max_;
  const int lent_max_;  // so many mappings at once, and no new one is lent
  const bool read_ahead_;
  const std::shared_ptr<FileIdentities> identities_;  // or null
  const std::shared_ptr<std::atomic<int>> alive_;     // mappings, those of the lent ones included
  ReadyFlag ready_;                                   // set while there are reads
  std::vector<File> files_;
  std::list<int> used_;  // mapped files, the longest unused first
  Reads free_;
  Reads queued_;
  Reads finished_;
};

MmapSource::MmapSource(Fd directory, std::vector<std::string> names,
                       const MmapSourceOptions& options, ReadyFlag ready)
    : directory_(std::move(directory)),
      names_(std::move(names)),
      poll_bytes_max_(options.poll_bytes_max),
      files_max_(static_cast<size_t>(options.files_max > 0 ? options.files_max : OpenFilesMax())),
      lent_max_(static_cast<int>(std::min<size_t>(files_max_ + files_max_ / 2, kMappingsMax))),
      read_ahead_(options.read_ahead),
      identities_(options.identities),
      alive_(std::make_shared<std::atomic<int>>(0)),
      ready_(std::move(ready)),
      files_(names_.size()) {}

MmapSource::~MmapSource() {
  for (const int object : used_) Unmap(object);
}

void MmapSource::Unmap(int object) {
  File& file = files_[static_cast<size_t>(object)];
  if (identities_ != nullptr) identities_->Closing(object, file.mapping->file().fd());
  file.mapping = nullptr;
}

absl::StatusOr<std::shared_ptr<SharedMapping>> MmapSource::Map(int object) {
  const std::string& name = names_[static_cast<size_t>(object)];
  absl::StatusOr<MappedFile> mapped = MappedFile::Map(directory_.get(), name);
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
  return std::make_shared<SharedMapping>(*std::move(mapped), name, alive_);
}

// A mapping that is lent is used again: neighbours in the file then are neighbours in memory.
absl::StatusOr<SharedMapping*> MmapSource::Use(int object) {
  File& file = files_[static_cast<size_t>(object)];
  if (file.mapping != nullptr && !file.mapping->damaged()) {
    used_.splice(used_.end(), used_, file.place);
    return file.mapping.get();
  }
  if (file.mapping != nullptr) {
    Unmap(object);
    used_.erase(file.place);
  }
  std::shared_ptr<SharedMapping> mapping = file.lent.lock();
  if (mapping == nullptr || mapping->damaged()) {
    SLUICE_ASSIGN_OR_RETURN(mapping, Map(object));
  }
  if (used_.size() >= files_max_) {
    Unmap(used_.front());
    used_.pop_front();
  }
  file.mapping = std::move(mapping);
  file.place = used_.insert(used_.end(), object);
  return file.mapping.get();
}

absl::Status MmapSource::Start(absl::Span<const ReadOp> ops) {
  SLUICE_RETURN_IF_ERROR(CheckReadOps(ops, static_cast<int>(names_.size())));
  for (const ReadOp& op : ops) {
    if (free_.empty()) free_.emplace_back();
    queued_.splice(queued_.end(), free_, free_.begin());
    queued_.back() = {.op = op};
    ++counters_.requests;
    op.TellWaits();
    if (!read_ahead_) continue;
    // An object that cannot be mapped gives its error when its turn comes.
    const absl::StatusOr<SharedMapping*> mapping = Use(op.object);
    if (mapping.ok()) (*mapping)->file().WillNeed(op.offset, op.bytes);
  }
  ready_.Set(!queued_.empty() || !finished_.empty());
  return absl::OkStatus();
}

absl::StatusOr<bool> MmapSource::Lend(Read& read) {
  const ReadOp& op = read.op;
  SLUICE_ASSIGN_OR_RETURN(SharedMapping* const mapping, Use(op.object));
  const int64_t end = op.offset + op.bytes;
  if (end > mapping->file().bytes()) return false;  // a copy says what is wrong
  File& file = files_[static_cast<size_t>(op.object)];
  const bool is_lent = file.lent.lock() == file.mapping;
  if (!is_lent && alive_->load(std::memory_order_relaxed) > lent_max_) return false;
  if (!mapping->Guard()) return false;
  SLUICE_RETURN_IF_ERROR(mapping->file().CheckEnd(end));
  file.lent = file.mapping;
  read.lent = mapping->file().data() + op.offset;
  read.lender = file.mapping;
  return true;
}

absl::StatusOr<int64_t> MmapSource::Copy(Read& read, int64_t bytes_max) {
  SLUICE_ASSIGN_OR_RETURN(SharedMapping* const mapping, Use(read.op.object));
  const MappedFile& file = mapping->file();
  const int64_t count = std::min(bytes_max, read.op.bytes - read.done);
  SLUICE_RETURN_IF_ERROR(
      file.Read(read.op.offset + read.done,
                absl::MakeSpan(read.op.data + read.done, static_cast<size_t>(count))));
  read.done += count;
  if (read.done < read.op.bytes) return count;
  SLUICE_RETURN_IF_ERROR(file.CheckEnd(read.op.offset + read.op.bytes));
  // Somebody who was lent the page has found that it cannot be read.
  if (mapping->damaged()) return mapping->Check(0);
  return count;
}

void MmapSource::Finish(Reads::iterator read, const absl::Status& status) {
  const ReadOp& op = read->op;
  if (!status.ok()) {
    const std::string range =
        RangeText(names_[static_cast<size_t>(op.object)], op.offset, op.bytes);
    read->status = Annotate(status, range);
  }
  finished_.splice(finished_.end(), queued_, read);
}

absl::StatusOr<int> MmapSource::Poll(absl::Span<ReadEvent> events) {
  size_t count = 0;
  int64_t copied = 0;
  while (count < events.size()) {
    if (!finished_.empty()) {
      Read& read = finished_.front();
      events[count++] = {.cookie = read.op.cookie,
                         .status = std::move(read.status),
                         .lent = read.lent,
                         .lender = std::move(read.lender)};
      free_.splice(free_.end(), finished_, finished_.begin());
      continue;
    }
    if (queued_.empty() || copied >= poll_bytes_max_) break;
    Read& read = queued_.front();
    if (read.done == 0) read.op.TellBegun(MonotonicNs());
    if (read.op.may_lend && read.done == 0) {
      const absl::StatusOr<bool> lent = Lend(read);
      if (lent.value_or(true)) {
        if (lent.ok()) counters_.bytes_read += read.op.bytes;
        Finish(queued_.begin(), lent.status());
        continue;
      }
    }
    const absl::StatusOr<int64_t> bytes = Copy(read, poll_bytes_max_ - copied);
    copied += bytes.value_or(0);
    counters_.bytes_read += bytes.value_or(0);
    if (copied > 0) read.op.TellMoved(MonotonicNs());
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
  SLUICE_ASSIGN_OR_RETURN(Fd directory_fd, OpenObjectDirectory(directory, names));
  SLUICE_ASSIGN_OR_RETURN(ReadyFlag ready, ReadyFlag::Make());
  return std::make_unique<MmapSource>(std::move(directory_fd), std::move(names), options,
                                      std::move(ready));
}

}  // namespace sluice
