// A reader of the few Python literals that numpy writes.
#include "storage/format/npy_dict.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "sluice/tensor.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

// Each method reads what its name says after blanks, or notes the first thing that is wrong and
// returns false.
class DictReader {
 public:
  explicit DictReader(absl::string_view text) : all_(text), rest_(text) {}

  bool Read(NpyDict* dict) {
    if (!Want('{')) return false;
    while (!Take('}')) {
      if (!Entry(dict)) return false;
      if (!Take(',') && Peek() != '}') return Wrong("',' or '}'");
    }
    if (!has_descr_) return Refuse("there is no 'descr'");
    if (!has_order_) return Refuse("there is no 'fortran_order'");
    if (!has_shape_) return Refuse("there is no 'shape'");
    Blanks();
    return rest_.empty() || Wrong("the end");
  }

  const absl::Status& status() const { return status_; }

 private:
  bool Refuse(absl::string_view why) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(why);
    return false;
  }

  bool Wrong(absl::string_view expected) {
    return Refuse(absl::StrCat("at byte ", all_.size() - rest_.size(), " there should be ",
                               expected, ", not ",
                               rest_.empty() ? "the end" : Quoted(rest_.substr(0, 16))));
  }

  void Blanks() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }

  char Peek() {
    Blanks();
    return rest_.empty() ? '\0' : rest_.front();
  }

  bool Take(char c) {
    if (rest_.empty() || Peek() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool Want(char c) { return Take(c) || Wrong(absl::StrCat("'", std::string(1, c), "'")); }

  bool String(std::string* text) {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return Wrong("a string");
    const size_t end = rest_.find_first_of("'\"\\\n", 1);
    if (end == rest_.npos || rest_[end] != quote) return Wrong("a plain string");
    *text = std::string(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return true;
  }

  bool Bool(bool* value) {
    Blanks();
    for (const bool is_true : {false, true}) {
      const absl::string_view word = is_true ? "True" : "False";
      if (!absl::StartsWith(rest_, word)) continue;
      rest_.remove_prefix(word.size());
      *value = is_true;
      return true;
    }
    return Wrong("True or False");
  }

  bool Size(int64_t* value) {
    Blanks();
    size_t digits = rest_.find_first_not_of("0123456789");
    if (digits == rest_.npos) digits = rest_.size();
    if (digits == 0) return Wrong("a size");
    if (!absl::SimpleAtoi(rest_.substr(0, digits), value)) {
      return Refuse("'shape' has a size of more than 63 bits");
    }
    rest_.remove_prefix(digits);
    // Python 2 wrote long integers so.
    if (absl::StartsWith(rest_, "L")) rest_.remove_prefix(1);
    return true;
  }

  bool Shape(std::vector<int64_t>* shape) {
    if (!Want('(')) return false;
    bool has_comma = true;
    while (!Take(')')) {
      if (!has_comma) return Wrong("',' or ')'");
      if (shape->size() == kMaxTensorDims) {
        return Refuse(absl::StrCat("'shape' has more than ", kMaxTensorDims, " dimensions"));
      }
      if (!Size(&shape->emplace_back())) return false;
      has_comma = Take(',');
    }
    // (3) is a number in parentheses.
    return shape->size() != 1 || has_comma || Refuse("'shape' is not a tuple");
  }

  bool Once(absl::string_view key, bool* has) {
    if (*has) return Refuse(absl::StrCat("'", key, "' is there twice"));
    return *has = true;
  }

  bool Entry(NpyDict* dict) {
    std::string key;
    if (!String(&key) || !Want(':')) return false;
    if (key == "descr") {
      if (!Once(key, &has_descr_)) return false;
      if (Peek() == '[') return Refuse("elements are structures, which are not supported");
      return String(&dict->descr);
    }
    if (key == "fortran_order") return Once(key, &has_order_) && Bool(&dict->fortran_order);
    if (key == "shape") return Once(key, &has_shape_) && Shape(&dict->shape);
    return Refuse(absl::StrCat("unknown key ", Quoted(key)));
  }

  const absl::string_view all_;
  absl::string_view rest_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<NpyDict> ParseNpyDict(absl::string_view text) {
  NpyDict dict;
  DictReader reader(text);
  if (!reader.Read(&dict)) return reader.status();
  return dict;
}

}  // namespace sluice
