// Visits all elements of all tensors.
#include "plan/crossings.h"

#include <map>
#include <set>

#include "oracle/brute_layout.h"
#include "plan/plan.h"

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

}  // namespace sluice::oracle
