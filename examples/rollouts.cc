// Generation beside training: all ranks play rollouts while trainers train on those before, and the
// new weights go back to all of them.
//
// Each rank makes its share of every batch, with a simulator whose result depends on the weights,
// and gets the shares of the others. Batch N + 1 is made while update N is computed. Then a
// transfer of the same session brings the weights from the trainers, the first half of the ranks
// (FSDP), to all. The example checks which update each rollout saw, and the order. The rollouts
// must be those of a loop without overlap, bit by bit, whatever the number of ranks. Neither budget
// may have been exceeded. Computing is a sleep beside some arithmetic, so that ranks may outnumber
// cores.
//
//   mpirun -np 4 rollouts [--trace FILE] [--messages]
//   scripts/spawn.sh -n 4 rollouts     # without MPI
//     --trace FILE  writes what stream and transfers did, on all ranks, for ui.perfetto.dev
//     --messages    sends messages within a node, too, instead of copying
#include "rollouts.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "rollouts_report.h"
#include "sluice/session.h"
#include "sluice/stream.h"

namespace {

using rollouts::Check;
using rollouts::Head;
using rollouts::kBatches;
using rollouts::kPerBatch;
using rollouts::kWeights;
using rollouts::Policy;
using rollouts::Seen;
using sluice::Mesh;
using sluice::Placement;

constexpr absl::Duration kUpdateTime = absl::Milliseconds(10);
constexpr absl::Duration kWordTime = absl::Nanoseconds(250);  // of a rollout
constexpr int64_t kBuckets = 4;                               // the transfers' budget
constexpr int64_t kStreamBytes = int64_t{4} << 20;            // the stream's budget

sluice::Layout LayoutOf(int ranks, Placement placement) {
  std::vector<int> all(static_cast<size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return {Mesh::Create({ranks}, all).value(), {placement}};
}

// Trainers have the weights by shards; every rank gets all, and how many updates are in them.
sluice::TransferSpec MakeSpec(int ranks, int trainers) {
  sluice::TransferSpec spec;
  const auto add = [&](const char* name, size_t count, int sources, Placement placement) {
    sluice::TensorTransfer tensor;
    tensor.name = name;
    tensor.shape = {static_cast<int64_t>(count)};
    tensor.src_dtype = tensor.dst_dtype = sluice::DType::kU64;
    tensor.src = LayoutOf(sources, placement);
    tensor.dst = LayoutOf(ranks, Placement::Replicate());
    spec.tensors.push_back(std::move(tensor));
  };
  add("weights", kWeights, trainers, Placement::Shard(0));
  add("updates", 1, 1, Placement::Replicate());
  return spec;
}

class Actor {
 public:
  Actor(examples::Ranks* ranks, sluice::Session* session, int trainers)
      : ranks_(ranks),
        session_(session),
        transfer_(Check(ranks, session->Compile(MakeSpec(session->size(), trainers)))) {
    const sluice::TensorTransfer& weights = transfer_->spec().tensors[0];
    if (session->rank() < trainers) {
      const auto ranges = Check(ranks, OwnedRanges(weights.src, weights.shape, session->rank()));
      if (!ranges[0].empty()) {  // uneven shards may be
        first_ = static_cast<size_t>(ranges[0].front().begin);
        shard_.resize(static_cast<size_t>(ranges[0].back().end) - first_, rollouts::kNothing);
      }
    }
  }

  // Takes all batches: computes an update with each while the next is made, then has all ranks
  // play with it.
  void Run() {
    stream_ = Check(ranks_, OpenStream(session_, Options()));
    sluice::Lease lease = Check(ranks_, stream_->Next());
    for (int64_t batch = 0; !lease.end(); ++batch) {
      const uint64_t digest = Look(lease, batch);
      rollouts::Learn(digest, first_, absl::MakeSpan(shard_));
      ++updates_;
      absl::SleepFor(kUpdateTime);
      sluice::Lease next = Check(ranks_, stream_->Next());
      Publish();  // nothing is being made now
      stream_->EndUpdate();
      lease = std::move(next);
    }
    const sluice::StreamStats stats = stream_->stats();
    seen_.stream_peak = stats.budget_bytes_peak;
    seen_.stream_budget = stats.budget_bytes;
    seen_.staleness = stats.staleness_max;
    seen_.played_us = played_ns_ / 1000;
    stream_ = nullptr;
  }

  uint64_t digest() const { return digest_; }
  Seen seen() const { return seen_; }

 private:
  sluice::StreamOptions Options() {
    sluice::StreamOptions options;
    options.source.sized_generator = [this](int64_t item,
                                            absl::Span<std::byte> into) -> absl::StatusOr<int64_t> {
      const auto rollout = rollouts::Play(policy_, static_cast<uint64_t>(item),
                                          static_cast<uint64_t>(session_->rank()));
      const auto words = static_cast<int64_t>(rollout.size());
      absl::SleepFor(kWordTime * words);
      played_ns_ += absl::ToInt64Nanoseconds(kWordTime * words);
      std::memcpy(into.data(), rollout.data(), rollout.size() * sizeof(uint64_t));
      return words * int64_t{sizeof(uint64_t)};
    };
    options.source.item_bytes = rollouts::kWordsMax * sizeof(uint64_t);
    options.source.generator_items = kBatches * kPerBatch;
    options.source.generate_order = sluice::GenerateOrder::kOneAhead;
    options.buffers.batch_items = kPerBatch;
    options.reads.budget_bytes = kStreamBytes;
    return options;
  }

  // The digest of the batch. Counts its rollouts, and those that are wrong.
  uint64_t Look(const sluice::Lease& lease, int64_t batch) {
    uint64_t digest = rollouts::kNothing;
    for (int64_t i = 0; i < lease.items(); ++i) {
      const sluice::TensorView view = lease.view(i);
      std::vector<uint64_t> rollout(static_cast<size_t>(view.shape[0]) / sizeof(uint64_t));
      std::memcpy(rollout.data(), static_cast<std::byte*>(view.data) + view.byte_offset,
                  rollout.size() * sizeof(uint64_t));
      Head head = {};
      std::memcpy(&head, rollout.data(), sizeof(head));
      ++seen_.rollouts;
      if (head.item != static_cast<uint64_t>(batch * kPerBatch + i)) ++seen_.out_of_order;
      if (head.updates != rollouts::UpdatesSeen(batch)) ++seen_.wrong_update;
      if (head.actor == static_cast<uint64_t>(session_->rank())) ++seen_.made_here;
      digest = rollouts::Add(digest, rollout);
      digest_ = rollouts::Add(digest_, rollout);
    }
    return digest;
  }

  void Publish() {
    const std::vector<int64_t> one = {1};
    const std::vector<int64_t> all = {static_cast<int64_t>(kWeights)};
    const std::vector<int64_t> own = {static_cast<int64_t>(shard_.size())};
    constexpr auto kU64 = sluice::DType::kU64;
    const std::vector<sluice::TensorView> from = {sluice::DenseView(shard_.data(), own, kU64),
                                                  sluice::DenseView(&updates_, one, kU64)};
    const std::vector<sluice::TensorView> to = {
        sluice::DenseView(policy_.weights.data(), all, kU64),
        sluice::DenseView(&policy_.updates, one, kU64)};
    ranks_->CheckOk(Check(ranks_, session_->Start(transfer_, from, to)).Wait());
  }

  examples::Ranks* const ranks_;
  sluice::Session* const session_;
  sluice::Transfer* const transfer_;
  Policy policy_;                // what this rank plays with
  std::vector<uint64_t> shard_;  // what this rank trains
  size_t first_ = 0;
  uint64_t updates_ = 0;
  std::unique_ptr<sluice::Stream> stream_;
  Seen seen_;
  std::atomic<int64_t> played_ns_ = 0;
  uint64_t digest_ = rollouts::kNothing;
};

int Run(int argc, char** argv, examples::Ranks* ranks) {
  std::string trace;
  sluice::SessionOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--messages") {
      options.direct = false;
    } else if (argument == "--trace" && i + 1 < argc) {
      trace = argv[++i];
    } else {
      return rollouts::Usage(*ranks, argument);
    }
  }
  options.budget_buckets = kBuckets;
  options.bucket_bytes = 64 << 10;
  options.trace_events = trace.empty() ? 0 : 1 << 16;
  auto fabric = Check(ranks, ranks->MakeFabric());
  // So that rollouts cross while a trainer computes, where the fabric allows it.
  options.progress_thread = fabric->CheckOtherThread().ok();
  auto session = Check(ranks, sluice::Session::Create(std::move(fabric), options));
  ranks->SetMeanwhile([&] { session->Poll().IgnoreError(); });

  const absl::Time begin = absl::Now();
  Actor actor(ranks, session.get(), std::max(1, session->size() / 2));
  actor.Run();
  Seen seen = actor.seen();
  seen.took_us = absl::ToInt64Microseconds(absl::Now() - begin);
  seen.computed_us = absl::ToInt64Microseconds(kBatches * kUpdateTime);
  seen.buckets_peak = session->counters().buckets_peak;
  seen.staging_peak = session->counters().staging_bytes_peak;
  bool right = rollouts::Report(ranks, seen, actor.digest(), kBuckets);
  if (!trace.empty()) right = rollouts::WriteTrace(ranks, *session, trace) && right;
  ranks->SetMeanwhile(nullptr);
  ranks->CheckOk(session->Close());
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  examples::Ranks ranks;
  return Run(argc, argv, &ranks);
}
