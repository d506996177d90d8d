// Lines of at most 100 columns, and JSON.
#include "doctor/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace sluice::bench {
namespace {

constexpr size_t kColumns = 100;
constexpr size_t kIndent = 26;  // of values

// Appends `text` behind the first kIndent columns, which `head` has. Words that are too long stay
// whole.
void AppendWrapped(const std::string& head, const std::string& text, std::string* lines) {
  std::string line = head;
  bool is_empty = true;  // no word yet
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!is_empty && line.size() + 1 + word.size() > kColumns) {
      absl::StrAppend(lines, line, "\n");
      line = std::string(kIndent, ' ');
      is_empty = true;
    }
    absl::StrAppend(&line, is_empty ? "" : " ", word);
    is_empty = false;
  }
  absl::StrAppend(lines, line, "\n");
}

}  // namespace

std::string FindingsText(absl::Span<const Finding> findings) {
  std::string text;
  for (const Finding& finding : findings) {
    const std::string who = finding.ranks.empty() ? "" : absl::StrCat(finding.ranks, ": ");
    AppendWrapped(absl::StrFormat("%-8s %-16s ", StateName(finding.state),
                                  absl::StrReplaceAll(finding.check, {{"_", " "}})),
                  who + finding.value, &text);
    if (!finding.todo.empty()) {
      AppendWrapped(absl::StrFormat("%*s", kIndent, ""), "What to do: " + finding.todo, &text);
    }
  }
  const auto slow = std::count_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.state == State::kSlow;
  });
  const auto missing = std::count_if(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.state == State::kMissing;
  });
  if (slow + missing == 0) return text + "# Nothing to do: all is as fast as it can be here.\n";
  absl::StrAppend(&text, "# To do: ", slow + missing, " (", slow, " slow, ", missing,
                  " missing)\n");
  return text;
}

nlohmann::ordered_json FindingsJson(absl::Span<const Finding> findings) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    json.push_back({{"check", finding.check},
                    {"value", finding.value},
                    {"state", StateName(finding.state)},
                    {"todo", finding.todo},
                    {"ranks", finding.ranks}});
  }
  return json;
}

}  // namespace sluice::bench
