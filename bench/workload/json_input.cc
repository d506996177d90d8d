// Typed access to JSON, with errors that say where.
#include "workload/json_input.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace sluice::bench {
namespace {

// Watches the parser's events for an object that has one key twice.
class DuplicateKeyFinder {
 public:
  bool operator()(int /*depth*/, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
        keys_.emplace_back();
        break;
      case Json::parse_event_t::object_end:
        keys_.pop_back();
        break;
      case Json::parse_event_t::key: {
        const auto& key = parsed.get_ref<const std::string&>();
        if (!keys_.back().insert(key).second && duplicate_.empty()) duplicate_ = key;
        break;
      }
      default:
        break;
    }
    return true;
  }

  const std::string& duplicate() const { return duplicate_; }

 private:
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
  std::string duplicate_;
};

absl::Status WrongType(const char* key, absl::string_view expected, const Json& found) {
  std::string text = found.dump();
  if (text.size() > 60) text = absl::StrCat(text.substr(0, 57), "...");
  return absl::InvalidArgumentError(
      absl::StrCat("key \"", key, "\" must be ", expected, ", not ", text));
}

absl::StatusOr<const Json*> Find(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) {
    return absl::InvalidArgumentError(absl::StrCat("key \"", key, "\" is missing"));
  }
  return &*found;
}

bool IsInteger(const Json& value) {
  if (value.is_number_unsigned()) {
    return value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  }
  return value.is_number_integer();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int error = errno;
    const std::string message =
        absl::StrCat("cannot open ", path, ": ", std::generic_category().message(error));
    return error == ENOENT ? absl::NotFoundError(message) : absl::UnavailableError(message);
  }
  std::ostringstream content;
  content << file.rdbuf();
  if (file.bad() || (content.fail() && file.peek() != std::ifstream::traits_type::eof())) {
    return absl::UnavailableError(absl::StrCat("cannot read ", path));
  }
  return content.str();
}

absl::StatusOr<Json> ParseJson(absl::string_view text) {
  DuplicateKeyFinder finder;
  try {
    Json parsed = Json::parse(text.begin(), text.end(), std::ref(finder));
    if (!finder.duplicate().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("key \"", finder.duplicate(), "\" appears twice in one object"));
    }
    return parsed;
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not JSON: ", error.what()));
  }
}

absl::StatusOr<int64_t> GetInteger(const Json& object, const char* key) {
  const auto value = Find(object, key);
  if (!value.ok()) return value.status();
  if (!IsInteger(**value)) return WrongType(key, "a 64-bit integer", **value);
  return (*value)->get<int64_t>();
}

absl::StatusOr<std::string> GetString(const Json& object, const char* key) {
  const auto value = Find(object, key);
  if (!value.ok()) return value.status();
  if (!(*value)->is_string()) return WrongType(key, "a string", **value);
  return (*value)->get<std::string>();
}

absl::StatusOr<std::vector<int64_t>> GetIntegers(const Json& object, const char* key) {
  const auto value = Find(object, key);
  if (!value.ok()) return value.status();
  const Json& list = **value;
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), IsInteger)) {
    return WrongType(key, "a list of 64-bit integers", list);
  }
  return list.get<std::vector<int64_t>>();
}

absl::StatusOr<std::vector<std::string>> GetStrings(const Json& object, const char* key) {
  const auto value = Find(object, key);
  if (!value.ok()) return value.status();
  const Json& list = **value;
  const auto is_string = [](const Json& item) { return item.is_string(); };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_string)) {
    return WrongType(key, "a list of strings", list);
  }
  return list.get<std::vector<std::string>>();
}

absl::StatusOr<const Json*> GetObject(const Json& object, const char* key) {
  const auto value = Find(object, key);
  if (!value.ok()) return value.status();
  if (!(*value)->is_object()) return WrongType(key, "an object", **value);
  return *value;
}

void NoteUnknownKeys(const Json& object, std::initializer_list<absl::string_view> known,
                     absl::string_view where, std::vector<std::string>* notes) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      notes->push_back(absl::StrCat(where, ": unknown key \"", key, "\" is ignored"));
    }
  }
}

absl::Status Prefixed(absl::string_view where, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

}  // namespace sluice::bench
