// The layer table and the lints.
#include "layers/rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {
namespace {

constexpr size_t kMaxColumns = 100;

struct Layer {
  std::string_view name;
  std::vector<std::string_view> may_include;  // other folders of src/, or single headers
};

// Who may include whom in src/, beside itself, include/sluice and tensor/check.h. A layer that is
// not in the table may include nothing: add it here when it is made.
const std::vector<Layer>& Layers() {
  static const auto* const kLayers = new std::vector<Layer>{
      {"tensor", {}},
      {"mesh", {"tensor/"}},
      {"plan", {"mesh/", "tensor/"}},
      {"engine", {"plan/"}},
      {"device", {"tensor/"}},
      {"storage", {"device/", "tensor/"}},
      {"transport", {"plan/bucket.h", "device/"}},
      {"trace", {"engine/", "plan/bucket.h"}},
      {"session",
       {"tensor/", "mesh/", "plan/", "engine/", "device/", "storage/", "transport/", "trace/"}},
      {"sim", {"engine/", "plan/"}},
  };
  return *kLayers;
}

// Decide and compute, and know no clock, thread, lock, system or vendor.
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
      {"mpi.h", {"include/sluice/mpi.h", "src/transport/mpi_"}},
      {"sluice/mpi.h", {"src/transport/mpi_"}},
      {"nccl.h", {"include/sluice/nccl.h", "src/transport/nccl_"}},
      {"cuda",
       {"include/sluice/cuda.h", "src/device/cuda_", "src/transport/cuda_", "src/transport/nccl_"}},
      {"liburing.h", {"src/storage/uring"}},
      {"curl/", {"src/storage/http_"}},
      {"hwloc.h", {"src/device/numa"}},
  };
  return *kVendors;
}

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

// "plan" for "src/plan/plan.h"; nothing outside src/.
std::string_view LayerOf(std::string_view path) {
  constexpr std::string_view kSrc = "src/";
  if (!path.starts_with(kSrc)) return {};
  path.remove_prefix(kSrc.size());
  return path.substr(0, std::min(path.find('/'), path.size()));
}

bool MayInclude(std::string_view layer, std::string_view name) {
  if (name == "tensor/check.h" || name.starts_with("sluice/") || name.starts_with("absl/")) {
    return true;
  }
  if (name.starts_with(std::string(layer) + "/")) return true;
  for (const Layer& known : Layers()) {
    if (known.name == layer) return StartsWithAny(name, known.may_include);
  }
  return false;
}

// Programs and tests may include anything else.
std::string DeviceComplaint(std::string_view path, std::string_view name) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (!StartsWithAny(name, kDeviceHeaders) || StartsWithAny(file, kDeviceFiles)) return {};
  return "a vendor's header does not belong here: " + std::string(name);
}

std::string IncludeComplaint(std::string_view path, std::string_view line) {
  const std::string_view name = IncludedName(line);
  if (name.empty()) return {};
  const std::string_view layer = LayerOf(path);
  const bool is_public = path.starts_with("include/");
  if (layer.empty() && !is_public) return DeviceComplaint(path, name);
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

bool IsCpp(std::string_view path) {
  return path.ends_with(".h") || path.ends_with(".cc") || path.ends_with(".cu") ||
         path.ends_with(".cuh");
}

bool IsChecked(std::string_view path) {
  return IsCpp(path) || path.ends_with(".cmake") || path.ends_with("CMakeLists.txt") ||
         path.ends_with(".sh") || path.ends_with(".py");
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
    if (IsCpp(path)) add(i + 1, IncludeComplaint(path, lines[i]));
  }
  return complaints;
}

}  // namespace sluice
