// Visits all elements of all tensors.
#include "plan/crossings.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "oracle/brute_layout.h"
#include "plan/plan.h"
#include "plan/values.h"

namespace sluice::oracle {
namespace {

// Who has one element, and who needs it.
struct Element {
  std::map<int, int64_t> contribution_of;                     // by rank that holds one
  std::map<std::vector<int64_t>, std::vector<int>> replicas;  // the ranks of each
  std::set<int> targets;
};

// Which contribution a rank holds: its coordinates along the Partial dimensions.
int64_t ContributionOf(const Layout& layout, int rank, int64_t* count) {
  const std::vector<int64_t> coordinates = *Coordinates(layout.mesh, rank);
  int64_t number = 0;
  *count = 1;
  for (size_t m = 0; m < coordinates.size(); ++m) {
    if (layout.placements[m].kind != Placement::Kind::kPartial) continue;
    number = number * layout.mesh.sizes()[m] + coordinates[m];
    *count *= layout.mesh.sizes()[m];
  }
  return number;
}

// Which replica: its coordinates along the others.
std::vector<int64_t> ReplicaOf(const Layout& layout, int rank) {
  std::vector<int64_t> coordinates = *Coordinates(layout.mesh, rank);
  for (size_t m = 0; m < coordinates.size(); ++m) {
    if (layout.placements[m].kind == Placement::Kind::kPartial) coordinates[m] = 0;
  }
  return coordinates;
}

std::map<int64_t, Element> ElementsOf(const TensorTransfer& tensor, int64_t* contributions) {
  std::map<int64_t, Element> elements;
  for (const int rank : tensor.src.mesh.ranks()) {
    const int64_t number = ContributionOf(tensor.src, rank, contributions);
    for (int64_t e : FlatIndices(*OwnedLists(tensor.src, tensor.shape, rank), tensor.shape)) {
      elements[e].contribution_of[rank] = number;
      elements[e].replicas[ReplicaOf(tensor.src, rank)].push_back(rank);
    }
  }
  for (const int rank : tensor.dst.mesh.ranks()) {
    for (int64_t e : FlatIndices(*OwnedLists(tensor.dst, tensor.shape, rank), tensor.shape)) {
      elements[e].targets.insert(rank);
    }
  }
  return elements;
}

class Counter {
 public:
  explicit Counter(const Job& job) : job_(job) {
    least_.sent.resize(job.node_of_rank.size());
    least_.received.resize(job.node_of_rank.size());
  }

  void Visit(const Element& element, int64_t contributions, double wire, double src) {
    std::map<int, std::set<int64_t>> of_node;
    for (const auto& [rank, number] : element.contribution_of) of_node[Node(rank)].insert(number);
    const auto all = [&](int node) {
      return of_node.contains(node) && of_node[node].size() == static_cast<size_t>(contributions);
    };
    std::set<int> lacking;
    for (const int rank : element.targets) {
      if (!all(Node(rank))) lacking.insert(Node(rank));
    }
    if (lacking.empty()) return;
    std::vector<int> having;
    for (const auto& [rank, number] : element.contribution_of) {
      if (all(Node(rank))) having.push_back(rank);
    }
    if (!having.empty()) {
      for (const int node : lacking) Cross(having, node, wire);
    } else {
      Combine(element, of_node, lacking, contributions, wire, src);
    }
  }

  LeastCrossings least() const { return least_; }

 private:
  int Node(int rank) const { return job_.node_of_rank[static_cast<size_t>(rank)]; }

  std::vector<int> RanksOf(int node) const {
    std::vector<int> ranks;
    for (int rank = 0; rank < job_.ranks(); ++rank) {
      if (Node(rank) == node) ranks.push_back(rank);
    }
    return ranks;
  }

  void Cross(const std::vector<int>& from, int node, double bytes) {
    least_.node_bytes += bytes;
    for (const int rank : from) {
      least_.sent[static_cast<size_t>(rank)] += bytes / static_cast<double>(from.size());
    }
    const std::vector<int> to = RanksOf(node);
    for (const int rank : to) {
      least_.received[static_cast<size_t>(rank)] += bytes / static_cast<double>(to.size());
    }
  }

  // Whom `node` asks so that it has all contributions.
  static std::vector<int> Asked(int node, std::map<int, std::set<int64_t>> of_node,
                                int64_t contributions) {
    std::set<int64_t> have = of_node[node];
    std::vector<int> asked;
    while (have.size() < static_cast<size_t>(contributions)) {
      int best = -1;
      size_t most = have.size();
      for (const auto& [other, numbers] : of_node) {
        std::set<int64_t> with = have;
        with.insert(numbers.begin(), numbers.end());
        if (with.size() > most) {
          best = other;
          most = with.size();
        }
      }
      asked.push_back(best);
      have.insert(of_node[best].begin(), of_node[best].end());
    }
    return asked;
  }

  void Combine(const Element& element, const std::map<int, std::set<int64_t>>& of_node,
               const std::set<int>& lacking, int64_t contributions, double wire, double src) {
    std::set<int> nodes = lacking;
    for (const auto& [node, numbers] : of_node) nodes.insert(node);
    int best = -1;
    double least_bytes = 0;
    for (const int node : nodes) {
      const double others = static_cast<double>(lacking.size() - lacking.count(node));
      const double bytes =
          static_cast<double>(Asked(node, of_node, contributions).size()) * src + others * wire;
      if (best >= 0 && bytes >= least_bytes) continue;
      best = node;
      least_bytes = bytes;
    }
    const auto holders = [&](int node) {
      std::vector<int> ranks;
      for (const auto& [rank, number] : element.contribution_of) {
        if (Node(rank) == node) ranks.push_back(rank);
      }
      return ranks.empty() ? RanksOf(node) : ranks;
    };
    for (const int node : Asked(best, of_node, contributions)) Cross(holders(node), best, src);
    for (const int node : lacking) {
      if (node != best) Cross(holders(best), node, wire);
    }
  }

  const Job& job_;
  LeastCrossings least_;
};

}  // namespace

LeastCrossings CountCrossings(const Job& job) {
  Counter counter(job);
  for (const TensorTransfer& tensor : job.spec.tensors) {
    int64_t contributions = 1;
    for (const auto& [index, element] : ElementsOf(tensor, &contributions)) {
      counter.Visit(element, contributions, static_cast<double>(DTypeBytes(WireDType(tensor))),
                    static_cast<double>(DTypeBytes(tensor.src_dtype)));
    }
  }
  return counter.least();
}

namespace {

// How often an element passes between ranks before it is reduced, and after that.
struct Messages {
  int64_t contributions = 0;
  int64_t results = 0;
};

// What crosses when contribution `owner` of a row takes the others', which lie on `nodes`. The
// stretches of one node before its own come as one sum each, which passes from one to the next.
struct Gathering {
  int64_t crossings = 0;
  int steps = 1;
};
Gathering GatheringTo(size_t owner, const std::vector<int>& nodes) {
  Gathering made;
  std::vector<int> loose;  // nodes of contributions that cross alone
  int sum = -1;            // the node that has the sum of what comes before
  const auto bring = [&](int node) {
    made.crossings += sum >= 0 && sum != node ? 1 : 0;
    for (const int from : loose) made.crossings += from != node ? 1 : 0;
    loose.clear();
    sum = node;
  };
  for (size_t i = 0; i < nodes.size();) {
    size_t end = i + 1;
    while (end < nodes.size() && nodes[end] == nodes[i]) ++end;
    if (i <= owner && owner < end) {
      bring(nodes[i]);
      for (size_t after = end; after < nodes.size(); ++after) {
        made.crossings += nodes[after] != nodes[i] ? 1 : 0;
      }
      return made;
    }
    if (end == i + 1) {
      loose.push_back(nodes[i]);
    } else {
      bring(nodes[i]);
      ++made.steps;
    }
    i = end;
  }
  return made;
}

constexpr int64_t kWorthWaitingBytes = 64 << 10;

// Whether a rank that needs an element reduces it, where some that do contribute. As many elements,
// `alike` ones, have the same holders and targets.
bool ReducedWhereNeeded(const Job& job, const TensorTransfer& tensor, const Element& element,
                        int64_t alike) {
  if (!job.relay || PartialLevels(tensor) > 1) return true;
  const auto node = [&job](int rank) { return job.node_of_rank[static_cast<size_t>(rank)]; };
  std::set<int> target_nodes;
  for (const int rank : element.targets) target_nodes.insert(node(rank));
  const int64_t src = DTypeBytes(tensor.src_dtype), wire = DTypeBytes(WireDType(tensor));
  // Bytes, and whether the result is sent to all nodes, as of equals those are the best that have a
  // target; then the ranks.
  std::map<std::pair<int64_t, bool>, std::vector<int>> owners;
  int steps = 1;
  for (const auto& [coordinates, ranks] : element.replicas) {
    std::vector<int> nodes;
    for (const int rank : ranks) nodes.push_back(node(rank));
    for (size_t i = 0; i < ranks.size(); ++i) {
      const bool there = target_nodes.contains(nodes[i]);
      const auto results = static_cast<int64_t>(target_nodes.size() - (there ? 1 : 0));
      const Gathering gathering = GatheringTo(i, nodes);
      const std::pair key(gathering.crossings * src + results * wire, !there);
      if (owners.empty() || key < owners.begin()->first) steps = 1;
      if (owners.empty() || key <= owners.begin()->first) {
        steps = std::max(steps, gathering.steps);
      }
      owners[key].push_back(ranks[i]);
    }
  }
  const std::vector<int>& best = owners.begin()->second;
  const bool needed = std::any_of(best.begin(), best.end(),
                                  [&](int rank) { return element.targets.contains(rank); });
  if (needed) return true;
  return steps + 1 > 2 && alike * src < kWorthWaitingBytes;
}

Messages CountMessages(const Job& job, const TensorTransfer& tensor, const Element& element,
                       int64_t contributions, int64_t alike) {
  const auto node = [&job](int rank) { return job.node_of_rank[static_cast<size_t>(rank)]; };
  std::set<int> reducing;  // nodes
  for (const auto& [coordinates, ranks] : element.replicas) {
    const int first = node(ranks[0]);
    const auto there = [&](int rank) { return node(rank) == first; };
    if (!std::all_of(ranks.begin(), ranks.end(), there)) continue;
    const auto& sources = tensor.src.mesh.ranks();
    const auto& targets = tensor.dst.mesh.ranks();
    if (std::count_if(targets.begin(), targets.end(), there) >=
        std::count_if(sources.begin(), sources.end(), there)) {
      reducing.insert(first);
    }
  }
  std::set<int> by_targets;
  bool by_holders = false;
  for (const int rank : element.targets) {
    if (element.contribution_of.contains(rank)) {
      const bool here = ReducedWhereNeeded(job, tensor, element, alike);
      return {contributions - 1, static_cast<int64_t>(element.targets.size()) - (here ? 1 : 0)};
    }
    if (reducing.contains(node(rank))) {
      by_targets.insert(node(rank));
    } else {
      by_holders = true;
    }
  }
  const auto nodes = static_cast<int64_t>(by_targets.size());
  return {nodes * contributions + (by_holders ? contributions - 1 : 0),
          static_cast<int64_t>(element.targets.size()) - nodes};
}

}  // namespace

Arrivals CountArrivals(const Job& job) {
  Arrivals arrivals;
  arrivals.stay.resize(job.node_of_rank.size());
  for (const TensorTransfer& tensor : job.spec.tensors) {
    int64_t contributions = 1;
    const std::map<int64_t, Element> elements = ElementsOf(tensor, &contributions);
    const auto kind = [](const Element& element) {
      return std::pair(element.contribution_of, element.targets);
    };
    std::map<std::pair<std::map<int, int64_t>, std::set<int>>, int64_t> alike;
    for (const auto& [index, element] : elements) ++alike[kind(element)];
    for (const auto& [index, element] : elements) {
      for (const int rank : element.targets) {
        if (element.contribution_of.contains(rank)) continue;
        arrivals.stay[static_cast<size_t>(rank)] +=
            static_cast<double>(DTypeBytes(WireDType(tensor)));
      }
      const Messages messages =
          CountMessages(job, tensor, element, contributions, alike.at(kind(element)));
      arrivals.contributions +=
          static_cast<double>(messages.contributions * DTypeBytes(tensor.src_dtype));
      arrivals.results += static_cast<double>(messages.results * DTypeBytes(WireDType(tensor)));
    }
  }
  return arrivals;
}

}  // namespace sluice::oracle
