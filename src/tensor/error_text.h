// Texts of errors. They keep what they name as fields, which an error made of them has, too. So who
// names a tensor or a rank here does so for people and for programs at once.
#ifndef SLUICE_SRC_TENSOR_ERROR_TEXT_H_
#define SLUICE_SRC_TENSOR_ERROR_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "sluice/error.h"
#include "sluice/status.h"  // for those who hand errors on

namespace sluice {

class ErrorText {
 public:
  ErrorText() = default;
  // Joins what StrCat takes, other such texts, and errors, which stand for their messages.
  template <typename... Parts>
  explicit ErrorText(const Parts&... parts) {
    Add(parts...);
  }

  template <typename... Parts>
  void Add(const Parts&... parts) {
    (AddPart(parts), ...);
  }

  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  ErrorFields* fields() { return &fields_; }

  // `code` is not OK.
  absl::Status ToStatus(absl::StatusCode code) const;

 private:
  void AddPart(const absl::AlphaNum& part) { absl::StrAppend(&text_, part); }
  void AddPart(const ErrorText& part);
  void AddPart(const absl::Status& part);
  void AddFields(const ErrorFields& fields);

  std::string text_;
  ErrorFields fields_;
};

// An error whose text is of these parts, with the fields of all of them.
template <typename... Parts>
[[gnu::cold]] absl::Status MakeError(absl::StatusCode code, const Parts&... parts) {
  return ErrorText(parts...).ToStatus(code);
}

// `status` with these parts and ": " before its text, and with their fields. OK stays OK.
template <typename... Parts>
absl::Status Annotate(const absl::Status& status, const Parts&... parts) {
  return status.ok() ? status : MakeError(status.code(), parts..., ": ", status);
}
template <typename T, typename... Parts>
absl::StatusOr<T> Annotate(absl::StatusOr<T> result, const Parts&... parts) {
  if (result.ok()) return result;
  return Annotate(result.status(), parts...);
}

// FailedPrecondition: ranks call different things, or call them with different values.
template <typename... Parts>
[[gnu::cold]] absl::Status DisagreementError(const Parts&... parts) {
  ErrorText text(parts...);
  text.fields()->is_disagreement = true;
  return text.ToStatus(absl::StatusCode::kFailedPrecondition);
}

// ---- Tensors.

// "'model.norm.weight'"; the rest of a long name is left out. Quotes, and bytes that are no text,
// show as escapes, so that nothing of the name reads like the message.
ErrorText QuotedName(absl::string_view name, size_t most_bytes = 60);

// "tensor 'model.norm.weight'", "tensor 3 'model.norm.weight'"; all but very long names are whole.
ErrorText TensorInWords(absl::string_view name);
ErrorText TensorInWords(size_t number, absl::string_view name);
// "tensor " and `quoted`, for formats that quote in their own way.
ErrorText TensorInWords(absl::string_view name, absl::string_view quoted);

// ---- Ranks.

// "rank 3", or the number behind another word.
ErrorText RankInWords(int64_t rank, absl::string_view word = "rank ");
// How runs of neighbours are written.
struct RunStyle {
  size_t most_runs = SIZE_MAX;  // of later ones the ranks are only counted: "and 7 more"
  bool is_compact = false;      // "0-1,5", as on a command line; otherwise "0, 1, 5"
};
inline constexpr RunStyle kCompactRuns = {SIZE_MAX, true};
// "rank 3", "ranks 0-2, 5" of ascending ranks. The fields lack those that are only counted.
ErrorText NamedRanks(absl::Span<const int> ranks, const RunStyle& style = {});
// The same without "ranks ", as a text alone. `ranks` may be in any order.
std::string RanksText(absl::Span<const int> ranks, const RunStyle& style = {});

// ---- Fields as bytes.

// At most `most_bytes`, which are 64 at least: the last ranks and the end of a name are left out.
std::string FieldBytes(const ErrorFields& fields, size_t most_bytes = SIZE_MAX);
// The error with the fields of these bytes. Bytes that are none leave it as it is.
absl::Status WithFieldBytes(absl::Status status, absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_SRC_TENSOR_ERROR_TEXT_H_
