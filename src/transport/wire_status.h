// A status as it travels in a record of fixed size.
#ifndef SLUICE_SRC_TRANSPORT_WIRE_STATUS_H_
#define SLUICE_SRC_TRANSPORT_WIRE_STATUS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sluice {

// Trivially copyable. What does not fit of the message is cut off.
template <size_t kTextBytes>
class WireStatus {
 public:
  WireStatus() = default;
  explicit WireStatus(const absl::Status& status)
      : code_(static_cast<int32_t>(status.code())),
        length_(static_cast<uint32_t>(std::min(status.message().size(), kTextBytes))) {
    std::copy_n(status.message().data(), length_, text_);
  }

  bool ok() const { return code_ == 0; }
  absl::StatusCode code() const { return static_cast<absl::StatusCode>(code_); }
  absl::string_view message() const { return {text_, std::min(size_t{length_}, kTextBytes)}; }

 private:
  int32_t code_ = 0;
  uint32_t length_ = 0;
  char text_[kTextBytes] = {};
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_WIRE_STATUS_H_
