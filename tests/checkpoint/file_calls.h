// Calls of the system that change files below a folder, seen before and after they are made. So a
// test can count them, let one fail, or end the process there.
//
// A program that links this has its own rename, unlink and so on in front of the system's. Its
// fsync waits for nothing: what counts is that it is asked for. It has no io_uring, whose calls
// nobody sees.
#ifndef SLUICE_TESTS_CHECKPOINT_FILE_CALLS_H_
#define SLUICE_TESTS_CHECKPOINT_FILE_CALLS_H_

#include <functional>
#include <string>

namespace sluice::checkpoint_test {

struct FileCall {
  enum class Kind {
    kCreate,
    kWrite,
    kResize,
    kSync,
    kLock,
    kMkdir,
    kRmdir,
    kRename,
    kUnlink,
    kRead
  };
  Kind kind = Kind::kCreate;
  std::string path;
  std::string to;  // of kRename: the new name
};

// Sees calls below `folder` while it lives, from any thread; one at a time in a process. `before`
// returns an errno, and the call then fails with it, or 0. `after` may be null. Reads are those of
// mapped files, and have no path.
class FileCalls {
 public:
  FileCalls(std::string folder, std::function<int(const FileCall&)> before,
            std::function<void(const FileCall&)> after);
  FileCalls(const FileCalls&) = delete;
  FileCalls& operator=(const FileCalls&) = delete;
  ~FileCalls();

  const std::string& folder() const { return folder_; }
  int Before(const FileCall& call) const { return before_(call); }
  void After(const FileCall& call) const {
    if (after_ != nullptr) after_(call);
  }

 private:
  const std::string folder_;
  const std::function<int(const FileCall&)> before_;
  const std::function<void(const FileCall&)> after_;
};

}  // namespace sluice::checkpoint_test

#endif  // SLUICE_TESTS_CHECKPOINT_FILE_CALLS_H_
