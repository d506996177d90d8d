// Turns the parser's events into the listener's, counting and checking.
#include "storage/format/json_events.h"

#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tensor/quoted.h"
#include "tensor/utf8.h"

namespace sluice {

using Json = nlohmann::json;

std::string JsonPath::Text() const {
  if (levels_.empty()) return "the text";
  std::string text;
  for (const Level& level : levels_) {
    if (level.is_object) {
      absl::StrAppend(&text, text.empty() ? "" : ".", Quoted(level.key));
    } else {
      absl::StrAppend(&text, "[", level.index, "]");
    }
  }
  return text;
}

absl::string_view KindText(JsonKind kind) {
  switch (kind) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBool:
      return "true or false";
    case JsonKind::kInteger:
      return "an integer";
    case JsonKind::kNumber:
      return "a number with a fraction or of more than 63 bits";
    case JsonKind::kString:
      return "a string";
    case JsonKind::kList:
      return "a list";
    case JsonKind::kObject:
      return "an object";
  }
  return "something else";
}

// The parser's view of one reading. Its method names are nlohmann's (json_sax); each returns
// whether to go on.
class JsonReading {
 public:
  JsonReading(const JsonLimits& limits, JsonListener* listener)
      : limits_(limits), listener_(listener) {}

  bool null() { return Take(JsonScalar()); }
  bool boolean(bool /*value*/) { return Take({.kind = JsonKind::kBool}); }
  bool number_integer(int64_t value) {
    return Take(
        {.kind = JsonKind::kInteger, .integer = value, .number = static_cast<double>(value)});
  }
  bool number_unsigned(uint64_t value) {
    if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return number_integer(static_cast<int64_t>(value));
    }
    return Take({.kind = JsonKind::kNumber, .number = static_cast<double>(value)});
  }
  bool number_float(double value, const std::string& /*text*/) {
    return Take({.kind = JsonKind::kNumber, .number = value});
  }
  bool string(std::string& text) {
    if (!CheckLength(text)) return false;
    return Take({.kind = JsonKind::kString, .text = text});
  }
  bool binary(Json::binary_t& /*bytes*/) { return Refuse("binary data"); }

  bool start_object(size_t /*members*/) { return Begin(JsonKind::kObject); }
  bool end_object() { return End(); }
  bool start_array(size_t /*elements*/) { return Begin(JsonKind::kList); }
  bool end_array() { return End(); }

  bool key(std::string& key) {
    if (!CheckLength(key)) return false;
    JsonPath::Level& level = path_.levels_.back();
    level.key = key;
    if (keys_.back().insert(std::move(key)).second) return true;
    return Refuse(absl::StrCat("key ", Quoted(level.key), " appears twice in one object"));
  }

  bool parse_error(size_t position, const std::string& /*token*/, const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: what is wrong"
    absl::string_view what = error.what();
    const size_t colon = what.find(": ");
    if (colon != what.npos) what.remove_prefix(colon + 2);
    constexpr size_t kMostBytes = 200;
    return Refuse(absl::StrCat("not JSON at byte ", position, ": ",
                               absl::CHexEscape(what.substr(0, kMostBytes)),
                               what.size() > kMostBytes ? "..." : ""));
  }

  const absl::Status& status() const { return status_; }

 private:
  bool Refuse(absl::string_view why) {
    status_ = absl::InvalidArgumentError(why);
    return false;
  }

  bool Keep(absl::Status status) {
    status_ = std::move(status);
    return status_.ok();
  }

  bool CheckLength(const std::string& text) {
    if (static_cast<int64_t>(text.size()) <= limits_.string_bytes) return true;
    return Refuse(
        absl::StrCat("a string of more than ", limits_.string_bytes, " bytes at ", path_.Text()));
  }

  // Counts one more value and steps to its place.
  bool Count() {
    if (++values_ > limits_.values) {
      return Refuse(absl::StrCat("more than ", limits_.values, " values"));
    }
    if (!path_.levels_.empty() && !path_.levels_.back().is_object) ++path_.levels_.back().index;
    return true;
  }

  bool Take(const JsonScalar& value) {
    if (!Count()) return false;
    return skip_from_ > 0 || Keep(listener_->Scalar(path_, value));
  }

  bool Begin(JsonKind kind) {
    if (!Count()) return false;
    const int depth = path_.depth() + 1;
    if (depth > limits_.depth) {
      return Refuse(absl::StrCat("more than ", limits_.depth, " lists and objects in each other"));
    }
    if (skip_from_ == 0) {
      const auto answer = listener_->Begin(path_, kind);
      if (!answer.ok()) return Keep(answer.status());
      if (*answer == JsonListener::Answer::kSkip) skip_from_ = depth;
    }
    path_.levels_.emplace_back().is_object = kind == JsonKind::kObject;
    if (kind == JsonKind::kObject) keys_.emplace_back();
    return true;
  }

  bool End() {
    const int depth = path_.depth();
    if (path_.levels_.back().is_object) keys_.pop_back();
    path_.levels_.pop_back();
    if (skip_from_ == 0) return Keep(listener_->End(path_));
    if (skip_from_ == depth) skip_from_ = 0;
    return true;
  }

  const JsonLimits& limits_;
  JsonListener* listener_;
  JsonPath path_;
  std::vector<absl::flat_hash_set<std::string>> keys_;  // of the objects that are open
  int64_t values_ = 0;
  int skip_from_ = 0;  // the depth of what is skipped, if anything is
  absl::Status status_;
};

absl::Status ReadJson(absl::string_view text, const JsonLimits& limits, JsonListener* listener) {
  if (static_cast<int64_t>(text.size()) > limits.text_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(text.size(), " bytes of JSON are more than the limit of ", limits.text_bytes));
  }
  // The parser takes a NUL byte for the end of the text.
  const size_t nul = text.find('\0');
  if (nul != text.npos) {
    return absl::InvalidArgumentError(absl::StrCat("not JSON at byte ", nul, ": a NUL byte"));
  }
  JsonReading reading(limits, listener);
  const bool done = Json::sax_parse(text.begin(), text.end(), &reading);
  if (!done && reading.status().ok()) return absl::InvalidArgumentError("not JSON");
  return reading.status();
}

absl::StatusOr<std::string> JsonQuoted(absl::string_view text) {
  if (!IsUtf8(text)) {
    return absl::InvalidArgumentError(absl::StrCat("text ", Quoted(text), " is not UTF-8"));
  }
  return Json(std::string(text)).dump();
}

absl::Status WrongKind(const JsonPath& path, absl::string_view expected, JsonKind found) {
  return absl::InvalidArgumentError(
      absl::StrCat(path.Text(), " must be ", expected, ", not ", KindText(found)));
}

absl::StatusOr<int64_t> IntegerAt(const JsonPath& path, const JsonScalar& value, int64_t low) {
  if (value.kind != JsonKind::kInteger) return WrongKind(path, "an integer", value.kind);
  if (value.integer < low) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.Text(), " must be at least ", low, ", not ", value.integer));
  }
  return value.integer;
}

absl::StatusOr<std::string> StringAt(const JsonPath& path, const JsonScalar& value) {
  if (value.kind != JsonKind::kString) return WrongKind(path, "a string", value.kind);
  return std::string(value.text);
}

}  // namespace sluice
