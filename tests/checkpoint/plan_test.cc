// The pieces of a checkpoint, element by element, against explicit lists of who owns what.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "oracle/brute_layout.h"
#include "oracle/make_layout.h"
#include "oracle/random_layout.h"
#include "plan/shard/checkpoint_cells.h"
#include "plan/shard/checkpoint_pieces.h"
#include "plan/shard/checkpoint_plan.h"

namespace sluice {
namespace {

using oracle::Dice;
using oracle::IndexList;
using oracle::MakeLayout;

struct Job {
  std::vector<CheckpointPlanTensor> tensors;
  int ranks = 1;
  int64_t piece_bytes = 64;
};

Job RandomJob(uint64_t seed) {
  Dice dice(seed);
  Job job;
  job.ranks = static_cast<int>(dice.Between(1, 9));
  job.piece_bytes = dice.Pick<int64_t>({1, 64, 200, 1000, 4096});
  const int64_t count = dice.Between(1, 4);
  for (int64_t t = 0; t < count; ++t) {
    if (t > 0 && dice.Chance(30)) {
      job.tensors.push_back(job.tensors.back());
      continue;
    }
    CheckpointPlanTensor tensor;
    tensor.shape = oracle::RandomShape(&dice, 4, 500);
    tensor.element_bytes = dice.Pick<int64_t>({1, 2, 4});
    tensor.layout = oracle::RandomLayout(&dice, oracle::RankRange(0, job.ranks),
                                         static_cast<int>(tensor.shape.size()));
    job.tensors.push_back(std::move(tensor));
  }
  return job;
}

// The same where tensors lie in boxes.
Job RandomBoxJob(uint64_t seed, CheckpointFlow flow) {
  Job job = RandomJob(seed);
  Dice dice(seed + 9000);
  for (CheckpointPlanTensor& tensor : job.tensors) {
    if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) continue;
    tensor.layout = {};
    tensor.layout.boxes = oracle::RandomBoxes(&dice, tensor.shape, oracle::RankRange(0, job.ranks),
                                              flow == CheckpointFlow::kSave);
  }
  // A class of several tensors, with lists that are equal but not one.
  CheckpointPlanTensor again = job.tensors.front();
  const absl::Span<const RankBoxes> lists = again.layout.boxes.ranks();
  again.layout.boxes = *BoxList::Create({lists.begin(), lists.end()});
  job.tensors.push_back(std::move(again));
  return job;
}

// All index tuples below `sizes`, row-major.
std::vector<std::vector<int64_t>> Tuples(absl::Span<const int64_t> sizes) {
  std::vector<std::vector<int64_t>> tuples = {{}};
  for (const int64_t size : sizes) {
    std::vector<std::vector<int64_t>> longer;
    for (const std::vector<int64_t>& tuple : tuples) {
      for (int64_t i = 0; i < size; ++i) {
        longer.push_back(tuple);
        longer.back().push_back(i);
      }
    }
    tuples = std::move(longer);
  }
  return tuples;
}

// The box positions of a part's elements, row-major, by its runs.
std::vector<int64_t> InBox(const CheckpointPart& part, CheckpointFlow flow) {
  std::vector<std::vector<int64_t>> positions;  // in the box, by dimension and position in the part
  for (int d = 0; d < part.dims; ++d) {
    const size_t dim = static_cast<size_t>(d);
    std::vector<int64_t> list(static_cast<size_t>(part.extent[dim]), -1);
    for (const Stretch& run : part.runs[dim]) {
      for (int64_t i = 0; i < run.length; ++i) {
        const bool loads = flow == CheckpointFlow::kLoad;
        list[static_cast<size_t>((loads ? run.dst : run.src) + i)] =
            (loads ? run.src : run.dst) + i;
      }
    }
    positions.push_back(std::move(list));
  }
  std::vector<int64_t> flat;
  const size_t dims = static_cast<size_t>(part.dims);
  for (const auto& tuple : Tuples(absl::MakeConstSpan(part.extent.data(), dims))) {
    int64_t at = 0;
    for (size_t d = 0; d < dims; ++d) {
      at = at * part.box_size[d] + positions[d][static_cast<size_t>(tuple[d])];
    }
    flat.push_back(at);
  }
  return flat;
}

// The places of a part's elements in the local tensor, row-major.
std::vector<int64_t> InLocal(const CheckpointPart& part, const std::vector<int64_t>& local_shape) {
  std::vector<int64_t> flat;
  const size_t dims = static_cast<size_t>(part.dims);
  const size_t first = static_cast<size_t>(part.first_dim);
  for (const auto& tuple : Tuples(absl::MakeConstSpan(part.extent.data(), dims))) {
    int64_t at = 0;
    for (size_t d = 0; d < local_shape.size(); ++d) {
      at = at * local_shape[d] + part.local_begin[d] + (d < first ? 0 : tuple[d - first]);
    }
    flat.push_back(at);
  }
  return flat;
}

std::vector<CheckpointPiece> PiecesOf(CheckpointPlan* plan) {
  std::vector<CheckpointPiece> pieces;
  CheckpointPiece piece;
  while (plan->NextPiece(&piece)) pieces.push_back(piece);
  EXPECT_TRUE(plan->over());
  return pieces;
}

// A rank's local tensors, each of which has its elements in its own order.
struct Local {
  IndexList indices;  // flat, of the tensor
  std::vector<int64_t> shape;
};

std::vector<Local> LocalsOf(const CheckpointPlanTensor& tensor, int rank) {
  std::vector<Local> locals;
  for (const Box& box : tensor.layout.boxes.Of(rank)) {
    locals.push_back({oracle::FlatIndices(oracle::ListsOf(box), tensor.shape), box.shape});
  }
  if (!tensor.layout.boxes.empty()) return locals;
  const auto lists = oracle::OwnedLists(tensor.layout, tensor.shape, rank);
  if (!lists) return locals;
  Local& local = locals.emplace_back(Local{oracle::FlatIndices(*lists, tensor.shape), {}});
  for (const IndexList& list : *lists) local.shape.push_back(static_cast<int64_t>(list.size()));
  return locals;
}

// What a rank's own parts are of a piece, in elements of the tensor. They lie at their places.
IndexList OwnElements(const CheckpointPlan& plan, const CheckpointPlanTensor& tensor, int rank,
                      const CheckpointPiece& piece) {
  CheckpointParts own;
  plan.OwnPart(piece, &own);
  EXPECT_FALSE(own.parts.empty());
  const std::vector<Local> locals = LocalsOf(tensor, rank);
  IndexList elements;
  for (const CheckpointPart& part : own.parts) {
    IndexList in_box = InBox(part, plan.flow());
    for (int64_t& at : in_box) at += piece.offset / tensor.element_bytes;
    const Local& local = locals.at(static_cast<size_t>(part.view));
    IndexList by_local;
    for (const int64_t at : InLocal(part, local.shape)) {
      by_local.push_back(local.indices.at(static_cast<size_t>(at)));
    }
    EXPECT_EQ(by_local, in_box);
    EXPECT_GT(part.elements, 0);
    EXPECT_EQ(part.elements, static_cast<int64_t>(in_box.size()));
    elements.insert(elements.end(), in_box.begin(), in_box.end());
  }
  return elements;
}

void CheckJob(const Job& job, CheckpointFlow flow) {
  std::vector<std::unique_ptr<CheckpointPlan>> plans;
  std::map<int64_t, CheckpointPiece> pieces;
  std::map<int64_t, std::set<int>> members;
  // How often ranks take part with each element of each tensor.
  std::vector<std::vector<IndexList>> taken(job.tensors.size());
  for (auto& of : taken) of.resize(static_cast<size_t>(job.ranks));
  for (int rank = 0; rank < job.ranks; ++rank) {
    plans.push_back(std::make_unique<CheckpointPlan>(job.tensors, job.piece_bytes, flow, rank));
    int64_t before = -1;
    BucketId id_before;
    for (const CheckpointPiece& piece : PiecesOf(plans.back().get())) {
      EXPECT_LT(before, piece.number);
      EXPECT_TRUE(before < 0 || id_before < CheckpointPlan::IdOf(piece));
      before = piece.number;
      id_before = CheckpointPlan::IdOf(piece);
      const auto [known, added] = pieces.insert({piece.number, piece});
      EXPECT_EQ(known->second.file_rank, piece.file_rank);
      EXPECT_EQ(known->second.offset, piece.offset);
      EXPECT_EQ(known->second.bytes, piece.bytes);
      members[piece.number].insert(rank);
      const auto t = static_cast<size_t>(piece.tensor);
      EXPECT_LE(piece.bytes, std::max(job.piece_bytes, job.tensors[t].element_bytes));
      const IndexList own = OwnElements(*plans.back(), job.tensors[t], rank, piece);
      IndexList& of_rank = taken[t][static_cast<size_t>(rank)];
      of_rank.insert(of_rank.end(), own.begin(), own.end());
    }
  }
  const bool all_is_held = std::all_of(
      job.tensors.begin(), job.tensors.end(), [flow](const CheckpointPlanTensor& tensor) {
        return flow == CheckpointFlow::kSave || tensor.layout.boxes.empty();
      });
  if (all_is_held) {
    EXPECT_EQ(static_cast<int64_t>(pieces.size()), plans[0]->boxes());
  }
  for (const auto& [number, piece] : pieces) {
    const CheckpointPlan& reader = *plans[static_cast<size_t>(piece.file_rank)];
    CheckpointParts others;
    reader.OtherParts(piece, &others);
    std::map<int, std::vector<IndexList>> named;
    int messages = 0;
    for (const CheckpointPart& part : others.parts) {
      EXPECT_FALSE(part.ranks.empty());
      for (const int rank : part.ranks) {
        named[rank].push_back(InBox(part, flow));
        ++messages;
      }
    }
    EXPECT_LE(messages, reader.messages_max());
    EXPECT_EQ(piece.alone, named.empty());
    std::set<int> took = {piece.file_rank};
    for (const auto& [rank, parts] : named) {
      EXPECT_TRUE(took.insert(rank).second);
      CheckpointParts own;
      plans[static_cast<size_t>(rank)]->OwnPart(piece, &own);
      std::vector<IndexList> theirs;
      for (const CheckpointPart& part : own.parts) theirs.push_back(InBox(part, flow));
      EXPECT_EQ(parts, theirs) << "in the order in which messages meet";
    }
    EXPECT_EQ(took, members[number]);
  }
  for (size_t t = 0; t < job.tensors.size(); ++t) {
    IndexList saved;
    for (int rank = 0; rank < job.ranks; ++rank) {
      IndexList& of_rank = taken[t][static_cast<size_t>(rank)];
      std::sort(of_rank.begin(), of_rank.end());
      saved.insert(saved.end(), of_rank.begin(), of_rank.end());
      if (flow == CheckpointFlow::kSave) continue;
      IndexList held;
      for (const Local& local : LocalsOf(job.tensors[t], rank)) {
        held.insert(held.end(), local.indices.begin(), local.indices.end());
      }
      std::sort(held.begin(), held.end());
      EXPECT_EQ(of_rank, held) << "tensor " << t << " rank " << rank;
    }
    if (flow == CheckpointFlow::kLoad) continue;
    IndexList all;
    int64_t elements = 1;
    for (const int64_t size : job.tensors[t].shape) elements *= size;
    for (int64_t g = 0; g < elements; ++g) all.push_back(g);
    std::sort(saved.begin(), saved.end());
    EXPECT_EQ(saved, all) << "each element comes from one rank";
  }
}

TEST(CheckpointPlanTest, EveryElementReachesItsOwnersAndNobodyElse) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    for (const CheckpointFlow flow : {CheckpointFlow::kLoad, CheckpointFlow::kSave}) {
      for (const Job& job : {RandomJob(seed), RandomBoxJob(seed, flow)}) {
        CheckJob(job, flow);
        if (testing::Test::HasFailure()) {
          FAIL() << "seed " << seed << (flow == CheckpointFlow::kSave ? ", save: " : ": ")
                 << oracle::Describe(job.tensors[0].layout, job.tensors[0].shape);
        }
      }
    }
  }
}

TEST(CheckpointCellsTest, EachBoxHasAllOfACellOrNothing) {
  const BoxList boxes = *BoxList::Create({{0, {{{0}, {4}}}}, {3, {{{2}, {5}}}}});
  const auto cells = CutIntoCheckpointCells(boxes, {9}).value();
  const std::vector<int> none;
  std::vector<std::vector<int>> holders(9, {-1});
  for (const CheckpointCell& cell : cells) {
    for (int64_t i = 0; i < cell.box.shape[0]; ++i) {
      std::vector<int>& of = holders.at(static_cast<size_t>(cell.box.offset[0] + i));
      EXPECT_EQ(of, std::vector<int>{-1}) << "two cells overlap";
      of = cell.ranks;
    }
  }
  const std::vector<int> first = {0}, both = {0, 3}, last = {3};
  EXPECT_EQ(holders, (std::vector<std::vector<int>>{first, first, both, both, last, last, last,
                                                    none, none}));
}

// Rank 1 of two has the second half of the rows.
TEST(CheckpointPiecesTest, BoxesAreStretchesOfTheTensorOneBehindTheOther) {
  const CheckpointPlanTensor tensor = {
      {64, 16}, 2, MakeLayout({2}, oracle::RankRange(0, 2), "S(0)")};
  const auto pieces = RegionPiecesOf(tensor, 100, CheckpointFlow::kLoad, 1);
  int64_t end = 0;
  for (int64_t box = 0; box < pieces->boxes(); ++box) {
    EXPECT_EQ(pieces->OffsetOf(box), end);
    EXPECT_LE(pieces->BytesOf(box), 100);
    end += pieces->BytesOf(box);
  }
  EXPECT_EQ(end, 64 * 16 * 2);
  EXPECT_FALSE(pieces->packs()) << "whole rows";
  for (int64_t own = 0; own < pieces->OwnBoxes(); ++own) {
    const int64_t box = pieces->OwnBox(own);
    EXPECT_GT(pieces->OffsetOf(box) + pieces->BytesOf(box), 32 * 16 * 2);
  }
  EXPECT_EQ(pieces->OwnBox(pieces->OwnBoxes() - 1), pieces->boxes() - 1);
}

// Two of four ranks hold half of the rows: what nobody holds is not read.
TEST(CheckpointPlanTest, WhatNobodyHoldsIsNotRead) {
  CheckpointPlanTensor tensor = {{64, 16}, 2, {}};
  tensor.layout.boxes = *BoxList::Create({{1, {{{0, 0}, {16, 16}}}}, {3, {{{48, 0}, {16, 16}}}}});
  int64_t bytes = 0;
  for (int rank = 0; rank < 4; ++rank) {
    CheckpointPlan plan({tensor}, 128, CheckpointFlow::kLoad, rank);
    for (const CheckpointPiece& piece : PiecesOf(&plan)) {
      EXPECT_EQ(piece.file_rank, rank);
      EXPECT_TRUE(piece.alone);
      bytes += piece.bytes;
    }
  }
  EXPECT_EQ(bytes, 2 * 16 * 16 * 2);
}

// Some ranks have one mesh for all tensors, others make one for each: they plan alike.
TEST(CheckpointPlanTest, EqualMeshesNeedNotBeOne) {
  const auto tensors = [](bool shared) {
    std::vector<CheckpointPlanTensor> made;
    const Layout all = {*Mesh::Create({3}, {0, 1, 2}), {Placement::Replicate()}};
    for (int t = 0; t < 12; ++t) {
      const Layout own = {*Mesh::Create({3}, {0, 1, 2}), {Placement::Replicate()}};
      made.push_back({{4 + t % 2}, 4, shared ? all : own});
    }
    return made;
  };
  CheckpointPlan one(tensors(true), 8, CheckpointFlow::kLoad, 0);
  CheckpointPlan many(tensors(false), 8, CheckpointFlow::kLoad, 0);
  const std::vector<CheckpointPiece> a = PiecesOf(&one), b = PiecesOf(&many);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].file_rank, b[i].file_rank) << i;
}

// The most and the least bytes of files that a rank has.
std::pair<int64_t, int64_t> FileBytes(const std::vector<CheckpointPlanTensor>& tensors,
                                      int64_t piece_bytes, int ranks) {
  std::pair<int64_t, int64_t> most_least = {0, INT64_MAX};
  for (int rank = 0; rank < ranks; ++rank) {
    CheckpointPlan plan(tensors, piece_bytes, CheckpointFlow::kLoad, rank);
    int64_t bytes = 0;
    for (const CheckpointPiece& piece : PiecesOf(&plan)) {
      if (piece.file_rank == rank) bytes += piece.bytes;
    }
    most_least = {std::max(most_least.first, bytes), std::min(most_least.second, bytes)};
  }
  return most_least;
}

TEST(CheckpointPlanTest, AllRanksReadAlike) {
  for (const char* placements : {"R,S(0)", "S(0),R", "R,R", "S(0),S(1)", "R,S(1)", "S(1),S(0)"}) {
    const Layout layout = MakeLayout({4, 4}, oracle::RankRange(0, 16), placements);
    const std::vector<CheckpointPlanTensor> tensors(16, {{256, 256}, 2, layout});
    const auto [most, least] = FileBytes(tensors, 8192, 16);
    EXPECT_LE(most, least + least / 8) << placements;
  }
  // Many tensors of one box each, as norms are.
  const std::vector<CheckpointPlanTensor> small(
      256, {{128}, 2, MakeLayout({4, 4}, oracle::RankRange(0, 16), "R,R")});
  const auto [most, least] = FileBytes(small, 8192, 16);
  EXPECT_EQ(most, least);
}

// 512 ranks, 1000 tensors, 160 GB: arithmetic alone.
TEST(CheckpointPlanTest, ALargeJobIsPlannedByEachRankForItself) {
  const Layout dense = MakeLayout({64, 8}, oracle::RankRange(0, 512), "S(0),S(1)");
  const Layout norm = MakeLayout({64, 8}, oracle::RankRange(0, 512), "R,R");
  std::vector<CheckpointPlanTensor> tensors;
  for (int layer = 0; layer < 500; ++layer) {
    tensors.push_back({{16384, 10240}, 2, dense});
    tensors.push_back({{10240}, 2, norm});
  }
  CheckpointPlan plan(tensors, int64_t{8} << 20, CheckpointFlow::kLoad, 77);
  int64_t bytes = 0;
  for (const CheckpointPiece& piece : PiecesOf(&plan)) bytes += piece.bytes;
  EXPECT_GT(bytes, int64_t{500} * 16384 / 64 * 10240 * 2);
  EXPECT_GT(plan.boxes(), 500 * 40);
}

}  // namespace
}  // namespace sluice
