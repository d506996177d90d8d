// The layer table and the lints.
#include "layers/rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {
namespace {

constexpr size_t kMaxColumns = 100;

struct Layer {
  std::string_view folder;                    // of src/
  std::vector<std::string_view> may_include;  // folders of src/, without what lies below them
};

// The folders that each folder of src/ may include, beside itself, include/sluice, tensor/check.h
// and error_text.h. All layers use these two: a folder links sluice_tensor for them without a row
// for it. A folder that is not in the table may include nothing: add it here when it is made.
const std::vector<Layer>& Layers() {
  static const auto* const kLayers = new std::vector<Layer>{
      {"base", {}},
      {"net", {"base"}},
      {"tensor", {}},
      {"mesh", {"tensor"}},
      {"plan", {"mesh", "tensor"}},
      {"plan/shard", {"plan", "mesh", "tensor"}},
      {"plan/connect", {"plan", "mesh", "tensor"}},
      {"engine", {"plan"}},
      {"device", {"base", "tensor"}},
      {"device/cuda", {"base", "device", "tensor"}},
      {"storage", {"base", "net", "tensor"}},
      {"storage/file", {"base", "net", "storage", "tensor"}},
      {"storage/http", {"base", "storage", "tensor"}},
      {"storage/s3", {"storage", "storage/file", "storage/http", "tensor"}},
      {"storage/format", {"storage", "tensor"}},
      {"storage/open", {"storage", "storage/file", "storage/http", "storage/s3"}},
      {"transport", {"base", "net", "tensor", "device"}},
      {"transport/direct", {"base", "net", "tensor", "transport", "device"}},
      {"transport/loopback", {"transport"}},
      {"transport/mpi", {"base", "transport"}},
      {"transport/nccl", {"transport", "device", "device/cuda"}},
      {"transport/cuda_ipc", {"transport", "device", "device/cuda"}},
      {"transport/tcp", {"base", "net", "transport"}},
      {"transport/ucx", {"tensor", "transport"}},
      {"world/store", {"base", "net", "tensor", "storage", "transport"}},
      {"world",
       {"base", "net", "tensor", "storage", "transport", "transport/direct", "transport/tcp",
        "transport/ucx", "world/store"}},
      {"trace", {"base", "tensor", "plan"}},
      {"session/base",
       {"base", "net", "tensor", "plan", "engine", "device", "storage", "transport"}},
      {"session/peers", {"base", "mesh", "plan", "engine", "transport", "session/base"}},
      {"session/transfer",
       {"base", "tensor", "mesh", "plan", "engine", "device", "transport", "trace", "session/base",
        "session/peers"}},
      {"session/shard",
       {"base", "tensor", "engine", "device", "storage", "storage/open", "storage/s3", "transport",
        "trace", "session/base"}},
      {"session/stream",
       {"base", "tensor", "plan/shard", "device", "storage", "storage/format", "storage/open",
        "transport", "trace", "session/base", "session/peers", "session/shard"}},
      {"session/checkpoint",
       {"base", "tensor", "plan", "plan/shard", "device", "storage", "storage/file", "storage/http",
        "storage/format", "storage/open", "transport", "session/base", "session/peers",
        "session/shard"}},
      {"session/connect", {"tensor", "plan/connect", "session/base", "session/peers"}},
      {"session",
       {"base", "tensor", "plan", "device", "transport", "transport/direct", "trace",
        "session/base", "session/peers", "session/transfer", "session/stream", "session/checkpoint",
        "session/connect"}},
      {"c", {"session", "session/base", "session/stream", "session/checkpoint"}},
      {"sim", {"engine", "plan"}},
  };
  return *kLayers;
}

// Layers that decide and compute, and know no clock, thread, lock, system or vendor.
constexpr std::array<std::string_view, 4> kPureLayers = {"tensor", "mesh", "plan", "engine"};
constexpr std::array<std::string_view, 17> kImpure = {"thread",
                                                      "mutex",
                                                      "shared_mutex",
                                                      "condition_variable",
                                                      "atomic",
                                                      "future",
                                                      "chrono",
                                                      "ctime",
                                                      "time.h",
                                                      "pthread.h",
                                                      "unistd.h",
                                                      "sys/",
                                                      "fstream",
                                                      "absl/time/",
                                                      "absl/synchronization/",
                                                      "sluice/session.h",
                                                      "sluice/fabric.h"};

// Vendor headers, and the start of the paths that may include them.
struct Vendor {
  std::string_view header;
  std::vector<std::string_view> allowed;
};
// Vendors' headers of devices keep to such files in programs and tests too.
constexpr std::array<std::string_view, 2> kDeviceHeaders = {"cuda", "nccl"};
constexpr std::array<std::string_view, 3> kDeviceFiles = {"cuda", "nccl", "fake_"};

const std::vector<Vendor>& Vendors() {
  static const auto* const kVendors = new std::vector<Vendor>{
      {"mpi.h", {"include/sluice/mpi.h", "src/transport/mpi/"}},
      {"sluice/mpi.h", {"src/transport/mpi/"}},
      {"nccl.h", {"include/sluice/nccl.h", "src/transport/nccl/"}},
      {"cuda",
       {"include/sluice/cuda.h", "src/device/cuda/", "src/transport/cuda_ipc/",
        "src/transport/nccl/"}},
      {"liburing.h", {"src/storage/file/uring"}},
      {"curl/", {"src/storage/http/"}},
      {"openssl/", {"src/net/hmac"}},
      {"hwloc.h", {"src/device/numa"}},
  };
  return *kVendors;
}

// Folders of bench/ and tools/ that are one command each.
constexpr std::array<std::string_view, 7> kCommands = {"checkpoint", "doctor", "reshard", "shards",
                                                       "simulate",   "stream", "sync"};

bool StartsWithAny(std::string_view text, const auto& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

// The name between the quotes or brackets of an #include line, or nothing.
std::string_view IncludedName(std::string_view line) {
  if (!line.starts_with("#include ")) return {};
  const size_t open = line.find_first_of("\"<");
  if (open == line.npos) return {};
  const size_t close = line.find_first_of("\">", open + 1);
  return close == line.npos ? std::string_view() : line.substr(open + 1, close - open - 1);
}

// "plan/shard" for "plan/shard/cursor.h".
std::string_view FolderOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? std::string_view() : path.substr(0, slash);
}

// "plan" for "src/plan/plan.h"; nothing outside src/.
std::string_view LayerOf(std::string_view path) {
  constexpr std::string_view kSrc = "src/";
  return path.starts_with(kSrc) ? FolderOf(path.substr(kSrc.size())) : std::string_view();
}

bool MayInclude(std::string_view layer, std::string_view name) {
  if (name == "tensor/check.h" || name == "tensor/error_text.h" || name.starts_with("sluice/") ||
      name.starts_with("absl/")) {
    return true;
  }
  const std::string_view folder = FolderOf(name);
  for (const Layer& known : Layers()) {
    if (known.folder != layer) continue;
    return folder == layer ||
           std::count(known.may_include.begin(), known.may_include.end(), folder) > 0;
  }
  return false;
}

// Programs and tests may include anything else.
std::string DeviceComplaint(std::string_view path, std::string_view name) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (!StartsWithAny(name, kDeviceHeaders) || StartsWithAny(file, kDeviceFiles)) return {};
  return "a vendor's header does not belong here: " + std::string(name);
}

// Benchmark commands know nothing of each other. What they share knows no command.
std::string CommandComplaint(std::string_view path, std::string_view name) {
  constexpr std::array<std::string_view, 2> kPrograms = {"bench/", "tools/"};
  if (!StartsWithAny(path, kPrograms)) return {};
  const std::string_view folder = FolderOf(path.substr(kPrograms[0].size()));
  const std::string_view command = name.substr(0, name.find('/'));
  const bool is_own = folder.substr(0, folder.find('/')) == command;
  if (folder.empty() || is_own || std::count(kCommands.begin(), kCommands.end(), command) == 0) {
    return {};
  }
  return "another command's header: " + std::string(name);
}

std::string IncludeComplaint(std::string_view path, std::string_view line) {
  const std::string_view name = IncludedName(line);
  if (name.empty()) return {};
  const std::string_view layer = LayerOf(path);
  const bool is_public = path.starts_with("include/");
  if (layer.empty() && !is_public) {
    return DeviceComplaint(path, name) + CommandComplaint(path, name);
  }
  for (const Vendor& vendor : Vendors()) {
    if (name.starts_with(vendor.header) && !StartsWithAny(path, vendor.allowed)) {
      return "a vendor's header does not belong here: " + std::string(name);
    }
  }
  const bool quoted = line.find('"') != line.npos;
  if (is_public && quoted && !name.starts_with("sluice/") && !name.starts_with("absl/")) {
    return "a public header includes a private one: " + std::string(name);
  }
  if (is_public) return {};
  if (quoted && !MayInclude(layer, name)) {
    return std::string(layer) + " may not include " + std::string(name);
  }
  const bool is_pure = StartsWithAny(layer, kPureLayers);
  if (is_pure && StartsWithAny(name, kImpure)) {
    return std::string(layer) + " only decides, and may not include " + std::string(name);
  }
  return {};
}

// Code points, so that a column is what one sees.
size_t Columns(std::string_view line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// What people leave in unfinished work. In two parts, or this file would complain about itself.
std::array<std::string, 2> Marks() {
  const std::string to = "TO";
  const std::string fix = "FIX";
  return {to + "DO", fix + "ME"};
}

std::string LookComplaint(std::string_view line) {
  for (const std::string& mark : Marks()) {
    if (line.find(mark) != line.npos) return "unfinished: " + mark;
  }
  if (line.find('\t') != line.npos) return "a tab";
  if (line.ends_with(' ')) return "blanks at the end";
  if (Columns(line) > kMaxColumns) return "longer than 100 columns";
  return {};
}

// The wall clock steps, so no wait and no time that has passed goes by it. Keys of a store end at a
// time of day.
std::string ClockComplaint(std::string_view path, std::string_view line) {
  if (path == "src/storage/s3/s3_access.cc") return {};
  if (!path.starts_with("src/") && !path.starts_with("python/src/")) return {};
  for (const std::string_view clock : {"absl::Now(", "system_clock", "CLOCK_REALTIME"}) {
    if (line.find(clock) != line.npos) {
      return std::string(clock) + " may step; transport/deadline.h has a clock that does not";
    }
  }
  return {};
}

bool IsCpp(std::string_view path) {
  return path.ends_with(".h") || path.ends_with(".cc") || path.ends_with(".cu") ||
         path.ends_with(".cuh");
}

bool IsChecked(std::string_view path) {
  return IsCpp(path) || path.ends_with(".cmake") || path.ends_with("CMakeLists.txt") ||
         path.ends_with(".sh") || path.ends_with(".py");
}

// Begins a sentence, no question, with a word that leaves open what the sentence is about.
const std::regex& Riddle() {
  static const auto* const kRiddle = new std::regex(
      R"re((^|[.:!?][)"'`]* +)(What|Who|Whoever|Whom|Whose|Where|Of|Those)\b(?![^.:!?]*\?))re");
  return *kRiddle;
}

// Folders whose comments are checked: the library, its binding for Python, and the examples.
constexpr std::array<std::string_view, 4> kReadByUsers = {"include/", "src/", "python/src/",
                                                          "examples/"};

// The comment's paragraph that begins in line `i`, in one line; nothing if none begins there.
std::string ParagraphAt(const std::vector<std::string_view>& lines, size_t i) {
  const size_t mark = lines[i].find("// ");
  if (mark == std::string_view::npos) return {};
  const auto goes_on = [&](size_t line) {
    return lines[line].find("// ") == mark && lines[line].find_first_not_of(' ') == mark;
  };
  if (i > 0 && lines[i - 1].find("// ") == mark && goes_on(i)) return {};
  std::string text(lines[i].substr(mark + 3));
  for (++i; i < lines.size() && goes_on(i); ++i) text.append(" ").append(lines[i].substr(mark + 3));
  return text;
}

std::string SentenceComplaint(std::string_view path, const std::vector<std::string_view>& lines,
                              size_t i) {
  if (!StartsWithAny(path, kReadByUsers)) return {};
  const std::string text = ParagraphAt(lines, i);
  std::smatch found;
  if (!std::regex_search(text, found, Riddle())) return {};
  const auto begin = static_cast<size_t>(found.position(2));
  return "a sentence does not begin with a noun or a verb: " + text.substr(begin, 40);
}

// The first line says what the file is for; a script's first line may name its interpreter, and a
// folder's CMakeLists.txt is for the folder.
std::string OpeningComplaint(std::string_view path, const std::vector<std::string_view>& lines) {
  if (path.ends_with("/CMakeLists.txt")) return {};
  const size_t first = !lines.empty() && lines[0].starts_with("#!") ? 1 : 0;
  const std::string_view opening = first < lines.size() ? lines[first] : std::string_view();
  const bool says = IsCpp(path) ? opening.starts_with("// ")
                                : opening.starts_with("# ") || opening.starts_with("\"\"\"");
  return says ? std::string() : "the first line does not say what the file is for";
}

std::string GuardComplaint(std::string_view path, std::string_view content) {
  if (!path.ends_with(".h")) return {};
  const std::string guard = GuardOf(path);
  const std::string opening = "#ifndef " + guard + "\n#define " + guard + "\n";
  const std::string closing = "#endif  // " + guard + "\n";
  if (content.find(opening) != content.npos && content.ends_with(closing)) return {};
  return "the include guard is not " + guard;
}

std::vector<std::string_view> Lines(std::string_view content) {
  std::vector<std::string_view> lines;
  while (!content.empty()) {
    const size_t length = std::min(content.find('\n'), content.size());
    lines.push_back(content.substr(0, length));
    content.remove_prefix(std::min(length + 1, content.size()));
  }
  return lines;
}

}  // namespace

std::string GuardOf(std::string_view path) {
  constexpr std::string_view kPublic = "include/sluice/";
  if (path.starts_with(kPublic)) path.remove_prefix(kPublic.size());
  std::string guard = "SLUICE_";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    guard += std::isalnum(byte) != 0 ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return guard + "_";
}

std::vector<std::string> Complaints(std::string_view path, std::string_view content) {
  std::vector<std::string> complaints;
  const auto add = [&](size_t line, const std::string& complaint) {
    if (complaint.empty()) return;
    complaints.push_back(std::string(path) + ":" + std::to_string(line) + ": " + complaint);
  };
  if (!IsChecked(path)) return complaints;
  const std::vector<std::string_view> lines = Lines(content);
  add(1, OpeningComplaint(path, lines));
  add(1, GuardComplaint(path, content));
  for (size_t i = 0; i < lines.size(); ++i) {
    add(i + 1, LookComplaint(lines[i]));
    if (!IsCpp(path)) continue;
    add(i + 1, IncludeComplaint(path, lines[i]));
    add(i + 1, ClockComplaint(path, lines[i]));
    add(i + 1, SentenceComplaint(path, lines, i));
  }
  return complaints;
}

}  // namespace sluice
