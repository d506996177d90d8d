// The order of the parts, and ranks that differ.
#include "doctor/findings.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tensor/error_text.h"

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

std::string StateName(State state) {
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kSlow:
      return "slow";
    default:
      return "missing";
  }
}

Findings Examine(const JobFacts& job) {
  Findings all;
  for (const auto part :
       {&ExamineStart, &ExamineWires, &ExamineGpus, &ExamineCpus, &ExamineLimits, &ExaminePorts}) {
    Findings some = part(job);
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  return all;
}

int Problems(absl::Span<const Finding> findings, bool missing_only) {
  return static_cast<int>(
      std::count_if(findings.begin(), findings.end(), [&](const Finding& finding) {
        return missing_only ? finding.state == State::kMissing : finding.state != State::kOk;
      }));
}

Findings ForRanks(const JobFacts& job, const std::function<Finding(const RankFacts&, int)>& judge) {
  Findings distinct;
  std::vector<std::vector<int>> ranks;
  for (size_t r = 0; r < job.ranks.size(); ++r) {
    const int rank = static_cast<int>(r);
    Finding finding = judge(job.ranks[r], rank);
    const auto same = [&](const Finding& other) {
      return other.value == finding.value && other.state == finding.state &&
             other.todo == finding.todo;
    };
    const auto found = std::find_if(distinct.begin(), distinct.end(), same);
    const auto place = static_cast<size_t>(found - distinct.begin());
    if (found == distinct.end()) {
      distinct.push_back(std::move(finding));
      ranks.emplace_back();
    }
    ranks[place].push_back(rank);
  }
  for (size_t i = 0; i < distinct.size() && distinct.size() > 1; ++i) {
    distinct[i].ranks = NamedRanks(ranks[i], kCompactRuns).text();
  }
  return distinct;
}

std::vector<std::vector<int>> RanksOfNodes(const JobFacts& job) {
  std::vector<std::vector<int>> nodes;
  for (size_t rank = 0; rank < job.node_of_rank.size(); ++rank) {
    const auto node = static_cast<size_t>(job.node_of_rank[rank]);
    if (nodes.size() <= node) nodes.resize(node + 1);
    nodes[node].push_back(static_cast<int>(rank));
  }
  return nodes;
}

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
