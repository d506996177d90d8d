// Halves by dice, and one of a model.
#include "plan/connect_halves.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plan/connect/half_builder.h"
#include "tensor/check.h"

namespace sluice {
namespace {

std::vector<int> SomeRanks(oracle::Dice* dice, int ranks) {
  std::vector<int> some(static_cast<size_t>(ranks));
  std::iota(some.begin(), some.end(), 0);
  if (dice->Chance(50)) dice->Shuffle(&some);
  some.resize(static_cast<size_t>(dice->Between(1, ranks)));
  return some;
}

std::string RandomName(oracle::Dice* dice, int number) {
  std::string name = dice->Chance(70) ? "layers." : "";
  absl::StrAppend(&name, number, dice->Chance(70) ? ".weight" : "");
  if (dice->Chance(5)) name += std::string(1, '\0') + "\xff";
  if (dice->Chance(5)) name += std::string(static_cast<size_t>(1024 - name.size()), 'n');
  return name;
}

void AddTensors(oracle::Dice* dice, int ranks, bool are_targets, std::vector<Layout>* layouts,
                HalfBuilder* builder, std::vector<HalfTensor>* tensors) {
  const auto count = static_cast<int>(dice->Between(0, 12));
  for (int i = 0; i < count; ++i) {
    const std::vector<int64_t> shape = oracle::RandomShape(dice, 4, 100000);
    Layout& layout = layouts->emplace_back();
    layout.mesh = oracle::RandomMesh(dice, SomeRanks(dice, ranks));
    layout.placements = oracle::RandomPlacements(dice, layout.mesh, static_cast<int>(shape.size()));
    layout.order = oracle::RandomOrder(dice, layout.mesh);
    if (IsLeftToRight(layout)) layout.order.clear();  // as it is read again
    if (!are_targets && dice->Chance(30)) {
      layout.placements[0] = Placement::Partial(dice->Pick<ReduceOp>(
          {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kProduct}));
    }
    const bool has_elements = std::find(shape.begin(), shape.end(), 0) == shape.end();
    if (has_elements && dice->Chance(30)) {
      layout = {};
      layout.boxes = oracle::RandomBoxes(dice, shape, {kHalfBoxesRank}, dice->Chance(50));
    }
    HalfTensor tensor = {RandomName(dice, i),
                         builder->KindOf(shape, static_cast<DType>(dice->Between(0, 13)), layout),
                         absl::nullopt};
    if (dice->Chance(30)) tensor.window = static_cast<int>(dice->Between(0, 65535));
    tensors->push_back(std::move(tensor));
  }
}

std::string BoxesInWords(const BoxList& list) {
  std::string text;
  for (const RankBoxes& of : list.ranks()) {
    absl::StrAppend(&text, of.rank, ":");
    for (const Box& box : of.boxes) {
      absl::StrAppend(&text, " [", absl::StrJoin(box.shape, ","), "] at [",
                      absl::StrJoin(box.offset, ","), "]");
    }
  }
  return text;
}

std::string TensorsInWords(const std::vector<HalfTensor>& tensors, const Half& half) {
  std::string text;
  for (const HalfTensor& tensor : tensors) {
    const TensorKind& kind = half.KindOf(tensor);
    absl::StrAppend(&text, tensor.name, "|", DTypeName(kind.dtype), "|",
                    tensor.window ? absl::StrCat(*tensor.window) : "-", "|",
                    oracle::Describe(half.LayoutOf(kind), kind.shape), "|",
                    BoxesInWords(half.LayoutOf(kind).boxes), "\n");
  }
  return text;
}

}  // namespace

Half RandomHalf(oracle::Dice* dice, int ranks) {
  HalfBuilder builder;
  std::vector<Layout> layouts;
  layouts.reserve(100);  // they must stay where they are
  std::vector<HalfTensor> sources, targets;
  AddTensors(dice, ranks, false, &layouts, &builder, &sources);
  AddTensors(dice, ranks, true, &layouts, &builder, &targets);
  Half half = std::move(*builder.half());
  half.sources = std::move(sources);
  half.targets = std::move(targets);
  for (int64_t i = dice->Between(0, 3); i > 0; --i) {
    half.renames.emplace_back(RandomName(dice, static_cast<int>(i)) + "t", RandomName(dice, 100));
    half.renames.back().first.resize(std::min<size_t>(half.renames.back().first.size(), 1024));
  }
  half.ignore_unused_sources = dice->Chance(50);
  if (dice->Chance(50)) half.priority_class = static_cast<int>(dice->Between(0, 3));
  return half;
}

Half ModelHalf(int tensors, int ranks) {
  const std::vector<std::string> parts = {
      "self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight",
      "self_attn.o_proj.weight", "mlp.gate_proj.weight",    "mlp.up_proj.weight",
      "mlp.down_proj.weight",    "input_layernorm.weight",  "post_attention_layernorm.weight"};
  std::vector<int> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  const auto mesh = Mesh::Create({ranks}, all);
  SLUICE_CHECK(mesh.ok(), "a test's mesh must be valid");
  HalfBuilder builder;
  const Layout layout = {*mesh, {Placement::Shard(0)}};
  std::vector<HalfTensor> sources;
  for (int t = 0; t < tensors; ++t) {
    const auto part = static_cast<size_t>(t) % parts.size();
    const auto layer = static_cast<size_t>(t) / parts.size();
    const auto rows = static_cast<int64_t>(1024 * (part + 1));
    sources.push_back({absl::StrCat("model.layers.", layer, ".", parts[part]),
                       builder.KindOf({rows, 4096}, DType::kBF16, layout), absl::nullopt});
  }
  Half half = std::move(*builder.half());
  half.sources = std::move(sources);
  return half;
}

std::string InWords(const Half& half) {
  std::string text = absl::StrCat(TensorsInWords(half.sources, half), "--\n",
                                  TensorsInWords(half.targets, half), "--\n");
  for (const auto& [target, source] : half.renames)
    absl::StrAppend(&text, target, "=", source, "\n");
  absl::StrAppend(&text, half.ignore_unused_sources ? "ignores" : "", "|",
                  half.priority_class ? absl::StrCat(*half.priority_class) : "-");
  return text;
}

}  // namespace sluice
