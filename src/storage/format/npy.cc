// Reading and writing .npy headers.
#include "storage/format/npy.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "sluice/tensor.h"
#include "storage/tensor_bytes.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"
#include "tensor/round.h"

namespace sluice {
namespace {

// The text in a header: a Python dict of three entries, written as a literal.
struct NpyDict {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Each method reads what its name says after blanks, or notes the first thing that is wrong and
// returns false.
class DictReader {
 public:
  explicit DictReader(absl::string_view text) : all_(text), rest_(text) {}

  bool Read(NpyDict* dict) {
    if (!Want('{')) return false;
    while (!Take('}')) {
      if (!Entry(dict)) return false;
      if (!Take(',') && Peek() != '}') return Wrong("',' or '}'");
    }
    if (!has_descr_) return Refuse("there is no 'descr'");
    if (!has_order_) return Refuse("there is no 'fortran_order'");
    if (!has_shape_) return Refuse("there is no 'shape'");
    Blanks();
    return rest_.empty() || Wrong("the end");
  }

  const absl::Status& status() const { return status_; }

 private:
  bool Refuse(absl::string_view why) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(why);
    return false;
  }

  bool Wrong(absl::string_view expected) {
    return Refuse(absl::StrCat("at byte ", all_.size() - rest_.size(), " there should be ",
                               expected, ", not ",
                               rest_.empty() ? "the end" : Quoted(rest_.substr(0, 16))));
  }

  void Blanks() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }

  char Peek() {
    Blanks();
    return rest_.empty() ? '\0' : rest_.front();
  }

  bool Take(char c) {
    if (rest_.empty() || Peek() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool Want(char c) { return Take(c) || Wrong(absl::StrCat("'", std::string(1, c), "'")); }

  bool String(std::string* text) {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return Wrong("a string");
    const size_t end = rest_.find_first_of("'\"\\\n", 1);
    if (end == rest_.npos || rest_[end] != quote) return Wrong("a plain string");
    *text = std::string(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return true;
  }

  bool Bool(bool* value) {
    Blanks();
    for (const bool is_true : {false, true}) {
      const absl::string_view word = is_true ? "True" : "False";
      if (!absl::StartsWith(rest_, word)) continue;
      rest_.remove_prefix(word.size());
      *value = is_true;
      return true;
    }
    return Wrong("True or False");
  }

  bool Size(int64_t* value) {
    Blanks();
    size_t digits = rest_.find_first_not_of("0123456789");
    if (digits == rest_.npos) digits = rest_.size();
    if (digits == 0) return Wrong("a size");
    if (!absl::SimpleAtoi(rest_.substr(0, digits), value)) {
      return Refuse("'shape' has a size of more than 63 bits");
    }
    rest_.remove_prefix(digits);
    // Python 2 wrote long integers so.
    if (absl::StartsWith(rest_, "L")) rest_.remove_prefix(1);
    return true;
  }

  bool Shape(std::vector<int64_t>* shape) {
    if (!Want('(')) return false;
    bool has_comma = true;
    while (!Take(')')) {
      if (!has_comma) return Wrong("',' or ')'");
      if (shape->size() == kMaxTensorDims) {
        return Refuse(absl::StrCat("'shape' has more than ", kMaxTensorDims, " dimensions"));
      }
      if (!Size(&shape->emplace_back())) return false;
      has_comma = Take(',');
    }
    // (3) is a number in parentheses.
    return shape->size() != 1 || has_comma || Refuse("'shape' is not a tuple");
  }

  bool Once(absl::string_view key, bool* has) {
    if (*has) return Refuse(absl::StrCat("'", key, "' is there twice"));
    return *has = true;
  }

  bool Entry(NpyDict* dict) {
    std::string key;
    if (!String(&key) || !Want(':')) return false;
    if (key == "descr") {
      if (!Once(key, &has_descr_)) return false;
      if (Peek() == '[') return Refuse("elements are structures, which are not supported");
      return String(&dict->descr);
    }
    if (key == "fortran_order") return Once(key, &has_order_) && Bool(&dict->fortran_order);
    if (key == "shape") return Once(key, &has_shape_) && Shape(&dict->shape);
    return Refuse(absl::StrCat("unknown key ", Quoted(key)));
  }

  const absl::string_view all_;
  absl::string_view rest_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
  absl::Status status_;
};

// Reads e.g. "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }": keys in any order, each
// exactly once, blanks anywhere. InvalidArgument says where the text ends to be that.
absl::StatusOr<NpyDict> ParseNpyDict(absl::string_view text) {
  NpyDict dict;
  DictReader reader(text);
  if (!reader.Read(&dict)) return reader.status();
  return dict;
}

constexpr absl::string_view kMagic = "\x93NUMPY";
constexpr size_t kLengthAt = 8;  // after the magic and the version

int ByteAt(absl::Span<const std::byte> bytes, size_t i) { return std::to_integer<int>(bytes[i]); }

absl::Status TooShort(int64_t have, int64_t need) {
  return absl::DataLossError(
      absl::StrCat("only ", have, " bytes of a .npy object of at least ", need));
}

// The bytes before the header's text: 10 or 12.
absl::StatusOr<size_t> TextAt(absl::Span<const std::byte> first) {
  for (size_t i = 0; i < kMagic.size() && i < first.size(); ++i) {
    if (ByteAt(first, i) != static_cast<unsigned char>(kMagic[i])) {
      return absl::InvalidArgumentError("not a .npy object: it does not begin with \\x93NUMPY");
    }
  }
  if (first.size() < kLengthAt + 2) return TooShort(static_cast<int64_t>(first.size()), 10);
  const int major = ByteAt(first, 6);
  const int minor = ByteAt(first, 7);
  if (major < 1 || major > 3 || minor != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the .npy version is ", major, ".", minor, ", not 1.0, 2.0 or 3.0"));
  }
  const size_t text_at = kLengthAt + (major == 1 ? 2 : 4);
  if (first.size() < text_at) return TooShort(static_cast<int64_t>(first.size()), 12);
  return text_at;
}

absl::StatusOr<NpyHeader> HeaderOf(NpyDict dict, int64_t data_begin) {
  SLUICE_ASSIGN_OR_RETURN(const auto type, ParseNpyDescr(dict.descr));
  if (dict.fortran_order && dict.shape.size() > 1) {
    return absl::InvalidArgumentError(
        "the array is in Fortran order; only row-major arrays are read");
  }
  NpyHeader header;
  header.type = type;
  header.shape = std::move(dict.shape);
  header.data_begin = data_begin;
  const auto bytes = TensorBytes(header.type, header.shape);
  if (!bytes.has_value() || *bytes > std::numeric_limits<int64_t>::max() - data_begin) {
    return absl::InvalidArgumentError("the array has more bytes than 63 bits");
  }
  header.object_bytes = data_begin + *bytes;
  return header;
}

absl::Status CheckObject(const NpyHeader& header, int64_t object_bytes) {
  if (object_bytes < 0 || object_bytes == header.object_bytes) return absl::OkStatus();
  if (object_bytes < header.object_bytes) {
    return absl::DataLossError(absl::StrCat("the object has ", object_bytes,
                                            " bytes, but its array ends at ", header.object_bytes));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the object has ", object_bytes - header.object_bytes, " bytes after its array"));
}

}  // namespace

absl::StatusOr<int64_t> NpyHeaderBytes(absl::Span<const std::byte> first, int64_t object_bytes) {
  SLUICE_ASSIGN_OR_RETURN(const auto text_at, TextAt(first));
  uint32_t length = 0;
  for (size_t i = kLengthAt; i < text_at; ++i) {
    length |= std::to_integer<uint32_t>(first[i]) << (8 * (i - kLengthAt));
  }
  const int64_t bytes = static_cast<int64_t>(text_at) + length;
  if (bytes > kNpyHeaderBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a .npy header of ", bytes, " bytes is longer than the limit of ", kNpyHeaderBytesMax));
  }
  if (object_bytes >= 0 && bytes > object_bytes) return TooShort(object_bytes, bytes);
  return bytes;
}

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::Span<const std::byte> first, int64_t object_bytes) {
  SLUICE_ASSIGN_OR_RETURN(const auto header_bytes, NpyHeaderBytes(first, object_bytes));
  if (static_cast<int64_t>(first.size()) < header_bytes) {
    return TooShort(static_cast<int64_t>(first.size()), header_bytes);
  }
  const size_t text_at = *TextAt(first);
  const absl::string_view text(reinterpret_cast<const char*>(first.data()) + text_at,
                               static_cast<size_t>(header_bytes) - text_at);
  auto dict = ParseNpyDict(text);
  absl::StatusOr<NpyHeader> header =
      dict.ok() ? HeaderOf(*std::move(dict), header_bytes) : dict.status();
  SLUICE_RETURN_IF_ERROR(Annotate(header.status(), ".npy header"));
  SLUICE_RETURN_IF_ERROR(CheckObject(*header, object_bytes));
  return header;
}

absl::StatusOr<std::string> NpyHeaderText(ElementType type, absl::Span<const int64_t> shape,
                                          int64_t data_alignment) {
  SLUICE_CHECK(data_alignment > 0 && data_alignment % 64 == 0,
               "alignment must be a multiple of 64");
  if (NpyDescr(type).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a .npy object cannot hold ", ElementName(type)));
  }
  if (shape.size() > kMaxTensorDims ||
      std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; }) ||
      !TensorBytes(type, shape).has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("a .npy object cannot hold an array of shape (",
                                                   absl::StrJoin(shape, ", "), ")"));
  }
  std::string dict =
      absl::StrCat("{'descr': '", NpyDescr(type), "', 'fortran_order': False, ", "'shape': (",
                   absl::StrJoin(shape, ", "), shape.size() == 1 ? ",), }" : "), }");
  constexpr size_t kPrefixBytes = kLengthAt + 2;
  const auto alignment = static_cast<size_t>(data_alignment);
  const size_t unpadded = kPrefixBytes + dict.size() + 1;  // with the line feed
  const size_t padded = RoundUp(unpadded, alignment);
  const size_t length = padded - kPrefixBytes;
  if (length > 0xFFFF) return absl::InvalidArgumentError("a .npy header is at most 65535 bytes");
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(length & 0xFF), static_cast<char>(length >> 8)};
  header += dict;
  header.resize(padded - 1, ' ');
  header += '\n';
  return header;
}

}  // namespace sluice
