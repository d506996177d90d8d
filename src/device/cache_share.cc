// Reads what Linux says of the first CPU's caches. Not sysconf: it multiplies a cache by the
// sockets that it believes in, eight times too much on some virtual machines. Not hwloc: it looks
// up all CPUs first.
#include "device/cache_share.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace sluice {
namespace {

constexpr int64_t kUnknownShareBytes = int64_t{4} << 20;
constexpr int kCachesMax = 16;

std::string FirstLine(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return std::string(absl::StripAsciiWhitespace(line));
}

// "32768K" or "4M"; 0 for anything else.
int64_t SizeOf(absl::string_view text) {
  if (text.empty()) return 0;
  const int64_t unit = text.back() == 'K' ? 1 << 10 : text.back() == 'M' ? 1 << 20 : 0;
  text.remove_suffix(1);
  int64_t count = 0;
  return absl::SimpleAtoi(text, &count) && count > 0 ? count * unit : 0;
}

// "0-3,8" is five; at least one.
int64_t CpusIn(absl::string_view list) {
  int64_t cpus = 0;
  for (const absl::string_view range : absl::StrSplit(list, ',')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(range, absl::MaxSplits('-', 1));
    int64_t first = 0;
    int64_t last = 0;
    if (!absl::SimpleAtoi(ends.first, &first)) continue;
    if (!absl::SimpleAtoi(ends.second, &last)) last = first;
    cpus += std::max<int64_t>(last - first + 1, 0);
  }
  return std::max<int64_t>(cpus, 1);
}

}  // namespace

int64_t CacheShareIn(absl::string_view folder) {
  int64_t highest = 0;
  int64_t share = 0;
  for (int i = 0; i < kCachesMax; ++i) {
    const std::string cache = absl::StrCat(folder, "/index", i, "/");
    int64_t level = 0;
    if (!absl::SimpleAtoi(FirstLine(cache + "level"), &level) || level <= highest) continue;
    const int64_t bytes = SizeOf(FirstLine(cache + "size"));
    if (bytes == 0) continue;
    highest = level;
    share = bytes / CpusIn(FirstLine(cache + "shared_cpu_list"));
  }
  return share;
}

int64_t CacheShareBytes() {
  static const int64_t kShare = [] {
    const int64_t share = CacheShareIn("/sys/devices/system/cpu/cpu0/cache");
    return share > 0 ? std::min(share, kCacheShareBytesMax) : kUnknownShareBytes;
  }();
  return kShare;
}

// Not the CPUs that this process may use: each of its neighbours may have others.
double RanksPerCpu(int64_t ranks) {
  const auto cpus = static_cast<double>(std::max<int64_t>(sysconf(_SC_NPROCESSORS_ONLN), 1));
  return std::max(1.0, static_cast<double>(ranks) / cpus);
}

}  // namespace sluice
