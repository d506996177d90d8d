// What the gate costs per bucket, from submission to retirement: Submit, and Next and Finish for
// each of its two stages. One iteration is one bucket. Also counts heap allocations per bucket.
// Goals: at most 1 us at 10 and at 100,000 channels, and no allocation.
#include "engine/engine.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <numeric>
#include <random>
#include <vector>

#include "benchmark/benchmark.h"

namespace {

thread_local int64_t allocations = 0;

void* Allocate(size_t bytes, size_t alignment) {
  ++allocations;
  // aligned_alloc wants a multiple of the alignment, and more than nothing.
  const size_t rounded = std::max(alignment, (bytes + alignment - 1) / alignment * alignment);
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace sluice {
namespace {

// The buckets of one run: every channel's first, then every channel's second. Channels come in a
// random but fixed order, so that their records are met in an order no cache can foresee.
std::vector<Submission> OneRun(int channels) {
  std::vector<int> order(static_cast<size_t>(channels));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  std::vector<Submission> run;
  run.reserve(2 * order.size());
  for (uint64_t round = 0; round < 2; ++round) {
    for (size_t i = 0; i < order.size(); ++i) {
      run.push_back({.id = BucketId({.round = round, .phase = i}),
                     .channel = order[i],
                     .stages = kStageFill | kStageMove,
                     .staging_bytes = 1 << 20});
    }
  }
  return run;
}

// Feeds an engine and carries out its commands, which take no time, in a random order.
class Driver {
 public:
  Driver(int channels, int slots)
      : run_(OneRun(channels)),
        engine_({.channels = channels, .max_in_flight = 2, .slots = slots}) {
    under_way_.reserve(static_cast<size_t>(slots));
  }

  void RetireOne() {
    const int64_t finished = engine_.counters().finished;
    while (engine_.counters().finished == finished) {
      Feed();
      Command command;
      while (engine_.Next(&command)) under_way_.push_back(command.ticket);
      const size_t which = (random_ = random_ * 6364136223846793005 + 1442695040888963407) >> 33;
      Ticket& ticket = under_way_[which % under_way_.size()];
      engine_.Finish(ticket);
      ticket = under_way_.back();
      under_way_.pop_back();
    }
  }

  int held_peak() const { return engine_.counters().held_buckets_peak; }

 private:
  void Feed() {
    while (engine_.CanSubmit()) {
      Submission submission = run_[next_];
      submission.id = submission.id.WithRun(runs_);
      engine_.Submit(submission);
      if (++next_ == run_.size()) {
        next_ = 0;
        ++runs_;
      }
    }
  }

  std::vector<Submission> run_;
  Engine engine_;
  std::vector<Ticket> under_way_;
  size_t next_ = 0;
  uint64_t runs_ = 0;
  uint64_t random_ = 1;
};

void BM_Bucket(benchmark::State& state) {
  const int64_t at_first = allocations;
  Driver driver(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  for (int i = 0; i < 300000; ++i) driver.RetireOne();  // until every record has been touched
  const int64_t before = allocations;
  int64_t buckets = 0;
  while (state.KeepRunning()) {
    driver.RetireOne();
    ++buckets;
  }
  const int64_t after = allocations;  // counters allocate too
  state.counters["allocs_at_start"] = static_cast<double>(before - at_first);
  state.counters["allocs_per_bucket"] =
      static_cast<double>(after - before) / static_cast<double>(buckets);
  state.counters["held_peak"] = driver.held_peak();
}
BENCHMARK(BM_Bucket)->ArgNames({"channels", "slots"})->ArgsProduct({{10, 1000, 100000}, {16, 256}});

}  // namespace
}  // namespace sluice
