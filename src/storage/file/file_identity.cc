// Asks fstat, and compares.
#include "storage/file/file_identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "net/fd.h"
#include "storage/source_check.h"
#include "tensor/error_text.h"
#include "tensor/stable_hash.h"

namespace sluice {
namespace {

uint64_t ThisHost() {
  static const uint64_t host = [] {
    std::array<char, 64> text = {};
    const Fd fd(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
    ssize_t bytes = fd.get() < 0 ? 0 : read(fd.get(), text.data(), text.size());
    if (bytes <= 0) {
      bytes = gethostname(text.data(), text.size() - 1) == 0 ? ssize_t{64} : ssize_t{0};
    }
    StableHash hash;
    hash.AddText(absl::string_view(text.data(), static_cast<size_t>(bytes)));
    return hash.value();
  }();
  return host;
}

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FileIdentity IdentityOf(const struct stat& facts) {
  return {.host = ThisHost(),
          .device = facts.st_dev,
          .inode = facts.st_ino,
          .links = facts.st_nlink,
          .bytes = facts.st_size,
          .written_ns = Nanoseconds(facts.st_mtim),
          .changed_ns = Nanoseconds(facts.st_ctim)};
}

}  // namespace

absl::StatusOr<FileIdentity> IdentifyFile(int fd) {
  struct stat facts = {};
  if (fstat(fd, &facts) != 0) return ReadErrnoStatus(errno, "fstat");
  if (!S_ISREG(facts.st_mode) && !S_ISBLK(facts.st_mode)) {
    return absl::InvalidArgumentError("it is no file");
  }
  return IdentityOf(facts);
}

absl::StatusOr<absl::optional<FileIdentity>> IdentifyPath(const std::string& path) {
  struct stat facts = {};
  if (stat(path.c_str(), &facts) == 0) return absl::make_optional(IdentityOf(facts));
  if (errno == ENOENT) return absl::optional<FileIdentity>();
  return ReadErrnoStatus(errno, absl::StrCat("cannot look at ", path));
}

bool SameBytes(const FileIdentity& a, const FileIdentity& b) {
  if (a.bytes != b.bytes || a.written_ns != b.written_ns) return false;
  if (a.links == b.links && a.changed_ns != b.changed_ns) return false;
  return a.host != b.host || (a.device == b.device && a.inode == b.inode);
}

std::string IdentityText(const FileIdentity& identity) {
  return absl::StrCat(identity.host, " ", identity.device, " ", identity.inode, " ", identity.links,
                      " ", identity.bytes, " ", identity.written_ns, " ", identity.changed_ns);
}

absl::optional<FileIdentity> ParseIdentityText(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  FileIdentity identity;
  const bool good =
      words.size() == 7 && absl::SimpleAtoi(words[0], &identity.host) &&
      absl::SimpleAtoi(words[1], &identity.device) && absl::SimpleAtoi(words[2], &identity.inode) &&
      absl::SimpleAtoi(words[3], &identity.links) && absl::SimpleAtoi(words[4], &identity.bytes) &&
      absl::SimpleAtoi(words[5], &identity.written_ns) &&
      absl::SimpleAtoi(words[6], &identity.changed_ns);
  if (!good) return absl::nullopt;
  return identity;
}

absl::Status FileIdentities::Look(int object, int fd) {
  absl::optional<FileIdentity>& known = known_[static_cast<size_t>(object)];
  SLUICE_ASSIGN_OR_RETURN(const FileIdentity seen, IdentifyFile(fd));
  if (!known) known = seen;
  if (SameBytes(*known, seen)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(names_[static_cast<size_t>(object)],
                                          " was replaced or written to while it was read"));
}

absl::Status FileIdentities::Opened(int object, int fd) {
  absl::Status status = Look(object, fd);
  outcome_.Update(status);
  return status;
}

void FileIdentities::Closing(int object, int fd) { outcome_.Update(Look(object, fd)); }

absl::Status FileIdentities::Missing(int object) const {
  if (!known(object)) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(names_[static_cast<size_t>(object)], " was removed while it was read"));
}

}  // namespace sluice
