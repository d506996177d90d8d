// Numbers for nodes.
#include "transport/introduction.h"

#include <map>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

std::string NumberText(const absl::optional<int>& number) {
  return number ? absl::StrCat(*number) : "not set";
}

}  // namespace

std::vector<int> NodesOf(absl::Span<const Introduction> introductions) {
  std::map<std::tuple<std::string, std::string, uint64_t>, int> known;
  std::vector<int> nodes;
  for (const Introduction& introduction : introductions) {
    const int next = static_cast<int>(known.size());
    const ProcessName& process = introduction.process;
    const auto node = std::make_tuple(std::string(introduction.host.data()),
                                      std::string(process.boot.data()), process.pid_namespace);
    nodes.push_back(known.emplace(node, next).first->second);
  }
  return nodes;
}

absl::StatusOr<std::vector<int>> PlannedNodesOf(absl::Span<const Introduction> introductions) {
  const absl::optional<int> ranks_per_node = introductions[0].ranks_per_node;
  for (size_t rank = 0; rank < introductions.size(); ++rank) {
    const Introduction& introduction = introductions[rank];
    if (introduction.ranks_per_node.value_or(1) < 1) {
      return MakeError(absl::StatusCode::kInvalidArgument, "ranks_per_node is ",
                       *introduction.ranks_per_node, " on ", RankInWords(rank),
                       " but must be at least 1");
    }
    if (introduction.ranks_per_node != ranks_per_node) {
      return MakeError(absl::StatusCode::kInvalidArgument, "ranks_per_node is ",
                       NumberText(ranks_per_node), " on ", RankInWords(0), ", but ",
                       NumberText(introduction.ranks_per_node), " on ", RankInWords(rank));
    }
  }
  if (!ranks_per_node) return NodesOf(introductions);
  std::vector<int> nodes;
  for (size_t rank = 0; rank < introductions.size(); ++rank) {
    nodes.push_back(static_cast<int>(rank) / *ranks_per_node);
  }
  return nodes;
}

}  // namespace sluice
