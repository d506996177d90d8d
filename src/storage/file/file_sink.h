// Writes ranges of temporary files that other processes write to as well, many at once, while the
// caller goes on.
//
// Whole pages go past the page cache where the file system can do that. The rest of a range, at
// either end, goes through the cache: no page is then written both ways.
#ifndef SLUICE_SRC_STORAGE_FILE_FILE_SINK_H_
#define SLUICE_SRC_STORAGE_FILE_FILE_SINK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "net/fd.h"
#include "storage/file/atomic_file.h"
#include "storage/file/file_io.h"
#include "storage/sink.h"

namespace sluice {

class FileSink final : public Sink {
 public:
  struct File {
    std::string temporary;  // its path
    int64_t bytes = 0;      // as long as another process has made it
  };

  // Opens nothing yet. An error: the system has no more threads or descriptors for us.
  static absl::StatusOr<std::unique_ptr<FileSink>> Make(std::vector<File> files);
  // By `io`, which was made for `calls_max`.
  FileSink(std::vector<File> files, std::unique_ptr<FileIo> io, int calls_max)
      : files_(std::move(files)),
        open_(files_.size()),
        io_(std::move(io)),
        calls_(static_cast<size_t>(calls_max)),
        is_free_(calls_.size(), true) {
    for (size_t i = 0; i < calls_.size(); ++i) free_calls_.push_back(i);
  }
  ~FileSink() override;

  // A page's bytes. A range whose data lies otherwise goes through the cache as a whole.
  int64_t alignment() const override;
  absl::Status Begin(const WriteOp& op) override;
  absl::Status Submit() override;
  bool Next(WriteEvent* event) override;
  void Cancel() override;
  void KeepUntilOver(std::shared_ptr<const void> memory) override {
    kept_.push_back(std::move(memory));
  }
  int outstanding() const override { return outstanding_; }
  int ready_fd() const override { return io_->ready_fd(); }
  absl::Status Sync() override;

 private:
  struct Open {
    absl::optional<AtomicFile> cached;
    Fd direct;  // none where the file system refuses, or while other files are written
    bool refuses_direct = false;
    int calls = 0;  // of the system's, that use it
  };
  struct Write {
    uint64_t cookie = 0;
    int file = 0;
    int calls = 0;  // that have not ended
    absl::Status status = {};
  };
  // One call of the system's at a time, until all of its bytes are written.
  struct Call {
    size_t write = 0;
    bool direct = false;
    const std::byte* data = nullptr;
    int64_t offset = 0;
    int64_t bytes = 0;
  };

  absl::StatusOr<Open*> OpenFile(int file);
  void OpenDirect(Open* open);
  void StartCalls();
  void Start(size_t number);
  void Take(const FileResult& result);
  void EndCall(size_t number, const absl::Status& status);
  void EndPart(size_t number, const absl::Status& status);
  void EndCalls();
  void CancelFor(absl::Status status);

  const std::vector<File> files_;
  std::vector<Open> open_;
  const std::unique_ptr<FileIo> io_;
  std::vector<Call> calls_;    // by number; under way, unless free
  std::vector<bool> is_free_;  // by number
  std::vector<size_t> free_calls_;
  std::deque<Call> waiting_;  // for a number
  std::vector<Write> writes_;
  std::vector<size_t> free_writes_;
  std::deque<WriteEvent> events_;
  int outstanding_ = 0;
  absl::Status cancelled_;  // not OK: nothing is started any more
  std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FILE_FILE_SINK_H_
