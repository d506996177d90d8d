// Names of shards, written and recognized.
#include "session/checkpoint/checkpoint_names.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace sluice {
namespace {

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool IsHex(char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); }

// Takes a number of five digits or more off the end.
bool ConsumeNumber(absl::string_view* text) {
  constexpr size_t kDigits = 5;
  size_t count = 0;
  while (count < text->size() && IsDigit((*text)[text->size() - count - 1])) ++count;
  text->remove_suffix(count);
  return count >= kDigits;
}

}  // namespace

std::string ShardName(absl::string_view label, int file, int files) {
  return absl::StrFormat("model-%s%s%05d-of-%05d.safetensors", label, label.empty() ? "" : "-",
                         file + 1, files);
}

bool IsOneFile(absl::string_view place) { return absl::EndsWith(place, ".safetensors"); }

std::string TakeFileName(SourceAddress* address) {
  absl::string_view place = address->place;
  if (address->is_http()) absl::ConsumeSuffix(&place, "/");
  if (!IsOneFile(place)) return "";
  const size_t slash = place.rfind('/');
  const size_t begin = slash == absl::string_view::npos ? 0 : slash + 1;
  std::string name(place.substr(begin));
  // The root keeps its slash, and so do addresses.
  const size_t end = address->is_http() || slash == 0 ? begin : begin - (begin > 0 ? 1 : 0);
  address->place = begin == 0 ? "." : std::string(place.substr(0, end));
  return name;
}

bool IsShardName(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "model-") || !absl::ConsumeSuffix(&name, ".safetensors") ||
      !ConsumeNumber(&name) || !absl::ConsumeSuffix(&name, "-of-") || !ConsumeNumber(&name)) {
    return false;
  }
  if (name.empty()) return true;
  return absl::ConsumeSuffix(&name, "-") && !name.empty() &&
         std::all_of(name.begin(), name.end(), IsHex);
}

}  // namespace sluice
