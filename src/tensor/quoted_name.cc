// Names in quotes.
#include "tensor/quoted_name.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

// Messages to other ranks have 512 bytes.
constexpr size_t kTensorBytesShown = 240;

}  // namespace

std::string QuotedName(absl::string_view name, size_t most_bytes) {
  return absl::StrCat("'", absl::CHexEscape(name.substr(0, most_bytes)),
                      name.size() > most_bytes ? "...'" : "'");
}

std::string TensorInWords(absl::string_view name) {
  return absl::StrCat("tensor ", QuotedName(name, kTensorBytesShown));
}

std::string TensorInWords(size_t number, absl::string_view name) {
  return absl::StrCat("tensor ", number, " ", QuotedName(name, kTensorBytesShown));
}

}  // namespace sluice
