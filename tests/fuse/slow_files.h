// The operations of slow_fs on files: look-ups, opens and reads, answered late, counted, with
// faults.
#ifndef SLUICE_TESTS_FUSE_SLOW_FILES_H_
#define SLUICE_TESTS_FUSE_SLOW_FILES_H_

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "fuse/slow_fs_options.h"
#include "fuse/slow_fs_parts.h"

namespace sluice::fuse {

// Called by the one thread that takes requests, which no request keeps waiting. What must be slow
// becomes an entry of a queue, so that any number of reads is under way at once.
class SlowFiles {
 public:
  // `options` must outlive this object.
  explicit SlowFiles(const SlowFsOptions& options);
  ~SlowFiles();
  SlowFiles(const SlowFiles&) = delete;
  SlowFiles& operator=(const SlowFiles&) = delete;

  // As in fuse_lowlevel_ops.
  void Init(fuse_conn_info* conn) const;
  void Lookup(fuse_req_t req, fuse_ino_t parent, const char* name);
  void GetAttr(fuse_req_t req, fuse_ino_t ino);
  void ReadDir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset);
  void Open(fuse_req_t req, fuse_ino_t ino, const fuse_file_info& wanted);
  void Read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, const fuse_file_info& info);
  void Release(fuse_req_t req, const fuse_file_info& info);

  // Answers what is under way. Before the session ends.
  void Stop() { replies_.Stop(); }
  // Any thread, one at a time.
  void WriteReport();

 private:
  struct OpenFile {
    explicit OpenFile(int opened) : fd(opened) {}
    ~OpenFile();
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    const int fd;
  };

  void Slowly(std::function<void()> reply);
  std::string ChildOf(fuse_ino_t parent, const char* name);
  double KeptSeconds() const;
  // As the file system shows it; false, with errno, if there is none.
  bool StatOf(const std::string& path, struct stat* attr);
  std::shared_ptr<OpenFile> FileOf(const fuse_file_info& info);
  void FinishOpen(fuse_req_t req, fuse_ino_t ino, fuse_file_info info);
  void FinishRead(fuse_req_t req, fuse_ino_t ino, size_t size, uint64_t at, Outcome outcome,
                  int fd);
  void Say(char word) const;

  const SlowFsOptions& options_;
  const int source_fd_;
  Ledger ledger_;
  std::mutex files_mutex_;
  uint64_t opened_ = 0;
  std::map<uint64_t, std::shared_ptr<OpenFile>> files_;
  DelayedReplies replies_;
};

}  // namespace sluice::fuse

#endif  // SLUICE_TESTS_FUSE_SLOW_FILES_H_
