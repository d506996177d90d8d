// Sizes, times, and room for results.
#include "c/structs.h"

#include <cmath>

#include "tensor/error_text.h"

namespace sluice::c {
namespace {

// Whatever is larger is no size.
constexpr size_t kSizeMax = size_t{1} << 16;
// So that a garbled count is an error and not an attempt.
constexpr int64_t kCountMax = int64_t{1} << 24;

}  // namespace

absl::Status CheckSize(absl::string_view name, size_t size) {
  if (size >= sizeof(size_t) && size <= kSizeMax && size % alignof(size_t) == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, ".size is ", size, ": begin with its INIT macro, or set it to sizeof"));
}

absl::Status CheckTail(absl::string_view name, const unsigned char* tail, size_t bytes) {
  if (std::all_of(tail, tail + bytes, [](unsigned char byte) { return byte == 0; })) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(
      name, " sets fields that this library does not know: the caller has a newer sluice.h"));
}

absl::Status CheckArray(absl::string_view name, const void* first, int64_t count) {
  if (count < 0 || count > kCountMax) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": there cannot be ", count));
  }
  return first == nullptr && count > 0 ? IsNull(name) : absl::OkStatus();
}

absl::Status ReadTime(absl::string_view name, double seconds, absl::Duration* time) {
  if (std::isnan(seconds)) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is no number"));
  }
  if (seconds < 0) {
    *time = absl::InfiniteDuration();
  } else if (seconds > 0) {
    *time = absl::Seconds(seconds);
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> ArgumentTime(double seconds) {
  absl::Duration time = absl::ZeroDuration();
  SLUICE_RETURN_IF_ERROR(ReadTime("timeout_s", seconds, &time));
  return time;
}

absl::Status WriteBytes(absl::string_view value, size_t extra, void* room, size_t* bytes) {
  if (bytes == nullptr) return IsNull("bytes");
  const size_t has = *bytes;
  *bytes = value.size() + extra;
  if (room == nullptr) return absl::OkStatus();
  if (has < *bytes) {
    return absl::OutOfRangeError(
        absl::StrCat("there is room for ", has, " bytes, but ", *bytes, " are needed"));
  }
  std::memcpy(room, value.data(), value.size());
  std::memset(static_cast<char*>(room) + value.size(), 0, extra);
  return absl::OkStatus();
}

absl::Status CheckMetricsRoom(const sluice_metric* metrics, const int64_t* count) {
  if (count == nullptr) return absl::OkStatus();
  return CheckArray("metrics", metrics, *count);
}

absl::Status WriteMetrics(const Metrics& all, sluice_metric* metrics, int64_t* count) {
  if (count == nullptr) return absl::OkStatus();
  SLUICE_RETURN_IF_ERROR(CheckMetricsRoom(metrics, count));
  const auto room = static_cast<size_t>(*count);
  std::copy_n(all.begin(), std::min(room, all.size()), metrics);
  *count = static_cast<int64_t>(all.size());
  return absl::OkStatus();
}

}  // namespace sluice::c
