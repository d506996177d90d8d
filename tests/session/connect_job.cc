// Random jobs, told in parts.
#include "session/connect_job.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "oracle/brute_layout.h"

namespace sluice::session_test {
namespace {

// A layout without Partial over some of `ranks`, which are not empty.
Layout TargetLayout(oracle::Dice* dice, std::vector<int> ranks, size_t dims) {
  dice->Shuffle(&ranks);
  ranks.resize(static_cast<size_t>(dice->Between(1, static_cast<int64_t>(ranks.size()))));
  Layout layout;
  layout.mesh = oracle::RandomMesh(dice, std::move(ranks));
  layout.placements = oracle::RandomPlacements(dice, layout.mesh, static_cast<int>(dims));
  layout.order = oracle::RandomOrder(dice, layout.mesh);
  return layout;
}

std::vector<int> RanksOutside(const Mesh& mesh, int size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) {
    if (!mesh.PositionOf(rank)) ranks.push_back(rank);
  }
  return ranks;
}

// Names that share parts, and some that share nothing.
std::string RandomName(oracle::Dice* dice, size_t number) {
  switch (dice->Between(0, 2)) {
    case 0:
      return absl::StrCat("model.layers.", number, ".self_attn.q_proj.weight");
    case 1:
      return absl::StrCat("model.layers.", number, ".mlp.weight");
    default:
      return absl::StrCat(number);
  }
}

// What a rank gives in place of `layout`: its own boxes, or the mesh of its copy.
Layout LayoutOfRank(const Layout& layout, int copies, int rank) {
  Layout own = layout;
  if (!layout.boxes.empty()) {
    const absl::Span<const Box> boxes = layout.boxes.Of(rank);
    std::vector<RankBoxes> list = {{rank, {boxes.begin(), boxes.end()}}};
    own.boxes = BoxList::Create(std::move(list)).value();
    return own;
  }
  if (copies == 1) return own;
  const absl::Span<const int> ranks = layout.mesh.ranks();
  const size_t each = ranks.size() / static_cast<size_t>(copies);
  const auto first = static_cast<size_t>(*layout.mesh.PositionOf(rank)) / each * each;
  const absl::Span<const int> own_ranks = ranks.subspan(first, each);
  const absl::Span<const int64_t> sizes = layout.mesh.sizes().subspan(1);
  own.mesh =
      Mesh::Create({sizes.begin(), sizes.end()}, {own_ranks.begin(), own_ranks.end()}).value();
  own.placements.erase(own.placements.begin());
  own.order.clear();
  for (const int dim : layout.order) {
    if (dim > 0) own.order.push_back(dim - 1);
  }
  return own;
}

// Puts copies of the source on other ranks, as many as they are enough for and three at most.
int AddCopies(int size, oracle::Dice* dice, Layout* layout) {
  std::vector<int> others;
  for (int rank = 0; rank < size; ++rank) {
    if (!layout->mesh.PositionOf(rank)) others.push_back(rank);
  }
  dice->Shuffle(&others);
  const size_t each = layout->mesh.ranks().size();
  const size_t copies = std::min<size_t>(3, 1 + others.size() / each);
  if (copies == 1) return 1;
  std::vector<int64_t> sizes = {static_cast<int64_t>(copies)};
  sizes.insert(sizes.end(), layout->mesh.sizes().begin(), layout->mesh.sizes().end());
  std::vector<int> ranks(layout->mesh.ranks().begin(), layout->mesh.ranks().end());
  ranks.insert(ranks.end(), others.begin(),
               others.begin() + static_cast<ptrdiff_t>((copies - 1) * each));
  layout->mesh = Mesh::Create(std::move(sizes), std::move(ranks)).value();
  layout->placements.insert(layout->placements.begin(), Placement::Replicate());
  for (int& dim : layout->order) ++dim;
  if (!layout->order.empty()) layout->order.insert(layout->order.begin(), 0);
  return static_cast<int>(copies);
}

bool OwnsNothing(const Layout& layout, const std::vector<int64_t>& shape, int rank) {
  const auto lists = oracle::OwnedLists(layout, shape, rank);
  return std::any_of(lists->begin(), lists->end(), [](const auto& list) { return list.empty(); });
}

// Whether the rank names the tensor. The lowest rank of a mesh always does: somebody has to.
bool Gives(const Layout& layout, const std::vector<int64_t>& shape, int rank, oracle::Dice* dice) {
  if (!layout.boxes.empty()) return !layout.boxes.Of(rank).empty();
  if (!layout.mesh.PositionOf(rank)) return false;
  const absl::Span<const int> ranks = layout.mesh.ranks();
  if (rank == *std::min_element(ranks.begin(), ranks.end())) return true;
  return !OwnsNothing(layout, shape, rank) || dice->Chance(50);
}

bool HasSome(const Layout& layout, int rank) {
  return layout.boxes.empty() ? layout.mesh.PositionOf(rank).has_value()
                              : !layout.boxes.Of(rank).empty();
}

ViewStyle RandomStyle(oracle::Dice* dice) {
  return dice->Pick<ViewStyle>({ViewStyle::kDense, ViewStyle::kSlice, ViewStyle::kTransposed,
                                ViewStyle::kSpaced, ViewStyle::kRotated, ViewStyle::kInterleaved});
}

void Shuffle(oracle::Dice* dice, std::vector<ConnectTensor>* tensors) {
  for (size_t i = tensors->size(); i > 1; --i) {
    std::swap((*tensors)[i - 1],
              (*tensors)[static_cast<size_t>(dice->Between(0, static_cast<int64_t>(i) - 1))]);
  }
}

}  // namespace

ConnectJob PlainJob(TransferSpec truth) {
  ConnectJob job;
  job.truth = std::move(truth);
  for (const TensorTransfer& tensor : job.truth.tensors) job.sources.push_back(tensor.name);
  return job;
}

ConnectJob MakeConnectJob(uint64_t seed, int size) {
  oracle::Dice dice(seed);
  RandomJob random = MakeRandomJob(seed, size);
  for (size_t t = 0; t < random.specs[0].tensors.size(); ++t) {
    random.specs[0].tensors[t].name = RandomName(&dice, t);
  }
  ConnectJob job = PlainJob(std::move(random.specs[0]));
  job.options.bucket_bytes = 4096;  // what tiny ones do is tested elsewhere, and takes long
  job.sources_rename = dice.Chance(50);
  std::vector<TensorTransfer>& tensors = job.truth.tensors;
  for (size_t t = 0, count = tensors.size(); t < count; ++t) {
    const size_t dims = tensors[t].shape.size();
    if (dice.Chance(30)) {  // another target of the same source
      TensorTransfer tied = tensors[t];
      absl::StrAppend(&tied.name, ".tied");
      tied.dst = TargetLayout(&dice, Ranks(0, size), dims);
      job.renames[tied.name] = job.sources[t];
      job.sources.push_back(job.sources[t]);
      tensors.push_back(std::move(tied));
    }
    const std::vector<int> others = RanksOutside(tensors[t].dst.mesh, size);
    if (!others.empty() && dice.Chance(30)) {  // the same target on other ranks
      TensorTransfer twin = tensors[t];
      twin.dst = TargetLayout(&dice, others, dims);
      job.sources.push_back(job.sources[t]);
      tensors.push_back(std::move(twin));
    }
  }
  for (const std::string& name : std::set<std::string>(job.sources.begin(), job.sources.end())) {
    if (!dice.Chance(30)) continue;
    const std::string other = absl::StrCat("trainer.", name);
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (job.sources[t] != name) continue;
      job.sources[t] = other;
      job.renames[tensors[t].name] = other;
    }
  }
  return job;
}

ConnectJob MakeConnectBoxJob(uint64_t seed, int size) {
  oracle::Dice dice(seed + 7000);
  ConnectJob job = MakeConnectJob(seed, size);
  std::map<std::string, Layout> sources;  // by name: targets may share one
  std::map<std::string, int> targets;     // how many have the name
  for (const TensorTransfer& tensor : job.truth.tensors) ++targets[tensor.name];
  for (size_t t = 0; t < job.truth.tensors.size(); ++t) {
    TensorTransfer& tensor = job.truth.tensors[t];
    const auto [source, is_new] = sources.try_emplace(job.sources[t], tensor.src);
    const bool is_empty =
        std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
    Layout boxes;
    if (is_new && !is_empty && dice.Chance(60)) {
      boxes.boxes = oracle::RandomBoxes(&dice, tensor.shape, Ranks(0, size), /*covers=*/true);
      source->second = boxes;
    } else if (is_new && dice.Chance(60)) {
      job.copies[job.sources[t]] = AddCopies(size, &dice, &source->second);
    }
    tensor.src = source->second;
    if (is_empty || targets[tensor.name] > 1 || !dice.Chance(60)) continue;
    boxes.boxes = oracle::RandomBoxes(&dice, tensor.shape, Ranks(0, size), /*covers=*/false);
    tensor.dst = boxes;
  }
  return job;
}

TensorView ConnectMemory::Remember(const TensorTransfer& tensor, uint64_t number, Side side,
                                   int rank, const std::function<ViewStyle()>& style,
                                   std::vector<TensorMemory>* memories) {
  const Layout& layout = side == Side::kSource ? tensor.src : tensor.dst;
  if (layout.boxes.empty()) {
    memories->emplace_back(tensor, number, side, rank, style());
    return memories->back().view();
  }
  TensorView view;
  for (const Box& box : layout.boxes.Of(rank)) {
    memories->emplace_back(tensor, number, side, rank, style(), Likeness(), &box);
    view.boxes.push_back(memories->back().view());
  }
  return view;
}

ConnectMemory::ConnectMemory(const ConnectJob& job, int rank, oracle::Dice* dice,
                             bool random_styles) {
  const std::function<ViewStyle()> style = [&] {
    return random_styles ? RandomStyle(dice) : ViewStyle::kDense;
  };
  std::map<std::string, uint64_t> numbers;  // of sources
  bool is_source = false, is_target = false;
  for (size_t t = 0; t < job.truth.tensors.size(); ++t) {
    const TensorTransfer& tensor = job.truth.tensors[t];
    const std::string& source = job.sources[t];
    const auto [number, is_new] = numbers.try_emplace(source, t);
    const auto copies = job.copies.find(source);
    const int count = copies == job.copies.end() ? 1 : copies->second;
    const bool has_source = HasSome(tensor.src, rank);
    const Layout own_src = has_source ? LayoutOfRank(tensor.src, count, rank) : Layout();
    if (is_new && has_source && Gives(own_src, tensor.shape, rank, dice)) {
      is_source = true;
      const TensorView view = Remember(tensor, t, Side::kSource, rank, style, &src_[source]);
      spec_.sources.push_back({{source, tensor.shape, tensor.src_dtype, own_src, view}});
    }
    if (HasSome(tensor.dst, rank) && Gives(tensor.dst, tensor.shape, rank, dice)) {
      is_target = true;
      const TensorView view =
          Remember(tensor, number->second, Side::kDestination, rank, style, &dst_[tensor.name]);
      spec_.targets.push_back(
          {{tensor.name, tensor.shape, tensor.dst_dtype, LayoutOfRank(tensor.dst, 1, rank), view},
           tensor.window});
    }
  }
  Shuffle(dice, &spec_.sources);
  Shuffle(dice, &spec_.targets);
  if (job.sources_rename ? is_source : is_target) spec_.renames = job.renames;
  if (is_source || is_target) spec_.priority_class = job.truth.priority_class;
}

void ConnectMemory::Prepare(uint64_t round) {
  for (auto& [name, memories] : src_) {
    for (TensorMemory& memory : memories) memory.Fill(round);
  }
  for (auto& [name, memories] : dst_) {
    for (TensorMemory& memory : memories) memory.Poison(round);
  }
}

std::string ConnectMemory::Check(uint64_t round) const {
  const auto difference = [round](const char* side, const Memories& all) -> std::string {
    for (const auto& [name, memories] : all) {
      for (const TensorMemory& memory : memories) {
        if (!memory.Holds(round)) return absl::StrCat(side, name, ": ", memory.Difference(round));
      }
    }
    return "";
  };
  std::string wrong = difference("target ", dst_);
  return wrong.empty() ? difference("source ", src_) : wrong;
}

bool ConnectMemory::Untouched(uint64_t round) const {
  return std::all_of(dst_.begin(), dst_.end(), [round](const auto& each) {
    return std::all_of(each.second.begin(), each.second.end(),
                       [round](const TensorMemory& memory) { return memory.IsPoisoned(round); });
  });
}

std::vector<std::string> PromisedOrder(const std::vector<ConnectSpec>& specs) {
  std::vector<std::string> order;
  std::set<std::pair<std::string, std::vector<int>>> known;
  for (const ConnectSpec& spec : specs) {
    for (const ConnectTensor& target : spec.targets) {
      const absl::Span<const int> ranks = target.layout.mesh.ranks();
      if (!known.insert({target.name, {ranks.begin(), ranks.end()}}).second) continue;
      order.push_back(target.name);
    }
  }
  return order;
}

}  // namespace sluice::session_test
