// Positions of ranks against a sorted set of them.
#include "plan/positions.h"

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"
#include "plan/job.h"
#include "sluice/layout.h"

namespace sluice {
namespace {

Mesh MeshOf(std::vector<int> ranks) {
  const auto count = static_cast<int64_t>(ranks.size());
  return *Mesh::Create({count}, std::move(ranks));
}

void ExpectNumbered(const Positions& positions, const std::set<int>& ranks) {
  EXPECT_EQ(positions.count(), static_cast<int64_t>(ranks.size()));
  int64_t next = 0;
  for (const int rank : ranks) EXPECT_EQ(positions.Of(rank), next++) << "rank " << rank;
}

TEST(PositionsTest, RanksOfAllMeshesAreNumberedInTheirOrder) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    oracle::Dice dice(seed);
    std::set<int> ranks;
    std::vector<Mesh> meshes;
    Positions positions;
    for (int64_t m = dice.Between(1, 4); m > 0; --m) {
      std::vector<int> some = oracle::RankRange(static_cast<int>(dice.Between(0, 150)),
                                                static_cast<int>(dice.Between(1, 40)));
      dice.Shuffle(&some);
      ranks.insert(some.begin(), some.end());
      meshes.push_back(MeshOf(some));
      positions.Add(meshes.back());
    }
    positions.Add(meshes[0]);
    positions.Number();
    ExpectNumbered(positions, ranks);
  }
}

TEST(PositionsTest, WordsOfBitsEndBetweenRanks) {
  const std::set<int> ranks = {0, 62, 63, 64, 65, 127, 128, 1023, 1024};
  Positions positions;
  const Mesh mesh = MeshOf({ranks.begin(), ranks.end()});
  positions.Add(mesh);
  positions.Number();
  ExpectNumbered(positions, ranks);
}

TEST(PositionsTest, WithoutMeshesThereIsNone) {
  Positions positions;
  positions.Number();
  EXPECT_EQ(positions.count(), 0);
}

}  // namespace
}  // namespace sluice
