// Typed access to JSON, with errors that say where.
#include "workload/json_input.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <limits>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "sluice/status.h"
#include "tensor/quoted.h"
#include "tensor/utf8.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

// More than any description of tensors has, and little enough for what walks a value by recursion.
constexpr int kDepthMax = 64;

// Thrown out of the parser, which has no other way to be stopped.
struct TooDeep {};

// Watches the parser's events for an object that has one key twice, and for depth.
class EventWatch {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
        keys_.emplace_back();
        if (depth >= kDepthMax) throw TooDeep();
        break;
      case Json::parse_event_t::array_start:
        if (depth >= kDepthMax) throw TooDeep();
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

// The beginning of JSON text, whole characters of it.
std::string Excerpt(const std::string& text) {
  constexpr size_t kMostBytes = 60;
  if (text.size() <= kMostBytes) return text;
  size_t bytes = kMostBytes - 3;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return absl::StrCat(text.substr(0, bytes), "...");
}

bool IsInteger(const Json& value) {
  if (value.is_number_unsigned()) {
    return value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  }
  return value.is_number_integer();
}

template <typename IsRight>
bool IsListOf(const Json& value, IsRight is_right) {
  return value.is_array() && std::all_of(value.begin(), value.end(), is_right);
}

// The member `key`, which must be `expected`.
template <typename IsRight>
absl::StatusOr<const Json*> Find(const Json& object, const char* key, absl::string_view expected,
                                 IsRight is_right) {
  const auto found = object.find(key);
  if (found == object.end()) {
    return absl::InvalidArgumentError(absl::StrCat("key \"", key, "\" is missing"));
  }
  if (is_right(*found)) return &*found;
  return absl::InvalidArgumentError(
      absl::StrCat("key \"", key, "\" must be ", expected, ", not ", Excerpt(found->dump())));
}

template <typename T>
absl::Status Take(const absl::StatusOr<const Json*>& found, T* value) {
  if (found.ok()) (*found)->get_to(*value);
  return found.status();
}

bool IsString(const Json& value) { return value.is_string(); }

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    const int error = errno;
    const std::string message =
        absl::StrCat("cannot open ", path, ": ", std::generic_category().message(error));
    return error == ENOENT ? absl::NotFoundError(message) : absl::FailedPreconditionError(message);
  }
  std::string content;
  std::array<char, 1 << 16> block;
  while (file) {
    file.read(block.data(), block.size());
    content.append(block.data(), static_cast<size_t>(file.gcount()));
    if (static_cast<int64_t>(content.size()) > kFileBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, " has more than ", BytesName(kFileBytesMax)));
    }
  }
  if (file.bad()) return absl::FailedPreconditionError(absl::StrCat("cannot read ", path));
  return content;
}

absl::StatusOr<Json> ParseJson(absl::string_view text) {
  EventWatch watch;
  try {
    Json parsed = Json::parse(text.begin(), text.end(), std::ref(watch));
    if (!watch.duplicate().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("key ", Quoted(watch.duplicate()), " appears twice in one object"));
    }
    return parsed;
  } catch (const TooDeep&) {
    return absl::InvalidArgumentError(
        absl::StrCat("more than ", kDepthMax, " lists and objects in each other"));
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not JSON: ", error.what()));
  }
}

absl::Status Read(const Json& object, const char* key, int64_t* value) {
  return Take(Find(object, key, "a 64-bit integer", IsInteger), value);
}

absl::Status Read(const Json& object, const char* key, std::string* value) {
  return Take(Find(object, key, "a string", IsString), value);
}

absl::Status Read(const Json& object, const char* key, std::vector<int64_t>* value) {
  const auto is_right = [](const Json& list) { return IsListOf(list, IsInteger); };
  return Take(Find(object, key, "a list of 64-bit integers", is_right), value);
}

absl::Status Read(const Json& object, const char* key, std::vector<std::string>* value) {
  const auto is_right = [](const Json& list) { return IsListOf(list, IsString); };
  return Take(Find(object, key, "a list of strings", is_right), value);
}

absl::Status Read(const Json& object, const char* key, const Json** value) {
  const auto is_right = [](const Json& found) { return found.is_object(); };
  const auto found = Find(object, key, "an object", is_right);
  if (found.ok()) *value = *found;
  return found.status();
}

absl::Status Read(const Json& object, const char* key, DType* value) {
  std::string name;
  SLUICE_RETURN_IF_ERROR(Read(object, key, &name));
  const auto dtype = ParseDType(name);
  if (dtype.ok()) *value = *dtype;
  return Prefixed(absl::StrCat("key \"", key, "\""), dtype.status());
}

void NoteUnknownKeys(const Json& object, std::initializer_list<absl::string_view> known,
                     absl::string_view where, std::vector<std::string>* notes) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      notes->push_back(absl::StrCat(where, ": unknown key ", Quoted(key), " is ignored"));
    }
  }
}

std::string Readable(absl::string_view text) {
  constexpr size_t kMostBytes = 1000;
  const bool is_text = IsUtf8(text);
  std::string readable;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (readable.size() >= kMostBytes && (!is_text || (c & 0xC0) != 0x80)) return readable + "...";
    if (c < 0x20 || c == 0x7f || (c >= 0x80 && !is_text)) {
      absl::StrAppend(&readable, "\\x", absl::Hex(c, absl::kZeroPad2));
    } else {
      readable.push_back(text[i]);
    }
  }
  return readable;
}

absl::Status Readable(const absl::Status& status) {
  return absl::Status(status.code(), Readable(status.message()));
}

absl::Status Prefixed(absl::string_view where, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

}  // namespace sluice::bench
