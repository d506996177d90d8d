// Reading JSON strictly and within limits, as a stream of events: no tree is built, so memory stays
// at what the listener keeps.
//
// Refused, beside what is not JSON: one key twice in an object, bytes that are not UTF-8, NUL
// bytes, and what passes the limits.
#ifndef SLUICE_SRC_STORAGE_FORMAT_JSON_EVENTS_H_
#define SLUICE_SRC_STORAGE_FORMAT_JSON_EVENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

struct JsonLimits {
  int64_t text_bytes = 100'000'000;
  int64_t values = 50'000'000;   // numbers, strings, lists, ...
  int64_t string_bytes = 65536;  // of a key or a string
  int depth = 8;                 // lists and objects within each other
};

// The path to a value in the text: the keys and positions that lead to it.
class JsonPath {
 public:
  // 0 for the outermost value.
  int depth() const { return static_cast<int>(levels_.size()); }
  // The key at `level`, from 0 on; empty where there is a list.
  const std::string& key(int level) const { return levels_[static_cast<size_t>(level)].key; }
  // The position in the list at `level`.
  int64_t index(int level) const { return levels_[static_cast<size_t>(level)].index; }
  // "\"weight\".\"shape\"[2]"; "the text" for the outermost value.
  std::string Text() const;

 private:
  friend class JsonReading;
  struct Level {
    bool is_object = false;
    std::string key;
    int64_t index = -1;
  };
  std::vector<Level> levels_;
};

enum class JsonKind { kNull, kBool, kInteger, kNumber, kString, kList, kObject };

// "a string", "an integer": for messages.
absl::string_view KindText(JsonKind kind);

struct JsonScalar {
  JsonKind kind = JsonKind::kNull;
  int64_t integer = 0;          // kInteger: a number without fraction or exponent that fits
  double number = 0;            // kInteger, kNumber
  absl::string_view text = {};  // kString; valid during the call
};

// Gets the values in the order of the text. The first error ends the reading.
class JsonListener {
 public:
  enum class Answer { kRead, kSkip };

  virtual ~JsonListener() = default;
  // A list or an object begins at `path`; kSkip: nothing within it is told, not even its end.
  virtual absl::StatusOr<Answer> Begin(const JsonPath& path, JsonKind kind) = 0;
  virtual absl::Status End(const JsonPath& path) = 0;
  virtual absl::Status Scalar(const JsonPath& path, const JsonScalar& value) = 0;
};

// Reads one JSON text. InvalidArgument for what is wrong with it, or the listener's error.
absl::Status ReadJson(absl::string_view text, const JsonLimits& limits, JsonListener* listener);

// `text` as a JSON string with its quotes. InvalidArgument if it is not UTF-8.
absl::StatusOr<std::string> JsonQuoted(absl::string_view text);

// "<where> must be <expected>, not a list".
absl::Status WrongKind(const JsonPath& path, absl::string_view expected, JsonKind found);

// The value as an integer of at least `low`, or InvalidArgument with its place.
absl::StatusOr<int64_t> IntegerAt(const JsonPath& path, const JsonScalar& value, int64_t low = 0);

// The value as text, or InvalidArgument with its place.
absl::StatusOr<std::string> StringAt(const JsonPath& path, const JsonScalar& value);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_FORMAT_JSON_EVENTS_H_
