// A status as it travels in a record of fixed size.
#ifndef SLUICE_SRC_TRANSPORT_WIRE_STATUS_H_
#define SLUICE_SRC_TRANSPORT_WIRE_STATUS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensor/error_text.h"

namespace sluice {

// Trivially copyable. The end of a long message is cut off. The fields have the bytes that the
// message leaves, and a quarter at least.
template <size_t kBytes>
class WireStatus {
 public:
  WireStatus() = default;
  explicit WireStatus(const absl::Status& status) : code_(static_cast<int32_t>(status.code())) {
    if (status.ok()) return;
    const absl::string_view message = status.message();
    const ErrorFields fields = FieldsOf(status);
    std::string bytes;
    if (fields != ErrorFields()) {
      bytes = FieldBytes(fields, kBytes - std::min(message.size(), kBytes - kBytes / 4));
    }
    field_bytes_ = static_cast<uint32_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), bytes_);
    length_ = static_cast<uint32_t>(std::min(message.size(), kBytes - bytes.size()));
    std::copy_n(message.data(), length_, bytes_ + bytes.size());
  }

  bool ok() const { return code_ == 0; }
  absl::StatusCode code() const { return static_cast<absl::StatusCode>(code_); }
  absl::Status ToStatus() const {
    const size_t first = std::min<size_t>(field_bytes_, kBytes);
    const absl::string_view message(bytes_ + first, std::min<size_t>(length_, kBytes - first));
    return WithFieldBytes(absl::Status(code(), message), {bytes_, first});
  }

 private:
  int32_t code_ = 0;
  uint32_t field_bytes_ = 0;
  uint32_t length_ = 0;
  char bytes_[kBytes] = {};  // the fields, and then the message
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_WIRE_STATUS_H_
