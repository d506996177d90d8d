// Checking names of objects.
#include "storage/object_name.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tensor/quoted.h"
#include "tensor/utf8.h"

namespace sluice {
namespace {

constexpr size_t kMostNameBytes = 1024;
constexpr size_t kMostComponentBytes = 255;

absl::string_view ComplaintOf(absl::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > kMostNameBytes) return "is longer than 1024 bytes";
  if (name.front() == '/') return "is absolute";
  const auto is_control = [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); };
  if (std::any_of(name.begin(), name.end(), is_control)) return "has control characters";
  if (name.find('\\') != name.npos) return "has a backslash";
  if (!IsUtf8(name)) return "is not UTF-8";
  for (const absl::string_view part : absl::StrSplit(name, '/')) {
    if (part.empty()) return "has an empty component";
    if (part == "." || part == "..") return "leads elsewhere by \".\" or \"..\"";
    if (part.size() > kMostComponentBytes) return "has a component of more than 255 bytes";
  }
  return {};
}

}  // namespace

absl::Status CheckObjectName(absl::string_view name) {
  const absl::string_view complaint = ComplaintOf(name);
  if (complaint.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("object name ", Quoted(name), " ", complaint));
}

}  // namespace sluice
