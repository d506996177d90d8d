// The order of the parts, and ranks that differ.
#include "doctor/findings.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tensor/error_text.h"

namespace sluice::bench {

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

int Problems(absl::Span<const Finding> findings) {
  return static_cast<int>(
      std::count_if(findings.begin(), findings.end(),
                    [](const Finding& finding) { return finding.state != State::kOk; }));
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

}  // namespace sluice::bench
