// Bounds by interval arithmetic: elements with equal holders and equal targets are counted at once.
#include "reshard/crossing_bounds.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "mesh/partition.h"
#include "plan/box_cells.h"
#include "plan/plan.h"
#include "plan/tensor_classes.h"
#include "tensor/check.h"

namespace sluice::bench {
namespace {

// What the ranks of a node hold of a part.
struct Holding {
  std::vector<int> ranks;
  std::set<int64_t> contributions;
};
using Holdings = std::map<int, Holding>;  // by node

// What takes an element from those who hold it to the nodes that need it.
struct Crossings {
  std::vector<int> givers;   // nodes that send what they reduced of it to the combining one
  int combining = -1;        // -1: nobody has to
  std::vector<int> targets;  // nodes that the element goes to
  int64_t bytes = 0;         // of one element
};

class Count {
 public:
  explicit Count(absl::Span<const int> node_of_rank)
      : node_of_rank_(node_of_rank), sent_(node_of_rank.size()) {
    for (size_t rank = 0; rank < node_of_rank.size(); ++rank) {
      ranks_of_node_[node_of_rank[rank]].push_back(static_cast<int>(rank));
    }
  }

  // Adds `times` tensors like this one.
  void Add(const TensorTransfer& tensor, int64_t times);
  CrossingBounds bounds() const;

 private:
  using NodesOfPart = absl::flat_hash_map<PartTuple, std::vector<int>>;
  struct Sizes {
    int64_t wire = 1;
    int64_t src = 1;
    int64_t contributions = 1;
  };

  int NodeOf(int rank) const { return node_of_rank_[static_cast<size_t>(rank)]; }
  NodesOfPart NodesOf(const Layout& layout, const Partition& partition) const;
  void AddCell(const Holdings& holdings, const std::vector<int>& needing, int64_t elements,
               const Sizes& sizes);
  void Send(absl::Span<const int> from, int to_node, int64_t bytes);
  const std::vector<int>& HoldersOf(const Holdings& holdings, int node) const;

  const absl::Span<const int> node_of_rank_;
  std::map<int, std::vector<int>> ranks_of_node_;
  int64_t node_bytes_ = 0;
  std::vector<double> sent_;        // by rank
  std::map<int, double> received_;  // by node
};

// Whom a combining node asks, beside itself.
std::vector<int> GiversTo(int combining, const Holdings& holdings, int64_t contributions) {
  std::set<int64_t> have;
  const auto own = holdings.find(combining);
  if (own != holdings.end()) have = own->second.contributions;
  std::vector<int> givers;
  while (static_cast<int64_t>(have.size()) < contributions) {
    int best = -1;
    int64_t most = 0;
    for (const auto& [node, holding] : holdings) {
      const int64_t news = std::count_if(holding.contributions.begin(), holding.contributions.end(),
                                         [&have](int64_t c) { return !have.contains(c); });
      if (news > most) best = node, most = news;
    }
    givers.push_back(best);
    const std::set<int64_t>& more = holdings.at(best).contributions;
    have.insert(more.begin(), more.end());
  }
  return givers;
}

Crossings Combine(const Holdings& holdings, const std::vector<int>& needing, int64_t wire,
                  int64_t src, int64_t contributions) {
  std::set<int> candidates(needing.begin(), needing.end());
  for (const auto& [node, holding] : holdings) candidates.insert(node);
  Crossings best;
  for (const int node : candidates) {
    Crossings crossings;
    crossings.combining = node;
    crossings.givers = GiversTo(node, holdings, contributions);
    std::copy_if(needing.begin(), needing.end(), std::back_inserter(crossings.targets),
                 [node](int target) { return target != node; });
    crossings.bytes = static_cast<int64_t>(crossings.givers.size()) * src +
                      static_cast<int64_t>(crossings.targets.size()) * wire;
    if (best.combining < 0 || crossings.bytes < best.bytes) best = crossings;
  }
  return best;
}

void Count::Send(absl::Span<const int> from, int to_node, int64_t bytes) {
  node_bytes_ += bytes;
  received_[to_node] += static_cast<double>(bytes);
  for (const int rank : from) {
    sent_[static_cast<size_t>(rank)] +=
        static_cast<double>(bytes) / static_cast<double>(from.size());
  }
}

const std::vector<int>& Count::HoldersOf(const Holdings& holdings, int node) const {
  const auto found = holdings.find(node);
  return found == holdings.end() ? ranks_of_node_.at(node) : found->second.ranks;
}

// Elements that these nodes hold, and that others need.
void Count::AddCell(const Holdings& holdings, const std::vector<int>& needing, int64_t elements,
                    const Sizes& sizes) {
  const auto has_all = [&](int node) {
    const auto found = holdings.find(node);
    return found != holdings.end() &&
           static_cast<int64_t>(found->second.contributions.size()) == sizes.contributions;
  };
  std::vector<int> lacking;
  std::copy_if(needing.begin(), needing.end(), std::back_inserter(lacking), std::not_fn(has_all));
  if (lacking.empty()) return;
  std::vector<int> having;  // ranks
  for (const auto& [node, holding] : holdings) {
    if (!has_all(node)) continue;
    having.insert(having.end(), holding.ranks.begin(), holding.ranks.end());
  }
  if (!having.empty()) {
    for (const int node : lacking) Send(having, node, elements * sizes.wire);
    return;
  }
  const Crossings crossings =
      Combine(holdings, lacking, sizes.wire, sizes.src, sizes.contributions);
  for (const int node : crossings.givers) {
    Send(holdings.at(node).ranks, crossings.combining, elements * sizes.src);
  }
  for (const int node : crossings.targets) {
    Send(HoldersOf(holdings, crossings.combining), node, elements * sizes.wire);
  }
}

Count::NodesOfPart Count::NodesOf(const Layout& layout, const Partition& partition) const {
  NodesOfPart nodes;
  const absl::Span<const int> ranks = layout.mesh.ranks();
  for (size_t i = 0; i < ranks.size(); ++i) {
    nodes[partition.PartsOf(static_cast<int64_t>(i))].push_back(NodeOf(ranks[i]));
  }
  for (auto& [part, of_part] : nodes) {
    std::sort(of_part.begin(), of_part.end());
    of_part.erase(std::unique(of_part.begin(), of_part.end()), of_part.end());
  }
  return nodes;
}

void Count::Add(const TensorTransfer& tensor, int64_t times) {
  const int dims = static_cast<int>(tensor.shape.size());
  const Partition src(tensor.src, dims);
  const Partition dst(tensor.dst, dims);
  const Sizes sizes = {DTypeBytes(WireDType(tensor)), DTypeBytes(tensor.src_dtype),
                       src.contributions()};
  std::map<PartTuple, Holdings> holdings;
  const absl::Span<const int> ranks = tensor.src.mesh.ranks();
  for (size_t i = 0; i < ranks.size(); ++i) {
    const int64_t position = static_cast<int64_t>(i);
    Holding& holding = holdings[src.PartsOf(position)][NodeOf(ranks[i])];
    holding.ranks.push_back(ranks[i]);
    holding.contributions.insert(src.ContributionOf(position));
  }
  const NodesOfPart needing = NodesOf(tensor.dst, dst);
  for (const auto& [parts, of_part] : holdings) {
    std::vector<std::vector<PartOverlap>> overlaps;
    size_t cells = 1;
    for (int d = 0; d < dims; ++d) {
      const size_t i = static_cast<size_t>(d);
      const int64_t size = tensor.shape[i];
      overlaps.push_back(dst.Split(d, size, src.Owned(d, parts[i], size)));
      cells *= overlaps.back().size();
    }
    for (size_t cell = 0; cell < cells; ++cell) {
      PartTuple of_dst{};
      int64_t elements = times;
      size_t rest = cell;
      for (size_t i = 0; i < overlaps.size(); ++i) {
        const PartOverlap& overlap = overlaps[i][rest % overlaps[i].size()];
        rest /= overlaps[i].size();
        of_dst[i] = overlap.part;
        elements *= overlap.indices.size();
      }
      AddCell(of_part, needing.at(of_dst), elements, sizes);
    }
  }
}

CrossingBounds Count::bounds() const {
  CrossingBounds bounds;
  bounds.node_bytes = node_bytes_;
  for (const double bytes : sent_) bounds.busiest_src = std::max(bounds.busiest_src, bytes);
  for (const auto& [node, bytes] : received_) {
    bounds.busiest_dst =
        std::max(bounds.busiest_dst, bytes / static_cast<double>(ranks_of_node_.at(node).size()));
  }
  return bounds;
}

}  // namespace

CrossingBounds BoundsOf(const TransferSpec& spec, absl::Span<const int> node_of_rank) {
  SLUICE_CHECK(!HasBoxes(spec), "bounds are of what is planned");
  TensorClasses classes;
  struct Alike {
    const TensorTransfer* tensor;
    int64_t times;
  };
  std::map<int, Alike> alike;
  for (const TensorTransfer& tensor : spec.tensors) {
    ++alike.try_emplace(classes.Of(tensor).tensor_class, Alike{&tensor, 0}).first->second.times;
  }
  Count count(node_of_rank);
  for (const auto& [number, of] : alike) count.Add(*of.tensor, of.times);
  return count.bounds();
}

}  // namespace sluice::bench
