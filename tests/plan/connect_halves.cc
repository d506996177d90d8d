// Halves by dice, and one of a model.
#include "plan/connect_halves.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/make_layout.h"
#include "plan/connect/half_builder.h"

namespace sluice {
namespace {

std::vector<int> SomeRanks(oracle::Dice* dice, int ranks) {
  std::vector<int> some = oracle::RankRange(0, ranks);
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
    Layout& layout = layouts->emplace_back(
        oracle::RandomLayout(dice, SomeRanks(dice, ranks), static_cast<int>(shape.size())));
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
  HalfBuilder builder;
  const Layout layout = oracle::MakeLayout(ranks, "S(0)");
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

RankedHalf HalfOf(std::vector<int> ranks, std::vector<GivenTensor> sources,
                  std::vector<GivenTensor> targets) {
  HalfBuilder builder;
  const auto describe = [&builder](const std::vector<GivenTensor>& given) {
    std::vector<HalfTensor> tensors;
    for (const GivenTensor& each : given) {
      tensors.push_back(
          {each.name, builder.KindOf(each.shape, each.dtype, each.layout), each.window});
    }
    return tensors;
  };
  std::vector<HalfTensor> described = describe(sources);
  std::vector<HalfTensor> wanted = describe(targets);
  RankedHalf half = {std::move(*builder.half()), std::move(ranks)};
  half.half.sources = std::move(described);
  half.half.targets = std::move(wanted);
  return half;
}

void ExpectNoMatch(const std::vector<RankedHalf>& halves, absl::StatusCode code,
                   const std::string& text) {
  const absl::Status status = MatchHalves(halves).status();
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(text));
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
