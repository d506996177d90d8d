// Fields as a payload: "disagreement;ranks 0-2,5;epoch 12;tensor model.norm.weight", of which any
// part may be missing. The name is last, and may have anything in it.
#include "tensor/error_text.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

constexpr absl::string_view kPayload = "sluice.fields";
// Limits a tensor's name, as messages to other ranks have 512 bytes.
constexpr size_t kTensorBytesShown = 240;
// No bytes of another rank's make more than these.
constexpr int kRanksMax = 1 << 16;

// How many ranks, from the one at `first` on, are neighbours.
size_t RunLength(absl::Span<const int> ranks, size_t first) {
  size_t last = first;
  while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
  return last + 1 - first;
}

// How many ranks are in the first `most_runs` runs of neighbours.
size_t RanksShown(absl::Span<const int> ranks, size_t most_runs) {
  size_t shown = 0;
  for (size_t runs = 0; runs < most_runs && shown < ranks.size(); ++runs) {
    shown += RunLength(ranks, shown);
  }
  return shown;
}

bool TakeRanks(absl::string_view text, std::vector<int>* ranks) {
  for (const absl::string_view run : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::vector<absl::string_view> ends = absl::StrSplit(run, absl::MaxSplits('-', 1));
    int first = 0, last = 0;
    if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) ||
        first < 0 || last < first || last - first >= kRanksMax - static_cast<int>(ranks->size())) {
      return false;
    }
    for (int rank = first; rank <= last; ++rank) ranks->push_back(rank);
  }
  return true;
}

// Takes `key` and the value behind it off the beginning of `bytes`. Returns the value.
absl::optional<absl::string_view> Take(absl::string_view key, absl::string_view* bytes) {
  if (!absl::ConsumePrefix(bytes, key)) return absl::nullopt;
  const absl::string_view value = bytes->substr(0, bytes->find(';'));
  bytes->remove_prefix(std::min(value.size() + 1, bytes->size()));
  return value;
}

bool TakeFields(absl::string_view bytes, ErrorFields* fields) {
  fields->is_disagreement = Take("disagreement", &bytes).has_value();
  if (const auto ranks = Take("ranks ", &bytes); ranks && !TakeRanks(*ranks, &fields->ranks)) {
    return false;
  }
  int64_t epoch = 0;
  if (const auto number = Take("epoch ", &bytes)) {
    if (!absl::SimpleAtoi(*number, &epoch)) return false;
    fields->epoch = epoch;
  }
  if (absl::ConsumePrefix(&bytes, "tensor ")) {
    fields->tensor = std::string(std::exchange(bytes, ""));
  }
  return bytes.empty();
}

}  // namespace

absl::Status ErrorText::ToStatus(absl::StatusCode code) const {
  return WithFields(absl::Status(code, text_), fields_);
}

void ErrorText::AddPart(const ErrorText& part) {
  text_ += part.text_;
  AddFields(part.fields_);
}

void ErrorText::AddPart(const absl::Status& part) {
  absl::StrAppend(&text_, part.message());
  AddFields(FieldsOf(part));
}

void ErrorText::AddFields(const ErrorFields& fields) {
  const size_t known = fields_.ranks.size();
  fields_.ranks.insert(fields_.ranks.end(), fields.ranks.begin(), fields.ranks.end());
  std::inplace_merge(fields_.ranks.begin(), fields_.ranks.begin() + static_cast<ptrdiff_t>(known),
                     fields_.ranks.end());
  fields_.ranks.erase(std::unique(fields_.ranks.begin(), fields_.ranks.end()), fields_.ranks.end());
  if (!fields_.tensor) fields_.tensor = fields.tensor;
  if (!fields_.epoch) fields_.epoch = fields.epoch;
  fields_.is_disagreement = fields_.is_disagreement || fields.is_disagreement;
}

ErrorText QuotedName(absl::string_view name, size_t most_bytes) {
  ErrorText text(InSingleQuotes(name, most_bytes));
  text.fields()->tensor = std::string(name.substr(0, kTensorBytesShown));
  return text;
}

ErrorText TensorInWords(absl::string_view name) {
  return ErrorText("tensor ", QuotedName(name, kTensorBytesShown));
}

ErrorText TensorInWords(size_t number, absl::string_view name) {
  return ErrorText("tensor ", number, " ", QuotedName(name, kTensorBytesShown));
}

ErrorText TensorInWords(absl::string_view name, absl::string_view quoted) {
  ErrorText text("tensor ", quoted);
  text.fields()->tensor = std::string(name.substr(0, kTensorBytesShown));
  return text;
}

ErrorText RankInWords(int64_t rank, absl::string_view word) {
  ErrorText text(word, rank);
  // A rank below 0 is one that a caller has made up.
  if (rank >= 0) text.fields()->ranks.push_back(static_cast<int>(rank));
  return text;
}

ErrorText NamedRanks(absl::Span<const int> ranks, const RunStyle& style) {
  ErrorText text(ranks.size() == 1 ? "rank " : "ranks ", RanksText(ranks, style));
  const absl::Span<const int> shown = ranks.subspan(0, RanksShown(ranks, style.most_runs));
  text.fields()->ranks.assign(shown.begin(), shown.end());
  return text;
}

std::string RanksText(absl::Span<const int> ranks, const RunStyle& style) {
  std::string text;
  const absl::string_view between = style.is_compact ? "," : ", ";
  const size_t shown = RanksShown(ranks, style.most_runs);
  for (size_t i = 0; i < shown;) {
    const size_t count = RunLength(ranks, i);
    const bool is_pair = count == 2 && !style.is_compact;
    absl::StrAppend(&text, i == 0 ? "" : between, ranks[i]);
    if (count > 1) absl::StrAppend(&text, is_pair ? between : "-", ranks[i + count - 1]);
    i += count;
  }
  if (shown < ranks.size()) absl::StrAppend(&text, " and ", ranks.size() - shown, " more");
  return text;
}

std::string FieldBytes(const ErrorFields& fields, size_t most_bytes) {
  std::string bytes = fields.is_disagreement ? "disagreement;" : "";
  absl::string_view before = "ranks ";
  for (size_t i = 0; i < fields.ranks.size();) {
    const size_t count = RunLength(fields.ranks, i);
    const std::string last = count > 1 ? absl::StrCat("-", fields.ranks[i + count - 1]) : "";
    const std::string run = absl::StrCat(std::exchange(before, ","), fields.ranks[i], last);
    if (bytes.size() + run.size() > most_bytes / 2) break;
    bytes += run;
    i += count;
  }
  if (before == ",") bytes += ';';
  if (fields.epoch) absl::StrAppend(&bytes, "epoch ", *fields.epoch, ";");
  if (fields.tensor) {
    absl::StrAppend(&bytes, "tensor ", *fields.tensor);
  } else if (!bytes.empty()) {
    bytes.pop_back();
  }
  return bytes.substr(0, most_bytes);
}

absl::Status WithFieldBytes(absl::Status status, absl::string_view bytes) {
  ErrorFields fields;
  return TakeFields(bytes, &fields) ? WithFields(std::move(status), fields) : status;
}

absl::Status WithFields(absl::Status status, const ErrorFields& fields) {
  if (fields != ErrorFields()) status.SetPayload(kPayload, absl::Cord(FieldBytes(fields)));
  return status;
}

ErrorFields FieldsOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  ErrorFields fields;
  if (payload && !TakeFields(std::string(*payload), &fields)) return {};
  return fields;
}

}  // namespace sluice
