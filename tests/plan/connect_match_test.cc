// Halves that become a transfer, and what is said of those that do not.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "oracle/make_layout.h"
#include "plan/connect/half_builder.h"
#include "plan/connect/match.h"
#include "plan/connect/texts.h"
#include "plan/connect_halves.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

using absl::StatusCode;
using testing::ElementsAre;

struct Given {
  std::string name;
  std::vector<int> mesh;
  std::vector<int64_t> shape = {8};
  DType dtype = DType::kF32;
  absl::optional<int> window = absl::nullopt;
};

// All cut along dimension 0 of a mesh of one dimension.
RankedHalf MakeHalf(std::vector<int> ranks, const std::vector<Given>& sources,
                    const std::vector<Given>& targets) {
  const auto on_meshes = [](const std::vector<Given>& tensors) {
    std::vector<GivenTensor> given;
    for (const Given& each : tensors) {
      const auto size = static_cast<int64_t>(each.mesh.size());
      given.push_back({each.name, oracle::MakeLayout({size}, each.mesh, "S(0)"), each.shape,
                       each.dtype, each.window});
    }
    return given;
  };
  return HalfOf(std::move(ranks), on_meshes(sources), on_meshes(targets));
}

std::vector<std::string> Names(const Match& match) {
  std::vector<std::string> names;
  for (const TensorTransfer& tensor : match.spec.tensors) names.push_back(tensor.name);
  return names;
}

TEST(MatchTest, TensorsComeInTheOrderOfTheirTargets) {
  const auto match =
      MatchHalves(std::vector<RankedHalf>{
                      MakeHalf({0, 1}, {{"a", {0, 1}}, {"b", {0, 1}}, {"c", {0, 1}}}, {}),
                      MakeHalf({2}, {}, {{"c", {2, 3}}}),
                      MakeHalf({3}, {}, {{"b", {3}}, {"c", {2, 3}}, {"a", {3}}}),
                  })
          .value();
  EXPECT_THAT(Names(match), ElementsAre("c", "b", "a"));
  EXPECT_THAT(match.source_names, ElementsAre("c", "b", "a"));
}

TEST(MatchTest, SeveralTargetsOfOneSource) {
  std::vector<RankedHalf> halves = {
      MakeHalf({0}, {{"embed", {0}}}, {}),
      MakeHalf({1}, {}, {{"embed", {1}, {8}, DType::kBF16}, {"lm_head", {1}}}),
      MakeHalf({2}, {}, {{"embed", {2}, {8}, DType::kF16}}),
  };
  halves[1].half.renames = {{"lm_head", "embed"}};
  const auto match = MatchHalves(halves).value();
  EXPECT_THAT(Names(match), ElementsAre("embed", "lm_head", "embed"));
  EXPECT_THAT(match.source_names, ElementsAre("embed", "embed", "embed"));
  EXPECT_THAT(match.spec.tensors[2].dst.mesh.ranks(), ElementsAre(2));
  EXPECT_EQ(match.spec.tensors[2].dst_dtype, DType::kF16);
}

TEST(MatchTest, WindowsOfTargetsComeFirst) {
  const auto match =
      MatchHalves(
          std::vector<RankedHalf>{MakeHalf(
              {0}, {{"a", {0}, {8}, DType::kF32, 1}, {"b", {0}, {8}, DType::kF32, 2}, {"c", {0}}},
              {{"a", {0}}, {"b", {0}, {8}, DType::kF32, 0}, {"c", {0}}})})
          .value();
  EXPECT_EQ(match.spec.tensors[0].window, 1);
  EXPECT_EQ(match.spec.tensors[1].window, 0);
  EXPECT_EQ(match.spec.tensors[2].window, 0);
}

TEST(MatchTest, WhoHasNothingMayBeSilent) {
  // 2 elements over 3 ranks: the last has none.
  EXPECT_TRUE(MatchHalves(std::vector<RankedHalf>{
                              MakeHalf({0, 1}, {{"a", {0, 1, 2}, {2}}}, {{"a", {0, 1, 2}, {2}}}),
                              MakeHalf({2}, {}, {}),
                          })
                  .ok());
  ExpectNoMatch(
      {MakeHalf({0, 1}, {{"a", {0, 1, 2}, {3}}}, {{"a", {0, 1}, {3}}}), MakeHalf({2}, {}, {})},
      StatusCode::kInvalidArgument,
      "source 'a' of ranks 0, 1 lies on rank 2, too, which does not give it");
}

// Replicas of an inference server: each rank wants its own copy.
TEST(MatchTest, OneNameOnAsManyMeshesAsThereAreRanks) {
  constexpr int kReplicas = 3000;
  std::vector<RankedHalf> halves = {MakeHalf({0}, {{"a", {0}}, {"b", {0}}}, {})};
  for (int rank = 1; rank <= kReplicas; ++rank) {
    halves.push_back(MakeHalf({rank}, {}, {{"a", {rank}}, {"b", {rank}, {8}, DType::kF32, 2}}));
  }
  const auto match = MatchHalves(halves).value();
  ASSERT_EQ(match.spec.tensors.size(), size_t{2 * kReplicas});
  for (int rank = 1; rank <= kReplicas; ++rank) {
    for (const size_t t : {size_t{0}, size_t{1}}) {
      const TensorTransfer& tensor = match.spec.tensors[2 * static_cast<size_t>(rank - 1) + t];
      EXPECT_EQ(tensor.name, t == 0 ? "a" : "b");
      EXPECT_EQ(tensor.window, t == 0 ? 0 : 2);
      EXPECT_THAT(tensor.dst.mesh.ranks(), ElementsAre(rank));
    }
  }
}

TEST(MatchTest, SourcesOfOneNameHaveOneMeshOrCopies) {
  ExpectNoMatch(
      {MakeHalf({0}, {{"a", {0}}}, {}), MakeHalf({1, 2}, {{"a", {1, 2}}}, {{"a", {1, 2}}})},
      StatusCode::kFailedPrecondition,
      "ranks disagree on source 'a': S(0) on mesh [1] of rank 0 on rank 0, S(0) on mesh "
      "[2] of ranks 1, 2 on ranks 1, 2");
  ExpectNoMatch({MakeHalf({0}, {{"a", {0}}}, {}),
                 MakeHalf({1}, {{"a", {1}, {8}, DType::kF16}}, {{"a", {1}}})},
                StatusCode::kFailedPrecondition,
                "ranks disagree on source 'a': f32 on rank 0, f16 on rank 1");
  // Two of them share a rank, neither of them with the first.
  ExpectNoMatch({MakeHalf({0, 1}, {{"a", {0, 1}}}, {}), MakeHalf({2, 3}, {{"a", {2, 3}}}, {}),
                 MakeHalf({4}, {{"a", {3, 4}}}, {})},
                StatusCode::kFailedPrecondition,
                "S(0) on mesh [2] of ranks 2, 3 on ranks 2, 3, S(0) on mesh [2] of ranks 3, 4");
}

TEST(MatchTest, CopiesBecomeOneMeshThatReplicates) {
  std::vector<RankedHalf> halves = {
      MakeHalf({0, 4}, {{"a", {4, 0}}, {"b", {4, 0}}}, {{"a", {0, 4}}, {"b", {0, 4}}}),
      MakeHalf({1, 2}, {{"b", {1, 2}}, {"a", {1, 2}}}, {}),
      MakeHalf({3, 5}, {{"a", {5, 3}}}, {}),
  };
  const auto match = MatchHalves(halves).value();
  const Layout& a = match.spec.tensors[0].src;
  EXPECT_THAT(a.mesh.sizes(), ElementsAre(3, 2));
  EXPECT_THAT(a.mesh.ranks(), ElementsAre(4, 0, 1, 2, 5, 3));
  EXPECT_THAT(a.placements, ElementsAre(Placement::Replicate(), Placement::Shard(0)));
  EXPECT_TRUE(a.order.empty());
  EXPECT_THAT(match.spec.tensors[1].src.mesh.ranks(), ElementsAre(4, 0, 1, 2));
  halves[1].half.targets = {halves[1].half.sources[0]};
  halves[1].half.targets[0].name = "c";
  halves[1].half.renames = {{"c", "d"}};
  ExpectNoMatch(halves, StatusCode::kNotFound, "'c' of ranks 1, 2 (renamed from 'd')");
  // Nobody asks: the name comes once, with all its ranks.
  halves[0].half.targets.clear();
  halves[1].half.targets.clear();
  ExpectNoMatch(halves, StatusCode::kInvalidArgument,
                "no target asks for source 'a' of ranks 0-5, 'b' of ranks 0-2, 4;");
}

TEST(MatchTest, CopiesKeepTheirOrder) {
  const auto half = [](std::vector<int> ranks) {
    HalfBuilder builder;
    const Layout layout = {
        *Mesh::Create({2, 2}, ranks), {Placement::Shard(0), Placement::Shard(0)}, {1, 0}};
    const int kind = builder.KindOf({8}, DType::kF32, layout);
    RankedHalf made = {std::move(*builder.half()), std::move(ranks)};
    made.half.sources = {{"a", kind, absl::nullopt}};
    return made;
  };
  std::vector<RankedHalf> halves = {half({0, 1, 2, 3}), half({4, 5, 6, 7}),
                                    MakeHalf({8}, {}, {{"a", {8}}})};
  const auto match = MatchHalves(halves).value();
  EXPECT_THAT(match.spec.tensors[0].src.order, ElementsAre(0, 2, 1));
  halves[1].half.layouts[0].order = {0, 1};
  ExpectNoMatch(halves, StatusCode::kFailedPrecondition, "in order 1,0 on mesh");
}

TEST(MatchTest, TargetsOfOneNameThatShareARank) {
  ExpectNoMatch({MakeHalf({0}, {{"a", {0}}}, {{"a", {0, 1}}}), MakeHalf({1}, {}, {{"a", {1, 2}}}),
                 MakeHalf({2}, {}, {{"a", {1, 2}}})},
                StatusCode::kFailedPrecondition, "ranks disagree on target 'a'");
}

TEST(MatchTest, RanksOutsideOfTheMesh) {
  ExpectNoMatch({MakeHalf({0, 1}, {{"a", {0}}}, {{"a", {0, 1}}})}, StatusCode::kInvalidArgument,
                "source 'a' is given by rank 1, outside of its mesh of rank 0");
}

TEST(MatchTest, FaultsOfOneKindAreNamedTogether) {
  ExpectNoMatch(
      {MakeHalf({0}, {{"a", {0}}, {"b", {0}}}, {{"a", {0}, {9}}, {"b", {0}, {7}}})},
      StatusCode::kInvalidArgument,
      "shapes differ: source 'a' of rank 0 has shape [8], target 'a' of rank 0 [9]; 'b' of "
      "rank 0 has shape [8], target 'b' of rank 0 [7]");
  std::vector<Given> many;
  for (int i = 0; i < 10; ++i) many.push_back({"n" + std::to_string(i), {0}});
  ExpectNoMatch({MakeHalf({0}, many, {})}, StatusCode::kInvalidArgument,
                "no target asks for source 'n0' of rank 0, 'n1' of rank 0, 'n2' of rank 0, 'n3' of "
                "rank 0, and 6 more");
}

TEST(TextsTest, LongListsAreCut) {
  EXPECT_EQ(NamedRanks(std::vector<int>{3}, kFewRuns).text(), "rank 3");
  EXPECT_EQ(NamedRanks(std::vector<int>{0, 1, 2, 5, 7, 8}, kFewRuns).text(), "ranks 0-2, 5, 7, 8");
  std::vector<int> even;
  for (int rank = 0; rank < 40; rank += 2) even.push_back(rank);
  EXPECT_EQ(NamedRanks(even, kFewRuns).text(), "ranks 0, 2, 4, 6, 8, 10 and 14 more");
  EXPECT_EQ(QuotedName("a\x01").text(), "'a\\x01'");
  EXPECT_EQ(QuotedName("caf\303\251").text(), "'caf\303\251'");
  EXPECT_EQ(QuotedName(std::string(61, 'a')).text(), "'" + std::string(60, 'a') + "...'");
}

}  // namespace
}  // namespace sluice
