// Reading and writing .npy headers.
#include "storage/format/npy.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "storage/format/npy_dict.h"
#include "storage/tensor_bytes.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "tensor/round.h"

namespace sluice {
namespace {

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
  const auto type = ParseNpyDescr(dict.descr);
  if (!type.ok()) return type.status();
  if (dict.fortran_order && dict.shape.size() > 1) {
    return absl::InvalidArgumentError(
        "the array is in Fortran order; only row-major arrays are read");
  }
  NpyHeader header;
  header.type = *type;
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
  const auto text_at = TextAt(first);
  if (!text_at.ok()) return text_at.status();
  uint32_t length = 0;
  for (size_t i = kLengthAt; i < *text_at; ++i) {
    length |= std::to_integer<uint32_t>(first[i]) << (8 * (i - kLengthAt));
  }
  const int64_t bytes = static_cast<int64_t>(*text_at) + length;
  if (bytes > kNpyHeaderBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a .npy header of ", bytes, " bytes is longer than the limit of ", kNpyHeaderBytesMax));
  }
  if (object_bytes >= 0 && bytes > object_bytes) return TooShort(object_bytes, bytes);
  return bytes;
}

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::Span<const std::byte> first, int64_t object_bytes) {
  const auto header_bytes = NpyHeaderBytes(first, object_bytes);
  if (!header_bytes.ok()) return header_bytes.status();
  if (static_cast<int64_t>(first.size()) < *header_bytes) {
    return TooShort(static_cast<int64_t>(first.size()), *header_bytes);
  }
  const size_t text_at = *TextAt(first);
  const absl::string_view text(reinterpret_cast<const char*>(first.data()) + text_at,
                               static_cast<size_t>(*header_bytes) - text_at);
  auto dict = ParseNpyDict(text);
  absl::StatusOr<NpyHeader> header =
      dict.ok() ? HeaderOf(*std::move(dict), *header_bytes) : dict.status();
  if (!header.ok()) {
    return MakeError(header.status().code(), ".npy header: ", header.status());
  }
  if (absl::Status status = CheckObject(*header, object_bytes); !status.ok()) return status;
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
