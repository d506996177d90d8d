// The caller's structs, which may be those of an older or a newer header.
//
// A struct begins with its size. Fields that an older caller lacks are zero. A newer caller's
// struct is read where it sets nothing that this library does not know.
#ifndef SLUICE_SRC_C_STRUCTS_H_
#define SLUICE_SRC_C_STRUCTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "c/call.h"
#include "sluice/sluice.h"
#include "tensor/error_text.h"

namespace sluice::c {

// `name`: of the struct's type or argument, for errors. InvalidArgument: `size` is none.
absl::Status CheckSize(absl::string_view name, size_t size);
// Unimplemented: some byte of the tail is not zero.
absl::Status CheckTail(absl::string_view name, const unsigned char* tail, size_t bytes);

// Reads a struct. Errors as above, and InvalidArgument where it is null.
template <typename T>
absl::Status ReadStruct(absl::string_view name, const T* given, T* read) {
  static_assert(std::is_trivially_copyable_v<T>);
  *read = T();
  if (given == nullptr) return IsNull(name);
  size_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  SLUICE_RETURN_IF_ERROR(CheckSize(name, size));
  std::memcpy(static_cast<void*>(read), given, std::min(size, sizeof(T)));
  read->size = sizeof(T);
  if constexpr (requires { read->reserved; }) {
    if (read->reserved != 0) {
      return absl::UnimplementedError(absl::StrCat(name, ".reserved is not 0"));
    }
  }
  if (size <= sizeof(T)) return absl::OkStatus();
  return CheckTail(name, reinterpret_cast<const unsigned char*>(given) + sizeof(T),
                   size - sizeof(T));
}

// The same; null stands for the defaults.
template <typename T>
absl::Status ReadOptions(absl::string_view name, const T* given, T* read) {
  *read = T();
  return given == nullptr ? absl::OkStatus() : ReadStruct(name, given, read);
}

// Whether there are `count` elements at `first`.
absl::Status CheckArray(absl::string_view name, const void* first, int64_t count);

// Reads an array of structs, each of which begins with the same size.
template <typename T>
absl::StatusOr<std::vector<T>> ReadArray(absl::string_view name, const T* first, int64_t count) {
  SLUICE_RETURN_IF_ERROR(CheckArray(name, first, count));
  std::vector<T> all(static_cast<size_t>(count));
  size_t step = 0;
  if (count > 0) std::memcpy(&step, first, sizeof(step));
  SLUICE_RETURN_IF_ERROR(count > 0 ? CheckSize(absl::StrCat(name, "[0]"), step) : absl::OkStatus());
  for (size_t i = 0; i < all.size(); ++i) {
    const auto* const at =
        reinterpret_cast<const T*>(reinterpret_cast<const unsigned char*>(first) + i * step);
    size_t size = 0;
    std::memcpy(&size, at, sizeof(size));
    if (size != step) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, "[", i, "].size is ", size, ", but ", name, "[0].size is ", step));
    }
    SLUICE_RETURN_IF_ERROR(ReadStruct(absl::StrCat(name, "[", i, "]"), at, &all[i]));
  }
  return all;
}

// An array of structs that never change.
template <typename T>
absl::StatusOr<absl::Span<const T>> ReadFixed(absl::string_view name, const T* first,
                                              int64_t count) {
  SLUICE_RETURN_IF_ERROR(CheckArray(name, first, count));
  return absl::Span<const T>(first, static_cast<size_t>(count));
}

// Gives as much of `value` as the caller's struct has room for, and zero beyond it.
template <typename T>
absl::Status WriteStruct(absl::string_view name, const T& value, T* given) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (given == nullptr) return IsNull(name);
  size_t size = 0;
  std::memcpy(&size, given, sizeof(size));
  SLUICE_RETURN_IF_ERROR(CheckSize(name, size));
  std::memset(static_cast<void*>(given), 0, size);
  std::memcpy(static_cast<void*>(given), &value, std::min(size, sizeof(T)));
  std::memcpy(static_cast<void*>(given), &size, sizeof(size));
  return absl::OkStatus();
}

// A text of the caller's; null is an empty one.
inline std::string TextOf(const char* text) { return text == nullptr ? "" : text; }

// A time of an option: 0 is the default, and a negative one no limit. InvalidArgument: no number.
absl::Status ReadTime(absl::string_view name, double seconds, absl::Duration* time);
// A time of an argument: 0 is no wait.
absl::StatusOr<absl::Duration> ArgumentTime(double seconds);

// Gives bytes to a caller who says how much room there is. OutOfRange: too little. `extra`: zeros
// that follow.
absl::Status WriteBytes(absl::string_view value, size_t extra, void* room, size_t* bytes);

using Metrics = std::vector<sluice_metric>;
// Gives as many metrics as there is room for. Null for `count`: none are wanted.
absl::Status WriteMetrics(const Metrics& all, sluice_metric* metrics, int64_t* count);
// InvalidArgument: this is no room for metrics.
absl::Status CheckMetricsRoom(const sluice_metric* metrics, const int64_t* count);

}  // namespace sluice::c

#endif  // SLUICE_SRC_C_STRUCTS_H_
