// Drawing jobs.
#include "deadlock/random_job.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace sluice::deadlock {
namespace {

constexpr StageSet kSource = kStageFill | kStageMove;
constexpr StageSet kSink = kStageMove | kStageDrain;
constexpr int kMembersMax = 5;
constexpr int kRunsMax = 3;

using MeshRanks = std::vector<int>;

std::vector<MeshRanks> RandomMeshes(Random& random, int ranks) {
  std::vector<MeshRanks> meshes(static_cast<size_t>(random.Between(1, 4)));
  for (MeshRanks& mesh : meshes) {
    mesh = random.Permutation(ranks);
    mesh.resize(static_cast<size_t>(random.Between(2, ranks)));
  }
  return meshes;
}

const MeshRanks& AnyOf(Random& random, const std::vector<MeshRanks>& meshes) {
  return meshes[random.Below(meshes.size())];
}

// Up to `count` further ranks of the mesh, in random order.
std::vector<int> OthersOf(Random& random, MeshRanks mesh, const JobBucket& taken, int count) {
  for (const JobMember& member : taken) std::erase(mesh, member.rank);
  random.Shuffle(&mesh);
  mesh.resize(std::min(mesh.size(), static_cast<size_t>(count)));
  return mesh;
}

// From a rank of one mesh to one or several of another, some of which only pass the bytes on.
JobBucket RandomBroadcast(Random& random, const MeshRanks& from, const MeshRanks& to) {
  JobBucket bucket = {{.rank = from[random.Below(from.size())], .stages = kSource}};
  const int others = random.OneIn(2) ? 1 : random.Between(2, kMembersMax - 1);
  for (const int rank : OthersOf(random, to, bucket, others)) {
    const bool relays = others > 1 && random.OneIn(3);
    bucket.push_back({.rank = rank, .stages = relays ? kStageMove : kSink});
  }
  return bucket;
}

// Members of one mesh contribute. One of them owns the result, or several a share of it each. Maybe
// it goes on to a rank of another mesh.
JobBucket RandomReduction(Random& random, const MeshRanks& from, const MeshRanks& to) {
  JobBucket bucket;
  const int members = random.Between(2, kMembersMax);
  for (const int rank : OthersOf(random, from, {}, members)) {
    bucket.push_back({.rank = rank, .stages = kSource});
  }
  const size_t owners = random.OneIn(2) ? 1 : 1 + random.Below(bucket.size());
  for (size_t i = 0; i < owners; ++i) {
    bucket[i].owner = true;
    if (random.OneIn(2)) bucket[i].stages |= kStageDrain;
  }
  if (bucket.size() < kMembersMax && random.OneIn(2)) {
    for (const int rank : OthersOf(random, to, bucket, 1)) {
      bucket.push_back({.rank = rank, .stages = kSink});
    }
  }
  return bucket;
}

JobBucket RandomBucket(Random& random, const std::vector<MeshRanks>& meshes) {
  const MeshRanks& from = AnyOf(random, meshes);
  const MeshRanks& to = AnyOf(random, meshes);
  if (random.OneIn(3)) return RandomReduction(random, from, to);
  JobBucket bucket = RandomBroadcast(random, from, to);
  if (bucket.size() == 1) bucket.front().stages = kStageDrain;
  return bucket;
}

EngineOptions RandomOptions(Random& random) {
  EngineOptions options;
  const int budget_buckets = random.Between(1, 6);
  const int budget_bytes = random.Between(kSlotBytes, 6 * kSlotBytes);
  options.slots = std::min(budget_buckets, budget_bytes / kSlotBytes);
  options.max_in_flight = random.Between(1, 3);
  options.look_ahead = random.Between(1, 12);
  return options;
}

Job WithRandomRuns(Random& random, Job job) {
  const int runs = random.Between(1, kRunsMax);
  const int lanes = random.Between(1, 2);
  std::vector<int> run(job.buckets.size());
  for (int& of_bucket : run) of_bucket = random.Between(0, runs - 1);
  std::sort(run.begin(), run.end());
  std::vector<int> lane(static_cast<size_t>(runs));
  for (int& of_run : lane) of_run = random.Between(0, lanes - 1);
  return WithRuns(std::move(job), std::move(run), std::move(lane));
}

}  // namespace

Job RandomJob(Random& random, int ranks_max) {
  const int ranks = random.Between(2, ranks_max);
  const std::vector<MeshRanks> meshes = RandomMeshes(random, ranks);
  std::vector<JobBucket> kinds(static_cast<size_t>(random.Between(1, 2 * ranks)));
  for (JobBucket& kind : kinds) kind = RandomBucket(random, meshes);
  std::vector<JobBucket> buckets(static_cast<size_t>(random.Between(2, 8 * ranks)));
  for (JobBucket& bucket : buckets) bucket = kinds[random.Below(kinds.size())];

  Job job = WithRandomRuns(random, WithChannels(ranks, RandomOptions(random), std::move(buckets)));
  for (size_t i = 0; i < job.buckets.size(); ++i) {
    job.bytes.push_back(random.Between(1, kSlotBytes));
  }
  job.ordered_transport = random.OneIn(4);
  for (int rank = 0; rank < ranks; ++rank) {
    if (random.OneIn(4)) job.late_ranks |= 1U << rank;
    job.first_channel.push_back(random.Between(0, job.options.channels));
    job.start_order.push_back(random.Permutation(job.runs()));
    job.device_slots.push_back(random.OneIn(4) ? random.Between(1, 3) : 0);
  }
  return job;
}

}  // namespace sluice::deadlock
