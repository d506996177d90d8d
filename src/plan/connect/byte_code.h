// Numbers and texts as bytes, written and read again with every length checked.
#ifndef SLUICE_SRC_PLAN_CONNECT_BYTE_CODE_H_
#define SLUICE_SRC_PLAN_CONNECT_BYTE_CODE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace sluice {

class ByteWriter {
 public:
  // Seven bits in each byte, the lowest first. The top bit says that more follow.
  void Add(uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<char>(value));
  }
  // Small numbers of either sign are short.
  void AddSigned(int64_t value) {
    Add((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  void AddBytes(absl::string_view bytes) { bytes_.append(bytes.data(), bytes.size()); }
  void AddText(absl::string_view text) {
    Add(text.size());
    AddBytes(text);
  }

  const std::string& bytes() const { return bytes_; }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Each call returns false at the end of the bytes and where they make no sense.
class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : rest_(bytes) {}

  bool Take(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      if (shift == 63 && byte > 1) return false;
      *value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  // At most `most`, which fits the type.
  template <typename Number>
  bool TakeUpTo(uint64_t most, Number* number) {
    uint64_t value = 0;
    if (!Take(&value) || value > most) return false;
    *number = static_cast<Number>(value);
    return true;
  }
  bool TakeSigned(int64_t* value) {
    uint64_t coded = 0;
    if (!Take(&coded)) return false;
    *value = static_cast<int64_t>(coded >> 1) ^ -static_cast<int64_t>(coded & 1);
    return true;
  }
  bool TakeBytes(size_t count, absl::string_view* bytes) {
    if (count > rest_.size()) return false;
    *bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }
  // How many things come next, each of which takes one byte or more.
  bool TakeCount(size_t* count) { return TakeUpTo(UINT32_MAX, count) && *count <= rest_.size(); }
  bool TakeText(size_t most, absl::string_view* text) {
    size_t count = 0;
    return TakeUpTo(most, &count) && TakeBytes(count, text);
  }

  bool empty() const { return rest_.empty(); }

 private:
  absl::string_view rest_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CONNECT_BYTE_CODE_H_
