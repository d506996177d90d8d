// Names of shards, written and recognized.
#include "session/checkpoint/checkpoint_names.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
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
