// Reading /proc/self.
#include "memory/resident_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace sluice::bench {
namespace {

// Since Linux 5.14; Debian 12's libc has no name for it.
constexpr int kPopulateRead = 22;

// The number in a line "VmHWM:     1752 kB", in bytes; -1 without such a line.
int64_t FieldOf(absl::string_view status, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    if (!absl::StartsWith(line, name)) continue;
    line.remove_prefix(name.size());
    const size_t unit = line.rfind(" kB");
    int64_t kib = 0;
    if (unit != absl::string_view::npos && absl::SimpleAtoi(line.substr(0, unit), &kib)) {
      return kib * 1024;
    }
  }
  return -1;
}

void Populate(uintptr_t begin, uintptr_t end) {
  auto* const data = reinterpret_cast<std::byte*>(begin);  // NOLINT(performance-no-int-to-ptr)
  if (madvise(data, end - begin, kPopulateRead) == 0) return;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (size_t at = 0; at < end - begin; at += page) {
    static_cast<void>(*static_cast<volatile const std::byte*>(data + at));
  }
}

}  // namespace

std::optional<ResidentMemory> ReadResidentMemory() {
  const int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::array<char, 8192> text;
  const ssize_t bytes = read(fd, text.data(), text.size());
  close(fd);
  if (bytes <= 0) return std::nullopt;
  const absl::string_view status(text.data(), static_cast<size_t>(bytes));
  const ResidentMemory memory = {FieldOf(status, "RssAnon:"), FieldOf(status, "RssFile:"),
                                 FieldOf(status, "RssShmem:"), FieldOf(status, "VmHWM:")};
  if (std::min({memory.anonymous, memory.files, memory.shared, memory.peak}) < 0) {
    return std::nullopt;
  }
  return memory;
}

bool ResetPeakMemory() {
  const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool done = write(fd, "5", 1) == 1;
  close(fd);
  return done;
}

void TouchSharedTensors() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    // As src/transport/direct/shared_segment.cc names it.
    if (!absl::StrContains(line, " /memfd:sluice")) continue;
    uintptr_t begin = 0;
    uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx", &begin, &end) == 2) Populate(begin, end);
  }
}

}  // namespace sluice::bench
