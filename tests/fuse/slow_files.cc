// What slow_fs does with requests about files.
#include "fuse/slow_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <vector>

namespace sluice::fuse {
namespace {

constexpr double kKeptSeconds = 3600;    // the source does not change
constexpr unsigned kRequestsMax = 4096;  // of the kernel's at once, beside those of blocked callers

bool WriteFile(const std::string& name, const std::string& text) {
  std::FILE* const file = std::fopen(name.c_str(), "w");
  if (file == nullptr) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written;
}

}  // namespace

SlowFiles::OpenFile::~OpenFile() { close(fd); }

SlowFiles::SlowFiles(const SlowFsOptions& options)
    : options_(options),
      source_fd_(open(options.source.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
      replies_(options.threads, options.hold) {}

SlowFiles::~SlowFiles() {
  replies_.Stop();
  close(source_fd_);
}

void SlowFiles::Init(fuse_conn_info* conn) const {
  conn->max_background = kRequestsMax;
  conn->congestion_threshold = kRequestsMax;
  Say('m');
}

void SlowFiles::Lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  Slowly([this, req, path = ChildOf(parent, name)] {
    fuse_entry_param entry{};
    if (!StatOf(path, &entry.attr)) {
      fuse_reply_err(req, errno);
      return;
    }
    entry.ino = entry.attr.st_ino;
    entry.attr_timeout = KeptSeconds();
    entry.entry_timeout = kKeptSeconds;
    fuse_reply_entry(req, &entry);
  });
}

void SlowFiles::GetAttr(fuse_req_t req, fuse_ino_t ino) {
  Slowly([this, req, ino] {
    struct stat attr {};
    if (StatOf(ledger_.PathOf(ino), &attr)) {
      fuse_reply_attr(req, &attr, KeptSeconds());
    } else {
      fuse_reply_err(req, errno);
    }
  });
}

void SlowFiles::ReadDir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset) {
  const std::string path = ledger_.PathOf(ino);
  const int fd =
      openat(source_fd_, path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const dir = fd < 0 ? nullptr : fdopendir(fd);
  if (dir == nullptr) {
    fuse_reply_err(req, errno);
    return;
  }
  std::vector<char> entries(size);
  size_t used = 0;
  off_t number = 0;
  while (const dirent* entry = readdir(dir)) {
    if (++number <= offset) continue;
    struct stat attr {};
    attr.st_ino = entry->d_ino;
    attr.st_mode = static_cast<mode_t>(DTTOIF(entry->d_type));
    const size_t needed =
        fuse_add_direntry(req, entries.data() + used, size - used, entry->d_name, &attr, number);
    if (needed > size - used) break;
    used += needed;
  }
  closedir(dir);
  fuse_reply_buf(req, entries.data(), used);
}

void SlowFiles::Open(fuse_req_t req, fuse_ino_t ino, const fuse_file_info& wanted) {
  if ((wanted.flags & O_ACCMODE) != O_RDONLY) {
    fuse_reply_err(req, EROFS);
    return;
  }
  ledger_.CountOpen(ino);
  Slowly([this, req, ino, wanted] { FinishOpen(req, ino, wanted); });
}

void SlowFiles::FinishOpen(fuse_req_t req, fuse_ino_t ino, fuse_file_info info) {
  const int fd = openat(source_fd_, ledger_.PathOf(ino).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    fuse_reply_err(req, errno);
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(files_mutex_);
    info.fh = ++opened_;
    files_[info.fh] = std::make_shared<OpenFile>(fd);
  }
  info.direct_io = options_.cached ? 0 : 1;
  info.keep_cache = 0;
  if (fuse_reply_open(req, &info) == 0) return;
  const std::lock_guard<std::mutex> lock(files_mutex_);  // nobody will release it
  files_.erase(info.fh);
}

std::shared_ptr<SlowFiles::OpenFile> SlowFiles::FileOf(const fuse_file_info& info) {
  const std::lock_guard<std::mutex> lock(files_mutex_);
  return files_.at(info.fh);
}

void SlowFiles::Release(fuse_req_t req, const fuse_file_info& info) {
  {
    const std::lock_guard<std::mutex> lock(files_mutex_);
    files_.erase(info.fh);
  }
  fuse_reply_err(req, 0);
}

void SlowFiles::Read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                     const fuse_file_info& info) {
  const uint64_t at = static_cast<uint64_t>(offset);
  const int attempt = ledger_.BeginRead(ino, at);
  const Fate fate = FateOf(options_.fate, ledger_.PathOf(ino), at, attempt);
  replies_.Add(fate.delay_ns,
               [this, req, ino, size, at, outcome = fate.outcome, file = FileOf(info)] {
                 FinishRead(req, ino, size, at, outcome, file->fd);
               });
}

// Counted before it is answered, so that whoever has the answer finds it counted.
void SlowFiles::FinishRead(fuse_req_t req, fuse_ino_t ino, size_t size, uint64_t at,
                           Outcome outcome, int fd) {
  if (outcome == Outcome::kTruncated) ledger_.Truncate(ino, at + size / 2);
  if (outcome == Outcome::kShort) size = std::max<size_t>(1, size / 2);
  const uint64_t end_bytes = ledger_.EndOf(ino);
  size = static_cast<size_t>(std::min<uint64_t>(size, end_bytes - std::min(at, end_bytes)));
  thread_local std::vector<char> buffer;
  if (buffer.size() < size) buffer.resize(size);
  ssize_t got = -EIO;
  if (outcome != Outcome::kError) {
    got = pread(fd, buffer.data(), size, static_cast<off_t>(at));
    if (got < 0) got = -errno;
  }
  ledger_.EndRead(ino, static_cast<uint64_t>(std::max<ssize_t>(got, 0)), got < 0);
  if (got < 0) {
    fuse_reply_err(req, static_cast<int>(-got));
  } else {
    fuse_reply_buf(req, buffer.data(), static_cast<size_t>(got));
  }
}

void SlowFiles::WriteReport() {
  const std::string text = ledger_.Report();
  if (!options_.log_file.empty()) {
    const std::string fresh = options_.log_file + ".new";
    if (!WriteFile(fresh, text) || std::rename(fresh.c_str(), options_.log_file.c_str()) != 0) {
      std::perror(options_.log_file.c_str());
    }
  }
  Say('r');
}

void SlowFiles::Slowly(std::function<void()> reply) {
  replies_.AddFree(static_cast<int64_t>(options_.meta_latency_ms * 1e6), std::move(reply));
}

std::string SlowFiles::ChildOf(fuse_ino_t parent, const char* name) {
  const std::string folder = ledger_.PathOf(parent);
  return folder.empty() ? name : folder + "/" + name;
}

double SlowFiles::KeptSeconds() const {
  return options_.fate.truncate_share > 0 ? 0 : kKeptSeconds;
}

bool SlowFiles::StatOf(const std::string& path, struct stat* attr) {
  const char* const name = path.empty() ? "." : path.c_str();
  if (fstatat(source_fd_, name, attr, AT_SYMLINK_NOFOLLOW) != 0) return false;
  attr->st_ino = ledger_.NumberOf(path);
  const uint64_t end_bytes = ledger_.EndOf(attr->st_ino);
  if (static_cast<uint64_t>(attr->st_size) > end_bytes) {
    attr->st_size = static_cast<off_t>(end_bytes);
  }
  return true;
}

void SlowFiles::Say(char word) const {
  if (options_.ready_fd < 0) return;
  if (write(options_.ready_fd, &word, 1) != 1) std::perror("writing to --ready-fd");
}

}  // namespace sluice::fuse
