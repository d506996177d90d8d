// The plan hash: equal for equal inputs, and each part follows its inputs and no others.
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plan/job.h"
#include "plan/plan.h"
#include "sluice/layout.h"
#include "sluice/tensor.h"

namespace sluice {
namespace {

using oracle::Job;
using oracle::MakeLayout;
using oracle::MakeTensor;
using ::testing::UnorderedElementsAre;
using ::testing::UnorderedElementsAreArray;

Job MakeJob() {
  Job job;
  job.node_of_rank = {0, 0, 1, 1};
  for (const char* name : {"a", "b", "c"}) {
    job.spec.tensors.push_back(MakeTensor(name, {8, 6}, DType::kF32,
                                          MakeLayout({2, 2}, {0, 1, 2, 3}, "S(0),R"),
                                          MakeLayout({4}, {3, 2, 1, 0}, "SS(1,2)")));
  }
  return job;
}

PlanHash HashOf(const Job& job) { return HashPlan(job.spec, job.options()); }

// The parts that differ between two hashes.
std::set<std::string> Differences(const PlanHash& a, const PlanHash& b) {
  std::set<std::string> parts;
  if (a.names != b.names) parts.insert("names");
  if (a.tensors != b.tensors) parts.insert("tensors");
  if (a.layouts != b.layouts) parts.insert("layouts");
  if (a.options != b.options) parts.insert("options");
  if (a.all != b.all) parts.insert("all");
  return parts;
}

struct Change {
  const char* what;
  const char* part;
  std::function<void(Job*)> apply;
};

const std::vector<Change>& SinglePartChanges() {
  static const auto* const kChanges = new std::vector<Change>{
      {"a name", "names", [](Job* j) { j->spec.tensors[1].name.push_back('x'); }},
      {"names swapped", "names",
       [](Job* j) { std::swap(j->spec.tensors[0].name, j->spec.tensors[1].name); }},
      {"letters moved", "names",
       [](Job* j) {
         j->spec.tensors[0].name += j->spec.tensors[1].name;
         j->spec.tensors[1].name.clear();
       }},
      {"a shape", "tensors", [](Job* j) { j->spec.tensors[2].shape[0] = 9; }},
      {"a shape turned", "tensors",
       [](Job* j) {
         j->spec.tensors[2].shape = {6, 8};
       }},
      {"a shape folded", "tensors",
       [](Job* j) {
         j->spec.tensors[2].shape = {8, 6, 1};
       }},
      {"sizes moved between tensors", "tensors",
       [](Job* j) {
         j->spec.tensors[0].shape = {8, 6, 8};
         j->spec.tensors[1].shape = {6};
       }},
      {"source dtype", "tensors", [](Job* j) { j->spec.tensors[0].src_dtype = DType::kI32; }},
      {"target dtype", "tensors", [](Job* j) { j->spec.tensors[0].dst_dtype = DType::kI32; }},
      {"both dtypes of one size", "tensors",
       [](Job* j) { j->spec.tensors[0].src_dtype = j->spec.tensors[0].dst_dtype = DType::kU32; }},
      {"source ranks", "layouts",
       [](Job* j) {
         j->spec.tensors[0].src = MakeLayout({2, 2}, {0, 1, 3, 2}, "S(0),R");
       }},
      {"target ranks", "layouts",
       [](Job* j) {
         j->spec.tensors[2].dst = MakeLayout({4}, {0, 1, 2, 3}, "SS(1,2)");
       }},
      {"mesh sizes", "layouts",
       [](Job* j) {
         j->spec.tensors[0].src = MakeLayout({4, 1}, {0, 1, 2, 3}, "S(0),R");
       }},
      {"kind of placement", "layouts",
       [](Job* j) { j->spec.tensors[1].src.placements[1] = Placement::Shard(0); }},
      {"cut dimension", "layouts",
       [](Job* j) { j->spec.tensors[1].src.placements[0] = Placement::Shard(1); }},
      {"split factor", "layouts",
       [](Job* j) { j->spec.tensors[1].dst.placements[0] = Placement::StridedShard(1, 3); }},
      {"contributions", "layouts",
       [](Job* j) { j->spec.tensors[1].src.placements[1] = Placement::Partial(ReduceOp::kSum); }},
      {"op of contributions", "layouts",
       [](Job* j) { j->spec.tensors[1].src.placements[1] = Placement::Partial(ReduceOp::kMax); }},
      {"order of visits", "layouts",
       [](Job* j) {
         j->spec.tensors[1].src.order = {1, 0};
       }},
      {"sides swapped", "layouts",
       [](Job* j) { std::swap(j->spec.tensors[1].src, j->spec.tensors[1].dst); }},
      {"a slice", "layouts",
       [](Job* j) {
         j->spec.tensors[1].src.whole = {16, 6};
         j->spec.tensors[1].src.offset = {8, 0};
       }},
      {"another slice", "layouts",
       [](Job* j) {
         j->spec.tensors[1].src.whole = {16, 6};
         j->spec.tensors[1].src.offset = {4, 0};
       }},
      {"a box", "layouts",
       [](Job* j) {
         j->spec.tensors[1].src.boxes = *BoxList::Create({{0, {{{0, 0}, {8, 6}}}}});
       }},
      {"another box", "layouts",
       [](Job* j) {
         j->spec.tensors[1].src.boxes = *BoxList::Create({{0, {{{0, 0}, {8, 3}}}}});
       }},
      {"bucket_bytes", "options", [](Job* j) { j->bucket_bytes += 1; }},
      {"max_in_flight", "options", [](Job* j) { j->max_in_flight += 1; }},
      {"slots", "options", [](Job* j) { j->slots += 1; }},
      {"relays", "options", [](Job* j) { j->relay = false; }},
      {"joining", "options", [](Job* j) { j->coalesce = false; }},
      {"nodes", "options",
       [](Job* j) {
         j->node_of_rank = {0, 1, 0, 1};
       }},
      {"a window", "options", [](Job* j) { j->spec.tensors[1].window = 1; }},
      {"another tensor's window", "options", [](Job* j) { j->spec.tensors[2].window = 1; }},
      {"priority class", "options", [](Job* j) { j->spec.priority_class = 1; }},
      {"one more rank", "options",
       [](Job* j) {
         j->node_of_rank = {0, 0, 1, 1, 1};
       }},
  };
  return *kChanges;
}

TEST(PlanHashTest, EqualContentHashesEqual) {
  EXPECT_EQ(Differences(HashOf(MakeJob()), HashOf(MakeJob())), std::set<std::string>());
}

TEST(PlanHashTest, SharedMeshesHashAsEqualOnes) {
  Job shared = MakeJob();
  for (TensorTransfer& tensor : shared.spec.tensors) {
    tensor.src.mesh = shared.spec.tensors[0].src.mesh;
    tensor.dst.mesh = shared.spec.tensors[0].dst.mesh;
  }
  EXPECT_EQ(Differences(HashOf(MakeJob()), HashOf(shared)), std::set<std::string>());
}

TEST(PlanHashTest, EachChangeShowsInItsPartAlone) {
  const PlanHash before = HashOf(MakeJob());
  std::set<uint64_t> seen = {before.all};
  for (const Change& change : SinglePartChanges()) {
    Job job = MakeJob();
    change.apply(&job);
    EXPECT_THAT(Differences(before, HashOf(job)), UnorderedElementsAre(change.part, "all"))
        << change.what;
    EXPECT_TRUE(seen.insert(HashOf(job).all).second) << change.what;
  }
}

// What sessions choose, and no job says.
TEST(PlanHashTest, SlotsAndCachesShowToo) {
  const Job job = MakeJob();
  PlanOptions options = job.options();
  options.slot_bytes += 1;
  EXPECT_THAT(Differences(HashOf(job), HashPlan(job.spec, options)),
              UnorderedElementsAre("options", "all"));
  options = job.options();
  options.cache_bytes += 1;
  EXPECT_THAT(Differences(HashOf(job), HashPlan(job.spec, options)),
              UnorderedElementsAre("options", "all"));
}

TEST(PlanHashTest, TensorCountShowsInEveryPart) {
  Job job = MakeJob();
  job.spec.tensors.pop_back();
  const std::vector<std::string> expected = {"names", "tensors", "layouts", "options", "all"};
  EXPECT_THAT(Differences(HashOf(MakeJob()), HashOf(job)), UnorderedElementsAreArray(expected));
}

TEST(PlanHashTest, TensorOrderMatters) {
  Job job = MakeJob();
  job.spec.tensors[0].shape = {4, 4};
  job.spec.tensors[0].dst.placements = {Placement::Replicate()};
  Job swapped = job;
  std::swap(swapped.spec.tensors[0], swapped.spec.tensors[1]);
  const std::vector<std::string> expected = {"names", "tensors", "layouts", "all"};
  EXPECT_THAT(Differences(HashOf(job), HashOf(swapped)), UnorderedElementsAreArray(expected));
}

}  // namespace
}  // namespace sluice
