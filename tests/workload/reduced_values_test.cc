// What a Partial source comes to, against the definition carried out element by element and rank by
// rank.
#include "workload/reduced_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "oracle/brute_layout.h"
#include "oracle/random_layout.h"

namespace sluice::bench {
namespace {

using Kind = Placement::Kind;

constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax, ReduceOp::kMin,
                             ReduceOp::kProduct};

TensorTransfer MakeTensor(std::vector<int64_t> shape, std::vector<int64_t> mesh,
                          std::vector<int> ranks, const char* placements) {
  TensorTransfer tensor;
  tensor.shape = std::move(shape);
  tensor.src_dtype = tensor.dst_dtype = DType::kI64;
  tensor.src = {*Mesh::Create(std::move(mesh), std::move(ranks)), *ParsePlacements(placements)};
  return tensor;
}

std::vector<int64_t> ValuesOf(const TensorTransfer& tensor, uint32_t modulus, int64_t seed) {
  int64_t elements = 1;
  for (const int64_t size : tensor.shape) elements *= size;
  std::vector<int64_t> values(static_cast<size_t>(elements), -1);
  const ReducedValues reduced(tensor, Fill{modulus, seed});
  reduced.Write(0, elements, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

int64_t Combine(ReduceOp op, const std::vector<int64_t>& values) {
  int64_t result = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        result += values[i];
        break;
      case ReduceOp::kMax:
        result = std::max(result, values[i]);
        break;
      case ReduceOp::kMin:
        result = std::min(result, values[i]);
        break;
      case ReduceOp::kProduct:
        result =
            static_cast<int64_t>(static_cast<uint64_t>(result) * static_cast<uint64_t>(values[i]));
        break;
    }
  }
  return op == ReduceOp::kAvg ? result / static_cast<int64_t>(values.size()) : result;
}

// By the words of the definition: ranks that own g; a rank's q is the lowest of those that differ
// only along Replicate dimensions; Partial dimensions are folded away left to right.
int64_t BruteValue(const TensorTransfer& tensor, int64_t g, int64_t seed, uint64_t modulus) {
  std::map<std::vector<int64_t>, int> lowest;  // by the coordinates that are not replicated
  std::vector<ReduceOp> ops;
  std::vector<size_t> partial;
  for (size_t m = 0; m < tensor.src.placements.size(); ++m) {
    if (tensor.src.placements[m].kind != Kind::kPartial) continue;
    partial.push_back(m);
    ops.push_back(tensor.src.placements[m].op);
  }
  for (const int rank : tensor.src.mesh.ranks()) {
    const auto lists = oracle::OwnedLists(tensor.src, tensor.shape, rank);
    const oracle::IndexList owned = oracle::FlatIndices(*lists, tensor.shape);
    if (std::find(owned.begin(), owned.end(), g) == owned.end()) continue;
    const std::vector<int64_t> all = *oracle::Coordinates(tensor.src.mesh, rank);
    std::vector<int64_t> coordinates;
    for (const size_t m : partial) coordinates.push_back(all[m]);
    const auto found = lowest.try_emplace(coordinates, rank).first;
    found->second = std::min(found->second, rank);
  }
  std::map<std::vector<int64_t>, int64_t> values;
  for (const auto& [coordinates, q] : lowest) {
    const uint64_t product =
        static_cast<uint64_t>(g + seed) * 2654435761u + static_cast<uint64_t>(q) * 40503u;
    values[coordinates] = static_cast<int64_t>((product % (uint64_t{1} << 32)) % modulus);
  }
  for (const ReduceOp op : ops) {
    std::map<std::vector<int64_t>, std::vector<int64_t>> folded;  // without the first coordinate
    for (const auto& [coordinates, value] : values) {
      folded[{coordinates.begin() + 1, coordinates.end()}].push_back(value);
    }
    values.clear();
    for (const auto& [coordinates, list] : folded) values[coordinates] = Combine(op, list);
  }
  return values.begin()->second;
}

TEST(ReducedValues, AreAsTheDefinitionSaysForRandomLayouts) {
  std::set<ReduceOp> ops_seen;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    oracle::Dice dice(seed);
    TensorTransfer tensor;
    tensor.shape = oracle::RandomShape(&dice, 3, 60);
    tensor.src_dtype = tensor.dst_dtype = DType::kI64;
    const int ranks = static_cast<int>(dice.Between(1, 12));
    std::vector<int> all(static_cast<size_t>(ranks));
    for (int r = 0; r < ranks; ++r) all[static_cast<size_t>(r)] = 3 * r + 1;
    tensor.src.mesh = oracle::RandomMesh(&dice, all);
    tensor.src.placements =
        oracle::RandomPlacements(&dice, tensor.src.mesh, static_cast<int>(tensor.shape.size()));
    tensor.src.order = oracle::RandomOrder(&dice, tensor.src.mesh);
    for (Placement& placement : tensor.src.placements) {
      if (!dice.Chance(50)) continue;
      placement = Placement::Partial(kOps[dice.Between(0, 4)]);
      ops_seen.insert(placement.op);
    }
    const auto values = ValuesOf(tensor, 65521, static_cast<int64_t>(seed));
    for (size_t g = 0; g < values.size(); ++g) {
      ASSERT_EQ(values[g],
                BruteValue(tensor, static_cast<int64_t>(g), static_cast<int64_t>(seed), 65521))
          << "element " << g << " of " << oracle::Describe(tensor.src, tensor.shape);
    }
  }
  EXPECT_EQ(ops_seen.size(), 5u);
}

TEST(ReducedValues, ReduceInTheSourceDTypeThenCast) {
  TensorTransfer tensor = MakeTensor({5}, {4}, {0, 1, 2, 3}, "P(sum)");
  tensor.src_dtype = DType::kF64;
  tensor.dst_dtype = DType::kBF16;
  std::vector<double> wide(5);
  TensorTransfer same = tensor;
  same.dst_dtype = DType::kF64;
  ReducedValues(same, Fill{251, 0}).Write(0, 5, reinterpret_cast<std::byte*>(wide.data()));
  std::vector<uint16_t> narrow(5);
  ReducedValues(tensor, Fill{251, 0}).Write(0, 5, reinterpret_cast<std::byte*>(narrow.data()));
  std::vector<uint16_t> cast(5);
  ConvertElements(DType::kF64, reinterpret_cast<const std::byte*>(wide.data()), 5, DType::kBF16,
                  reinterpret_cast<std::byte*>(cast.data()));
  EXPECT_EQ(narrow, cast);
}

TEST(ReducedValues, AnyStretchIsAPartOfTheWhole) {
  const TensorTransfer tensor = MakeTensor(
      {7, 30, 5}, {2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, "S(0),P(avg),SS(1,4)");
  const std::vector<int64_t> all = ValuesOf(tensor, 65521, 1);
  const ReducedValues reduced(tensor, Fill{65521, 1});
  for (size_t g = 0; g < all.size(); g += 13) {
    const size_t count = std::min<size_t>(all.size() - g, 1 + g % 101);
    std::vector<int64_t> part(count);
    reduced.Write(static_cast<int64_t>(g), static_cast<int64_t>(count),
                  reinterpret_cast<std::byte*>(part.data()));
    ASSERT_TRUE(std::equal(part.begin(), part.end(), all.begin() + static_cast<int64_t>(g))) << g;
  }
}

// The sources' own filling adds up to what targets must hold.
TEST(MakeSourceFiller, ReplicasAgreeAndContributionsDiffer) {
  const TensorTransfer tensor = MakeTensor({4}, {2, 2}, {9, 4, 2, 7}, "R,P(max)");
  const auto first = [&](int rank) {
    int64_t value = 0;
    MakeSourceFiller(tensor, rank, Fill{65521, 0})
        .Write(0, 1, reinterpret_cast<std::byte*>(&value));
    return value;
  };
  EXPECT_EQ(first(9), first(2));
  EXPECT_EQ(first(2), 2 * 40503 % 65521);
  EXPECT_EQ(first(4), first(7));
  EXPECT_EQ(first(7), 4 * 40503 % 65521);
  TensorTransfer plain = MakeTensor({4}, {2}, {9, 4}, "S(0)");
  int64_t value = -1;
  MakeSourceFiller(plain, 9, Fill{65521, 0}).Write(0, 1, reinterpret_cast<std::byte*>(&value));
  EXPECT_EQ(value, 0);
}

// The mixed fill through the same definition: what the ranks' own fills come to.
TEST(ReducedValues, OfTheMixedFillAreTheSumsOfWhatRanksHold) {
  TensorTransfer tensor = MakeTensor({50}, {2, 2, 2}, {9, 4, 2, 7, 1, 0, 5, 3}, "P(sum),R,S(0)");
  tensor.name = "embedding";
  const Fill fill = {65521, 3, true};
  std::vector<int64_t> expected(50);
  ReducedValues(tensor, fill).Write(0, 50, reinterpret_cast<std::byte*>(expected.data()));
  std::vector<int64_t> sums(50);
  for (const int rank : {9, 4, 1, 0}) {  // one replica of each contribution to each half
    const auto lists = oracle::OwnedLists(tensor.src, tensor.shape, rank);
    for (const int64_t g : (*lists)[0]) {
      int64_t value = 0;
      MakeSourceFiller(tensor, rank, fill).Write(g, 1, reinterpret_cast<std::byte*>(&value));
      sums[static_cast<size_t>(g)] += value;
    }
  }
  EXPECT_EQ(expected, sums);
}

}  // namespace
}  // namespace sluice::bench
