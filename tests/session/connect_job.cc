// Random jobs, told in parts.
#include "session/connect_job.h"

#include <algorithm>
#include <optional>
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

bool OwnsNothing(const Layout& layout, const std::vector<int64_t>& shape, int rank) {
  const auto lists = oracle::OwnedLists(layout, shape, rank);
  return std::any_of(lists->begin(), lists->end(), [](const auto& list) { return list.empty(); });
}

// Whether the rank names the tensor. The lowest rank of a mesh always does: somebody has to.
bool Gives(const Layout& layout, const std::vector<int64_t>& shape, int rank, oracle::Dice* dice) {
  if (!layout.mesh.PositionOf(rank)) return false;
  const absl::Span<const int> ranks = layout.mesh.ranks();
  if (rank == *std::min_element(ranks.begin(), ranks.end())) return true;
  return !OwnsNothing(layout, shape, rank) || dice->Chance(50);
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

ConnectMemory::ConnectMemory(const ConnectJob& job, int rank, oracle::Dice* dice,
                             bool random_styles) {
  const auto style = [&] { return random_styles ? RandomStyle(dice) : ViewStyle::kDense; };
  std::map<std::string, uint64_t> numbers;  // of sources
  bool is_source = false, is_target = false;
  for (size_t t = 0; t < job.truth.tensors.size(); ++t) {
    const TensorTransfer& tensor = job.truth.tensors[t];
    const std::string& source = job.sources[t];
    const auto [number, is_new] = numbers.try_emplace(source, t);
    if (is_new && Gives(tensor.src, tensor.shape, rank, dice)) {
      is_source = true;
      const auto [at, added] =
          src_.try_emplace(source, TensorMemory(tensor, t, Side::kSource, rank, style()));
      spec_.sources.push_back(
          {source, tensor.shape, tensor.src_dtype, tensor.src, at->second.view(), absl::nullopt});
    }
    if (Gives(tensor.dst, tensor.shape, rank, dice)) {
      is_target = true;
      const auto [at, added] = dst_.try_emplace(
          tensor.name, TensorMemory(tensor, number->second, Side::kDestination, rank, style()));
      spec_.targets.push_back({tensor.name, tensor.shape, tensor.dst_dtype, tensor.dst,
                               at->second.view(), tensor.window});
    }
  }
  Shuffle(dice, &spec_.sources);
  Shuffle(dice, &spec_.targets);
  if (job.sources_rename ? is_source : is_target) spec_.renames = job.renames;
  if (is_source || is_target) spec_.priority_class = job.truth.priority_class;
}

void ConnectMemory::Prepare(uint64_t round) {
  for (auto& [name, memory] : src_) memory.Fill(round);
  for (auto& [name, memory] : dst_) memory.Poison(round);
}

std::string ConnectMemory::Check(uint64_t round) const {
  for (const auto& [name, memory] : dst_) {
    if (!memory.Holds(round)) return absl::StrCat("target ", name, memory.Difference(round));
  }
  for (const auto& [name, memory] : src_) {
    if (!memory.Holds(round)) return absl::StrCat("source ", name, memory.Difference(round));
  }
  return "";
}

bool ConnectMemory::Untouched(uint64_t round) const {
  return std::all_of(dst_.begin(), dst_.end(),
                     [round](const auto& each) { return each.second.IsPoisoned(round); });
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
