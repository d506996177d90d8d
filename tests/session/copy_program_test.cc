// Copy programs beside the copies that they stand for, on random transfers and views.
#include "session/transfer/copy_program.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "device/strided_copy.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"
#include "oracle/sampled.h"
#include "session/planned.h"
#include "session/rank_memory.h"
#include "session/transfer/bucket_sides.h"

namespace sluice {
namespace {

using session_test::RankMemory;

constexpr size_t kMargin = 64;

// A slot between bytes that nobody may write.
std::vector<std::byte> MakeSlot(const Bucket& bucket) {
  const auto bytes = static_cast<size_t>(std::max(bucket.bytes, bucket.staging_bytes));
  return std::vector<std::byte>(bytes + 2 * kMargin, std::byte{0xA5});
}

void AppendElements(const BoundView& view, size_t dim, const std::byte* at,
                    std::vector<std::byte>* bytes) {
  if (dim == static_cast<size_t>(view.dims)) {
    bytes->insert(bytes->end(), at, at + view.element_bytes);
    return;
  }
  for (int64_t i = 0; i < view.shape[dim]; ++i) {
    AppendElements(view, dim + 1, at + i * view.stride_bytes[dim], bytes);
  }
}

// What views show, one after another.
std::vector<std::byte> ElementsOf(absl::Span<const BoundView> views) {
  std::vector<std::byte> bytes;
  for (const BoundView& view : views) {
    if (view.base != nullptr) AppendElements(view, 0, view.base, &bytes);
  }
  return bytes;
}

// A run, and memory for it of random styles.
struct BoundRun {
  BoundRun(const CompiledTransfer& transfer, int rank)
      : run(&transfer, &events), spec(transfer.spec()), rank(rank) {}

  void Bind(std::optional<uint64_t> style) {
    memory = std::make_unique<RankMemory>(spec, rank, style);
    memory->Prepare(1);
    run.Reset(++number, StartOptions());
    const absl::Status status = run.Bind(memory->src(), memory->dst());
    ASSERT_TRUE(status.ok()) << status;
    run.Release();
  }

  std::deque<RunEvent> events;
  TransferRun run;
  TransferSpec spec;
  int rank;
  RunId number = 0;
  std::unique_ptr<RankMemory> memory;
};

// The two runs have equal memory, at other addresses. One replays what the other copies.
class ProgramCheck {
 public:
  ProgramCheck(const CompiledTransfer& transfer, int rank)
      : plan_(transfer.plan()), replaying_(transfer, rank), copying_(transfer, rank) {}

  void Check(std::optional<uint64_t> style, oracle::Dice* dice) {
    replaying_.Bind(style);
    copying_.Bind(style);
    for (size_t i = 0; i < plan_.buckets.size(); ++i) CheckBucket(i, dice);
    ASSERT_EQ(ElementsOf(replaying_.run.dst()), ElementsOf(copying_.run.dst()));
    ASSERT_EQ(replaying_.memory->CheckSources(1), "");
  }

  int replayed() const { return replayed_; }
  int copied() const { return copied_; }

 private:
  void CheckBucket(size_t index, oracle::Dice* dice) {
    const Bucket& bucket = plan_.buckets[index];
    if (bucket.contribution_bytes > 0) return;
    const StageSet stages = PartOf(copying_.run, bucket).stages;
    const absl::Span<const Chunk> chunks = ChunksOf(plan_, bucket);
    TransferRun& run = replaying_.run;
    std::vector<std::byte> found = MakeSlot(bucket), wanted = found;
    if ((stages & kStageFill) != 0) {
      for (const Chunk& chunk : chunks) {
        CopyStrided(PackCopy(copying_.run, chunk, wanted.data() + kMargin));
      }
      if (Count(run.program()->Pack(run, index, found.data() + kMargin))) {
        ASSERT_EQ(found, wanted);
      }
    }
    if (bucket.role == Role::kLocal) {
      if (Count(run.program()->CopyLocally(run, index))) {
        for (const Chunk& chunk : chunks) CopyStrided(LocalCopy(copying_.run, chunk));
      }
    } else if ((stages & kStageDrain) != 0) {
      for (std::byte& byte : wanted) byte = static_cast<std::byte>(dice->Between(0, 255));
      if (Count(run.program()->Unpack(run, index, wanted.data() + kMargin))) {
        for (const Chunk& chunk : chunks) {
          CopyStrided(UnpackCopy(copying_.run, chunk, wanted.data() + kMargin));
        }
      }
    }
  }
  bool Count(bool replayed) {
    ++(replayed ? replayed_ : copied_);
    return replayed;
  }

  const Plan& plan_;
  BoundRun replaying_;
  BoundRun copying_;
  int replayed_ = 0;
  int copied_ = 0;
};

TEST(CopyProgramTest, CopiesWhatTheCopiesCopy) {
  constexpr int kRanks = 3;
  constexpr int kJobs = oracle::Sampled(300);
  const std::vector<int> nodes = {0, 0, 1};
  int replayed = 0, copied = 0;
  for (uint64_t seed = 1; seed <= kJobs; ++seed) {
    oracle::Dice dice(seed);
    const session_test::RandomJob job = session_test::MakeRandomJob(seed, kRanks);
    const TransferSpec& spec = job.specs[0];
    const PlanOptions options = {.bucket_bytes = dice.Between(64, 4096),
                                 .max_in_flight = 2,
                                 .node_of_rank = nodes,
                                 .coalesce = true};
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto transfer = CompiledTransfer::Make(spec, options, rank, 0);
      ASSERT_TRUE(transfer.ok()) << transfer.status();
      ProgramCheck check(**transfer, rank);
      // Equal views at other addresses, other strides, and the first ones again.
      for (const uint64_t style : {0, 0, 7, 9, 0}) {
        check.Check(style == 0 ? std::optional<uint64_t>() : style + seed, &dice);
        if (HasFatalFailure()) FAIL() << "seed " << seed << ", rank " << rank;
      }
      replayed += check.replayed();
      copied += check.copied();
    }
  }
  EXPECT_GT(replayed, kJobs / 4);
  EXPECT_GT(copied, kJobs / 4);
}

}  // namespace
}  // namespace sluice
