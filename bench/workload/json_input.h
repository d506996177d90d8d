// Reading JSON that somebody wrote by hand: every error names where it is and what was expected.
#ifndef SLUICE_BENCH_WORKLOAD_JSON_INPUT_H_
#define SLUICE_BENCH_WORKLOAD_JSON_INPUT_H_

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "sluice/tensor.h"

namespace sluice::bench {

// Keeps the keys of an object in the order of the file.
using Json = nlohmann::ordered_json;

// The whole content of `path`. NotFound, InvalidArgument if it is larger than kFileBytesMax, or the
// reason why it cannot be read.
inline constexpr int64_t kFileBytesMax = 64 << 20;
absl::StatusOr<std::string> ReadFile(const std::string& path);

// InvalidArgument says where `text` stops being JSON, which key one object has twice, or that more
// than 64 lists and objects are in each other.
absl::StatusOr<Json> ParseJson(absl::string_view text);

// Read the member `key` of `object`, if it has the type of `value`; otherwise InvalidArgument names
// the key. An integer is one without a fraction that fits 64 bits. A `const Json*` is an object.
absl::Status Read(const Json& object, const char* key, int64_t* value);
absl::Status Read(const Json& object, const char* key, std::string* value);
absl::Status Read(const Json& object, const char* key, std::vector<int64_t>* value);
absl::Status Read(const Json& object, const char* key, std::vector<std::string>* value);
absl::Status Read(const Json& object, const char* key, const Json** value);
absl::Status Read(const Json& object, const char* key, DType* value);

// Adds one note for each key of `object` that is not among `known`.
void NoteUnknownKeys(const Json& object, std::initializer_list<absl::string_view> known,
                     absl::string_view where, std::vector<std::string>* notes);

// `text`, part of which comes from a file, as it may stand in a message: control characters, and
// bytes that are not UTF-8, escaped; cut after 1000 bytes.
std::string Readable(absl::string_view text);
// The same code, and such a message.
absl::Status Readable(const absl::Status& status);

// The same code, with `where` and a colon before the message; OK stays OK.
absl::Status Prefixed(absl::string_view where, const absl::Status& status);
template <typename T>
absl::StatusOr<T> Prefixed(absl::string_view where, absl::StatusOr<T> result) {
  if (!result.ok()) return Prefixed(where, result.status());
  return result;
}

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_WORKLOAD_JSON_INPUT_H_
