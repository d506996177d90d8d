// Fingerprints of cases, collectives as cases, and chunks of blocks.
#include <gmock/gmock.h>

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reshard/baselines/chunks.h"
#include "sluice/layout.h"
#include "workload/collectives.h"
#include "workload/inline_case.h"
#include "workload/local_tensor.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

LocalPart Part(const std::vector<int64_t>& shape, int rank) {
  const Layout layout{*Mesh::Create({2}, {0, 1}), {Placement::Shard(1)}};
  return *LocalPart::Create(layout, shape, rank);
}

template <typename T>
Fingerprint Take(const LocalPart& part, DType dtype, const std::vector<T>& values) {
  return TakeFingerprint(part, dtype, reinterpret_cast<const std::byte*>(values.data()));
}

TEST(Fingerprint, SumsValuesPlainAndByPosition) {
  const Fingerprint f = Take<float>(Part({2, 4}, 1), DType::kF32, {5, 0, 65520, 7});
  EXPECT_THAT(f.local_shape, ElementsAre(2, 2));
  EXPECT_EQ(f.checksum, 65532);
  EXPECT_EQ(f.ordered_checksum, 1u * 5 + 3u * 65520 + 4u * 7);
  EXPECT_EQ(f.first, 2);
  EXPECT_EQ(f.last, 7);
}

TEST(Fingerprint, APermutationShows) {
  const LocalPart part = Part({2, 4}, 0);
  const Fingerprint a = Take<int64_t>(part, DType::kI64, {1, 2, 3, 4});
  const Fingerprint b = Take<int64_t>(part, DType::kI64, {2, 1, 3, 4});
  EXPECT_EQ(a.checksum, b.checksum);
  EXPECT_NE(a.ordered_checksum, b.ordered_checksum);
}

TEST(Fingerprint, OwnsNothing) {
  const Fingerprint f = Take<float>(Part({3, 1}, 1), DType::kF32, {});
  EXPECT_THAT(f.local_shape, ElementsAre(3, 0));
  EXPECT_EQ(f.checksum, 0);
  EXPECT_FALSE(f.first.has_value());
  EXPECT_FALSE(f.last.has_value());
}

TEST(Fingerprint, ReadsSmallFloatsByTheirFormats) {
  const LocalPart part = Part({1, 2}, 0);  // one element
  EXPECT_EQ(Take<uint16_t>(part, DType::kF16, {0x67ff}).checksum, 2047);
  EXPECT_EQ(Take<uint16_t>(part, DType::kF16, {0xc500}).checksum, -5);
  EXPECT_EQ(Take<uint16_t>(part, DType::kBF16, {0x437a}).checksum, 250);
  EXPECT_EQ(Take<uint8_t>(part, DType::kF8E4M3, {0x7e}).checksum, 448);
  EXPECT_EQ(Take<uint8_t>(part, DType::kF8E4M3, {0x52}).checksum, 10);
  EXPECT_EQ(Take<uint8_t>(part, DType::kF8E5M2, {0x46}).checksum, 6);
  EXPECT_EQ(Take<uint8_t>(part, DType::kF8E5M2, {0x7b}).checksum, 57344);
}

TEST(Fingerprint, WhatIsNoNumberCountsAsZero) {
  const LocalPart part = Part({1, 2}, 0);
  EXPECT_EQ(Take<float>(part, DType::kF32, {NAN}).checksum, 0);
  EXPECT_EQ(Take<double>(part, DType::kF64, {std::numeric_limits<double>::infinity()}).checksum, 0);
  EXPECT_EQ(Take<uint16_t>(part, DType::kF16, {0x7c00}).checksum, 0);
  EXPECT_EQ(Take<uint8_t>(part, DType::kF8E4M3, {0xff}).checksum, 0);
  EXPECT_EQ(Take<uint8_t>(part, DType::kF8E5M2, {0xff}).checksum, 0);
}

TEST(Fingerprint, IntegersKeepTheirSign) {
  const LocalPart part = Part({1, 2}, 0);
  EXPECT_EQ(Take<int8_t>(part, DType::kI8, {-3}).checksum, -3);
  EXPECT_EQ(Take<uint8_t>(part, DType::kU8, {253}).checksum, 253);
  EXPECT_EQ(Take<int16_t>(part, DType::kI16, {-300}).checksum, -300);
  EXPECT_EQ(Take<uint16_t>(part, DType::kU16, {65000}).checksum, 65000);
  EXPECT_EQ(Take<uint32_t>(part, DType::kU32, {4000000000}).checksum, 4000000000);
  EXPECT_EQ(Take<uint64_t>(part, DType::kU64, {~uint64_t{0}}).checksum, -1) << "mod 2^64";
  EXPECT_EQ(Take<uint8_t>(part, DType::kBool, {1}).checksum, 1);
}

std::string TextOf(const char* name) {
  const auto layouts = LayoutsOf(*ParseCollective(name), 3);
  return LayoutName(layouts->src) + " " + LayoutName(layouts->dst);
}

TEST(Collectives, HaveTheLayoutsOfTheirMeaning) {
  EXPECT_EQ(TextOf("all-gather"), "3@0-2:S(0) 3@0-2:R");
  EXPECT_EQ(TextOf("reduce-scatter"), "3@0-2:P(sum) 3@0-2:S(0)");
  EXPECT_EQ(TextOf("all-reduce"), "3@0-2:P(sum) 3@0-2:R");
  EXPECT_EQ(TextOf("all-to-all"), "3@0-2:S(0) 3@0-2:SS(0,3)");
  EXPECT_EQ(TextOf("broadcast"), "1@0:R 3@0-2:R");
  EXPECT_EQ(TextOf("scatter"), "1@0:R 3@0-2:S(0)");
  EXPECT_EQ(TextOf("gather"), "3@0-2:S(0) 1@0:R");
}

TEST(Collectives, ARankGivesEachOtherOneStretchWhereAllSendToAll) {
  const auto layouts = LayoutsOf(Collective::kAllToAll, 3);
  const auto owned = OwnedRanges(layouts->dst, {18}, 1).value();
  std::vector<int64_t> begins;
  for (const IndexRange& range : owned.at(0)) {
    EXPECT_EQ(range.end - range.begin, 2);
    begins.push_back(range.begin);
  }
  EXPECT_THAT(begins, ElementsAre(2, 8, 14));
}

TEST(Collectives, AreRecognisedByTheirLayouts) {
  for (const std::string& name : CollectiveNames()) {
    const auto collective = ParseCollective(name);
    const auto layouts = LayoutsOf(*collective, 4);
    EXPECT_EQ(CollectiveOf(layouts->src, layouts->dst), *collective) << name;
  }
  EXPECT_EQ(CollectiveOf(*Layout::Parse("4:S(0)"), *Layout::Parse("4:S(1)")), std::nullopt);
  EXPECT_EQ(CollectiveOf(*Layout::Parse("4:S(0)"), *Layout::Parse("4@4-7:R")), std::nullopt);
}

InlineFlags Flags(const std::string& collective, int ranks) {
  InlineFlags flags;
  flags.collective = collective;
  flags.ranks = ranks;
  return flags;
}

TEST(Collectives, AreCasesOfAnySize) {
  const auto workload = MakeInlineCases(Flags("all-to-all", 3)).value();
  EXPECT_EQ(workload.cases.at(0).id, "all-to-all");
  EXPECT_THAT(workload.cases.at(0).spec.tensors.at(0).shape, ElementsAre((4 << 20) / 9 * 9));

  InlineFlags swept = Flags("gather", 3);
  swept.begin_bytes = "16";
  swept.end_bytes = "4K";
  swept.factor = "256";
  const auto cases = MakeInlineCases(swept).value();
  EXPECT_EQ(cases.cases.at(0).id, "gather/36");  // 16 bytes are not cut evenly
  EXPECT_THAT(cases.cases.at(0).spec.tensors.at(0).shape, ElementsAre(9));
  EXPECT_THAT(cases.cases.at(1).spec.tensors.at(0).shape, ElementsAre(1017));
}

TEST(Collectives, ErrorsNameTheFlag) {
  const auto said = [](const InlineFlags& flags) {
    return std::string(MakeInlineCases(flags).status().message());
  };
  EXPECT_THAT(said(Flags("all-hands", 2)), HasSubstr("--collective: there is no \"all-hands\""));
  EXPECT_THAT(said(Flags("gather", 0)), HasSubstr("--ranks"));
  EXPECT_THAT(said(Flags("gather", -1)), HasSubstr("--ranks"));
  EXPECT_THAT(said(Flags("", 2)), HasSubstr("--collective"));
  InlineFlags both = Flags("gather", 2);
  both.dst = "2:R";
  EXPECT_THAT(said(both), HasSubstr("takes the place"));
}

TransferSpec MakeSpec(std::vector<int64_t> shape, const char* src, const char* dst) {
  return {{{"t", std::move(shape), DType::kF32, DType::kF32, Layout::Parse(src).value(),
            Layout::Parse(dst).value()}}};
}

TEST(Chunks, ReplicasTakeTurns) {
  const TransferSpec spec = MakeSpec({16}, "4:R", "8@8-15:S(0)");
  std::map<int, int> served;
  ForEachChunk(spec, [&](const Chunk& chunk) { ++served[chunk.src]; });
  EXPECT_THAT(served, ElementsAre(Pair(0, 2), Pair(1, 2), Pair(2, 2), Pair(3, 2)));
}

TEST(Chunks, ATargetThatHasTheElementsServesItself) {
  const TransferSpec spec = MakeSpec({6}, "3:R", "3@2,5-6:S(0)");
  std::vector<std::pair<int, int>> pairs;
  ForEachChunk(spec, [&](const Chunk& chunk) { pairs.emplace_back(chunk.src, chunk.dst); });
  EXPECT_THAT(pairs, ElementsAre(Pair(2, 2), Pair(0, 5), Pair(1, 6)));
}

TEST(Chunks, EveryContributionIsAChunk) {
  const TransferSpec spec = MakeSpec({4}, "2,2:P(sum),S(0)", "1@7:R");
  std::vector<std::pair<int, size_t>> seen;
  ForEachChunk(spec, [&](const Chunk& chunk) {
    EXPECT_EQ(chunk.block->src.elements(), 2);
    seen.emplace_back(chunk.src, chunk.contribution);
  });
  EXPECT_THAT(seen, ElementsAre(Pair(0, 0u), Pair(2, 1u), Pair(1, 0u), Pair(3, 1u)));
}

TEST(Chunks, TravelAsTheSmallerDTypeUnlessTheyAreToBeReduced) {
  TensorTransfer tensor = MakeSpec({4}, "2:S(0)", "1@2:R").tensors[0];
  tensor.dst_dtype = DType::kBF16;
  EXPECT_EQ(WireDType(tensor), DType::kBF16);
  tensor.src_dtype = DType::kF16;
  EXPECT_EQ(WireDType(tensor), DType::kF16);
  tensor.src_dtype = DType::kF8E4M3;
  EXPECT_EQ(WireDType(tensor), DType::kF8E4M3);
  tensor.src_dtype = DType::kF32;
  tensor.src.placements = {Placement::Partial(ReduceOp::kSum)};
  EXPECT_EQ(WireDType(tensor), DType::kF32);
}

}  // namespace
}  // namespace sluice::bench
