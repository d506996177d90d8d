// Reports a runner's state: to a watchdog, to other ranks, to a benchmark.
#include <algorithm>
#include <optional>

#include "session/transfer/runner.h"

namespace sluice {

ErrorText Runner::DescribeStall() const {
  const Engine* const engine = carrier_.engine();
  ErrorText text(engine != nullptr ? engine->DescribeStall() : "nothing is planned");
  if (in_groups_) text.Add(groups_.Describe(), "\n");
  for (const TransferRun* run : runs_) {
    if (run->waits_for_stream()) {
      text.Add("run ", run->id(), " waits for the stream that it was started in\n");
    }
    const int tensor = run->tensor_without_memory();
    if (tensor < 0) continue;
    const auto number = static_cast<size_t>(tensor);
    text.Add("run ", run->id(), " waits for memory for ",
             TensorInWords(number, run->transfer().spec().tensors[number].name), "\n");
  }
  return text;
}

bool Runner::OldestBucket(BucketQuestion* question, std::vector<int>* members) const {
  const Engine* const engine = carrier_.engine();
  Engine::Oldest oldest;
  if (engine == nullptr || !engine->OldestUnfinished(&oldest)) return false;
  const int64_t id = BucketWork::RunOf(oldest.cookie);
  for (const TransferRun* run : runs_) {
    if (run->id() != id) continue;
    const Plan& plan = run->transfer().plan();
    const size_t index = BucketWork::IndexOf(oldest.cookie);
    const Channel& channel = plan.channels[static_cast<size_t>(plan.buckets[index].channel)];
    *question = {oldest.id, run->transfer().number, run->lane()};
    members->clear();
    const absl::Span<const Member> all = plan.members;
    for (const Member& member : all.subspan(static_cast<size_t>(channel.first_member),
                                            static_cast<size_t>(channel.member_count))) {
      members->push_back(member.rank);
    }
    return true;
  }
  return false;
}

BucketReport Runner::Report(const TransferRun& run, const BucketId& id) const {
  const Engine* const engine = carrier_.engine();
  BucketReport report;
  Engine::Oldest oldest;
  if (engine->OldestUnfinished(&oldest)) report.oldest = oldest.id;
  const std::optional<BucketStanding> standing = engine->StandingOf(run.lane(), id);
  if (!standing) {
    const int tensor = run.tensor_without_memory();
    report.state = tensor < 0 ? BucketState::kNotFed : BucketState::kWaitsForMemory;
    if (tensor >= 0)
      report.tensor = run.transfer().spec().tensors[static_cast<size_t>(tensor)].name;
  } else if (standing->admitted) {
    report.state = BucketState::kInStage;
    report.stage = standing->stage;
  } else {
    report.state = engine->blocked() == Blocked::kBudget ? BucketState::kWaitsForBudget
                                                         : BucketState::kWaitsForChannel;
  }
  return report;
}

SessionCounters Runner::counters() const {
  SessionCounters counters;
  counters.running = absl::Nanoseconds(running_ns_);
  counters.budget_wait = absl::Nanoseconds(budget_wait_ns_);
  if (carrier_.engine() == nullptr) return counters;
  const EngineCounters& engine = carrier_.engine()->counters();
  counters.buckets_finished = engine.finished;
  counters.buckets_peak = engine.held_buckets_peak;
  counters.staging_bytes_peak = engine.staging_bytes_peak;
  counters.operations_peak = engine.operations_peak;
  counters.waited_for_channel = engine.waited_for_channel;
  counters.waited_for_budget = engine.waited_for_budget;
  return counters;
}

void Runner::ResetCounters() {
  running_ns_ = budget_wait_ns_ = 0;
  if (carrier_.engine() != nullptr) carrier_.engine()->ResetCounters();
}

}  // namespace sluice
