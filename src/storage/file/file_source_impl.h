// The source of files: what it knows of each read, and how a read gets from list to list.
//
// A read waits for its turn, then for its object to be open, is in the kernel, maybe several times,
// and ends. FileIo knows what may be asked of the kernel, FileRead which bytes, OpenFiles which
// files are open. Only file_source*.cc include this.
#ifndef SLUICE_SRC_STORAGE_FILE_FILE_SOURCE_IMPL_H_
#define SLUICE_SRC_STORAGE_FILE_FILE_SOURCE_IMPL_H_

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "net/fd.h"
#include "storage/file/file_io.h"
#include "storage/file/file_read.h"
#include "storage/file/file_source.h"
#include "storage/file/open_files.h"
#include "storage/source.h"

namespace sluice {

class FileSource : public Source {
 public:
  FileSource(Fd directory, std::vector<std::string> names, const FileSourceOptions& options,
             int in_flight_max, std::unique_ptr<FileIo> io);
  ~FileSource() override;

  absl::string_view name() const override { return "file"; }
  int64_t alignment() const override { return is_direct_ ? kReadAlignment : 1; }
  absl::Status Start(absl::Span<const ReadOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<ReadEvent> events) override;
  void Cancel(uint64_t cookie) override;
  int ready_fd() const override { return io_->ready_fd(); }

 private:
  enum class State : uint8_t {
    kFree,
    kQueued,   // for its turn
    kWaiting,  // for its object to be open
    kRunning,
    kFinished,
  };
  struct Read {
    FileRead range;
    State state = State::kFree;
    bool cancelled = false;
    bool alone = false;   // it was one call with others, which brought less than all
    uint64_t serial = 0;  // by the order of Start
    int tries = 0;
    uint64_t round = 0;   // of Carry, in which the kernel was asked last
    bool at_once = true;  // so far
    absl::Status status;
    std::list<Read>::iterator self;
    // The first of the reads that are one call, which has the others.
    Read* first = nullptr;
    std::vector<Read*> others;
    std::vector<iovec> parts;
  };
  using Reads = std::list<Read>;
  // A call's purpose, in the low bits of its tag; above them is the address of a Read or a File.
  enum Purpose : uint64_t { kForRead, kForOpen, kToMakeRoom, kForParts };
  static constexpr uint64_t kPurposeBits = 7;
  static uint64_t TagOf(const void* whose, Purpose purpose) {
    return reinterpret_cast<uint64_t>(whose) | purpose;
  }

  Read& NewRead(const ReadOp& op);
  void Move(Read& read, State state, Reads* from, Reads* to);
  Reads* ListOf(const Read& read);

  bool MayBegin() const { return status_.ok() && in_flight_ < in_flight_max_ && !queued_.empty(); }
  // Begins what may begin, for a limited time.
  void Carry();
  // Takes what the kernel has answered within the call that asked.
  void TakeAtOnce();
  void Route(Read& read);
  void BeginOpens();
  void AddOpen(OpenFiles::File& file);
  void AddRead(Read& read);
  // Makes one call of the read and of those that follow and may join it. False: there are none.
  bool AddParts(Read& first);
  static uint64_t CallOf(const Read& read) {
    return read.first != nullptr ? TagOf(read.first, kForParts) : TagOf(&read, kForRead);
  }
  static void TellMoved(const Read& read);

  void Take(const FileResult& result);
  void TakeRead(Read& read, const FileResult& result);
  void TakeParts(Read& first, int64_t value);
  void TakePart(Read& read, int64_t value);
  void TakeOpen(OpenFiles::File& file, int64_t value);
  // Whether the read goes on with another alignment, or through the page cache.
  bool Realign(Read& read);
  void OpenFailed(OpenFiles::File& file, int error);
  void FailWaiting(int object, const absl::Status& status);
  void Finish(Read& read, absl::Status status);
  absl::Status ReadError(const Read& read, int error) const;

  // Waits until the kernel has nothing of ours.
  void Drain();
  void Break(absl::Status status);

  const Fd directory_;
  const std::vector<std::string> names_;
  const bool is_direct_;
  const int in_flight_max_;
  const std::unique_ptr<FileIo> io_;
  const std::shared_ptr<FileIdentities> identities_;  // or null
  OpenFiles files_;
  absl::Status status_;  // of the source as a whole

  int in_flight_ = 0;        // calls
  int64_t begun_bytes_ = 0;  // in the round under way
  uint64_t round_ = 0;       // Carry asks the kernel once in each
  bool in_round_ = false;    // what the kernel answers now is taken in the round that asked
  uint64_t serial_ = 0;      // of the read started last
  Reads free_;
  Reads queued_;
  Reads running_;
  Reads finished_;
  std::vector<Reads> waiting_;  // by object
  std::vector<Read*> reads_;    // all that there are
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_FILE_SOURCE_IMPL_H_
