// Parsing sizes, lists and ranges.
#include "workload/numbers.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace sluice::bench {
namespace {

// Takes the suffix off `text` and returns what it multiplies with.
int64_t TakeSuffix(absl::string_view* text) {
  if (absl::EndsWithIgnoreCase(*text, "ib")) {
    text->remove_suffix(2);
  } else if (absl::EndsWithIgnoreCase(*text, "b")) {
    text->remove_suffix(1);
  }
  if (text->empty()) return 1;
  constexpr absl::string_view kPrefixes = "kmgt";
  const size_t power =
      kPrefixes.find(absl::ascii_tolower(static_cast<unsigned char>(text->back())));
  if (power == absl::string_view::npos) return 1;
  text->remove_suffix(1);
  return int64_t{1024} << (10 * power);
}

}  // namespace

absl::StatusOr<int64_t> ParseBytes(absl::string_view text) {
  absl::string_view digits = absl::StripAsciiWhitespace(text);
  const int64_t unit = TakeSuffix(&digits);
  absl::Status wrong = absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is not a size in bytes such as 65536, 64K, 8M or 1G"));
  if (digits.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(digits.front()))) {
    return wrong;
  }
  absl::Status too_large =
      absl::InvalidArgumentError(absl::StrCat("\"", text, "\" bytes do not fit 63 bits"));
  if (digits.find_first_not_of("0123456789") == absl::string_view::npos) {
    int64_t count = 0;
    if (!absl::SimpleAtoi(digits, &count)) return too_large;
    if (count > std::numeric_limits<int64_t>::max() / unit) return too_large;
    return count * unit;
  }
  double count = 0;
  if (digits.find_first_not_of("0123456789.") != absl::string_view::npos ||
      !absl::SimpleAtod(digits, &count)) {
    return wrong;
  }
  const double bytes = count * static_cast<double>(unit);
  if (bytes >= 9.2e18) return too_large;
  if (bytes != std::floor(bytes)) return wrong;
  return static_cast<int64_t>(bytes);
}

absl::StatusOr<DType> ParseDTypeName(absl::string_view text) {
  constexpr std::pair<const char*, DType> kSpellings[] = {
      {"double", DType::kF64},    {"float64", DType::kF64}, {"float", DType::kF32},
      {"float32", DType::kF32},   {"half", DType::kF16},    {"float16", DType::kF16},
      {"bfloat16", DType::kBF16}, {"int64", DType::kI64},   {"int32", DType::kI32},
      {"int16", DType::kI16},     {"int8", DType::kI8},     {"uint64", DType::kU64},
      {"uint32", DType::kU32},    {"uint16", DType::kU16},  {"uint8", DType::kU8}};
  for (const auto& [spelling, dtype] : kSpellings) {
    if (text == spelling) return dtype;
  }
  return ParseDType(text);
}

std::string BytesName(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 5) {
    value /= 1024;
    ++unit;
  }
  if (value == std::floor(value)) return absl::StrFormat("%.0f %s", value, kUnits[unit]);
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

}  // namespace sluice::bench
