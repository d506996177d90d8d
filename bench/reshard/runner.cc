// Carrying out cases: compile, warm up, time, check.
#include "reshard/runner.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "job/memory_need.h"
#include "job/trace_file.h"
#include "memory/resident_memory.h"
#include "reshard/windowed.h"
#include "sluice/status.h"
#include "workload/fill.h"
#include "workload/layout_ranks.h"
#include "workload/local_part.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

// A rank fills and checks at least this fast, even where many share a core.
constexpr double kSlowestBytesPerSecond = 50e6;

std::vector<int> RanksOfMyHost(const Ranks& ranks) {
  std::vector<int> mine;
  const std::vector<int>& host = ranks.host_of_rank();
  for (int r = 0; r < ranks.size(); ++r) {
    if (host[static_cast<size_t>(r)] == host[static_cast<size_t>(ranks.rank())]) mine.push_back(r);
  }
  return mine;
}

}  // namespace

absl::Status Runner::Poll() {
  for (const Lane& lane : lanes_) SLUICE_RETURN_IF_ERROR(lane.session->Poll());
  return absl::OkStatus();
}

std::vector<size_t> Runner::LanesWithMemory() const {
  std::vector<size_t> lanes;
  if (options_->memory == "shared" && !options_->gpu.uses_device()) {
    for (size_t i = 0; i < lanes_.size(); ++i) {
      if (lanes_[i].options.direct) lanes.push_back(i);
    }
  }
  if (lanes.empty()) lanes.push_back(0);
  return lanes;
}

CasePlaces Runner::Places(size_t lane) const {
  CasePlaces places;
  places.accelerator = lanes_[0].options.accelerator;
  places.src_on_device = options_->gpu.src_device == "cuda";
  places.dst_on_device = options_->gpu.dst_device == "cuda";
  places.late_targets = options_->windowed > 0;
  // Damage that was asked for must all be found.
  places.sampled = options_->check == Check::kSample && options_->corrupt_bytes == 0;
  if (options_->memory == "shared" && !options_->gpu.uses_device()) {
    places.shared = lanes_[lane].session.get();
  }
  return places;
}

absl::StatusOr<std::vector<CaseMemory>> Runner::MakeMemories(const Case& entry,
                                                             std::vector<LaneRun>* runs) {
  std::vector<CaseMemory> memories;
  for (const size_t lane : LanesWithMemory()) {
    SLUICE_ASSIGN_OR_RETURN(auto memory,
                            CaseMemory::Create(entry.spec, ranks_->rank(), options_->seed,
                                               options_->fill == "hash", Places(lane)));
    (*runs)[lane].memory = memories.size();
    memories.push_back(std::move(memory));
  }
  return memories;
}

absl::Duration Runner::Patience(int64_t bytes) const {
  const double work = static_cast<double>(bytes) * ranks_->size() / kSlowestBytesPerSecond;
  return options_->timeout() + absl::Seconds(work);
}

absl::Status Runner::CheckFits(const Case& entry) const {
  if (!entry.status.ok()) return entry.status;
  const auto available = AvailableBytes();
  if (!available) return absl::OkStatus();
  std::vector<Budget> budgets;
  for (const Lane& lane : lanes_) {
    budgets.push_back({lane.session->slots(), lane.session->slot_bytes()});
  }
  const int64_t baselines = BaselineBytes(options_->baselines, entry.spec);
  return CheckMemory(entry.spec, RanksOfMyHost(*ranks_),
                     static_cast<int64_t>(LanesWithMemory().size()), budgets, baselines,
                     *available / 10 * 9);
}

absl::StatusOr<std::vector<Runner::LaneRun>> Runner::Compile(const Case& entry, bool* fatal) {
  std::vector<LaneRun> runs(lanes_.size());
  TransferSpec spec = entry.spec;
  if (options_->windowed > 0) AssignWindows(options_->windowed, &spec);
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const auto transfer = lanes_[i].session->Compile(spec);
    if (!transfer.ok()) {
      *fatal = !lanes_[i].session->Poll().ok();
      return transfer.status();
    }
    runs[i].transfer = *transfer;
    runs[i].record.stats = (*transfer)->stats();
  }
  return runs;
}

absl::StatusOr<std::vector<CaseResult>> Runner::Run(const Case& entry, const std::string& label,
                                                    bool* fatal) {
  const size_t ways = lanes_.size() + options_->baselines.size();
  bar_.Begin(label, static_cast<int64_t>(ways) * (options_->warmup + options_->iterations), "runs");
  auto results = RunCase(entry, fatal);
  bar_.Clear();
  return results;
}

absl::StatusOr<std::vector<CaseResult>> Runner::RunCase(const Case& entry, bool* fatal) {
  const auto progress = [this] { return Poll(); };
  *fatal = true;
  // Everybody has freed the case before when memory is looked at.
  absl::Status status = ranks_->Barrier(Patience(case_bytes_), progress);
  case_bytes_ = 0;
  if (!status.ok()) return status;
  status = ranks_->AllOk(CheckFits(entry), options_->timeout(), progress);
  if (!status.ok()) {
    *fatal = EndsAll(status) || !Poll().ok();
    return status;
  }
  SLUICE_ASSIGN_OR_RETURN(auto runs, Compile(entry, fatal));
  *fatal = true;
  for (const TensorTransfer& tensor : entry.spec.tensors) {
    case_bytes_ += 2 * ElementsOf(tensor.shape) * DTypeBytes(tensor.dst_dtype);
  }
  case_bytes_ *= static_cast<int64_t>(LanesWithMemory().size());
  auto memories = MakeMemories(entry, &runs);
  status = ranks_->AllOk(memories.status(), Patience(case_bytes_), progress);
  if (!status.ok()) {
    *fatal = EndsAll(status) || !Poll().ok();
    return status;
  }
  status = baselines_->Plan(entry.spec, memories->front(), Patience(case_bytes_), progress);
  if (status.ok()) status = Iterate(entry, &*memories, &runs, fatal);
  if (!status.ok()) return status;
  auto results = Collect(entry, runs, fatal);
  baselines_->Drop();
  return results;
}

absl::Status Runner::Iterate(const Case& entry, std::vector<CaseMemory>* memories,
                             std::vector<LaneRun>* runs, bool* fatal) {
  for (const Lane& lane : lanes_) lane.session->ResetCounters();
  const std::vector<BaselineRuns::Entry*> baselines = baselines_->Runnable();
  const size_t turns = lanes_.size() + baselines.size();
  int64_t done = 0;
  for (int i = 0; i < options_->warmup + options_->iterations; ++i) {
    for (size_t turn = 0; turn < turns; ++turn) {
      // Every other round backwards, so that nothing always runs after the same one.
      const size_t index = i % 2 == 0 ? turn : turns - 1 - turn;
      absl::Status status;
      if (index < lanes_.size()) {
        LaneRun* const run = &(*runs)[index];
        status = TakeLaneTurn(entry, index, i, &(*memories)[run->memory], run);
      } else {
        status = TakeBaselineTurn(i, &memories->front(), baselines[index - lanes_.size()]);
      }
      if (!status.ok()) {
        *fatal = index >= lanes_.size() || EndsAll(status) || !Poll().ok();
        return status;
      }
      bar_.Advance(++done);
    }
  }
  return absl::OkStatus();
}

absl::Status Runner::TakeLaneTurn(const Case& entry, size_t lane, int iteration, CaseMemory* memory,
                                  LaneRun* run) {
  Session* session = lanes_[lane].session.get();
  const bool last = iteration + 1 == options_->warmup + options_->iterations;
  if (iteration == 0) {  // what grows in the warm-up would be kept, and hidden from later runs
    TouchSharedTensors();
    run->watch = std::make_unique<MemoryWatch>();
  }
  TraceLog* const trace = iteration == options_->warmup ? session->trace() : nullptr;
  // The first lane's is written, and begins with the first case.
  if (trace != nullptr && lane > 0) trace->Clear();
  absl::Status status =
      RunOnce(iteration, memory, run->watch.get(), &run->record, [&]() -> absl::Status {
        absl::Status moved = last ? Grow(run) : absl::OkStatus();
        return moved.ok() ? Move(session, last, memory, run) : moved;
      });
  run->grown.reset();
  if (!status.ok()) return status;
  if (trace != nullptr) run->record.gate = GateOf(*trace, run->record.start_ns.front());
  SLUICE_RETURN_IF_ERROR(memory->Fetch());
  if (last) {
    run->record.counters = session->counters();
    run->record.grown_bytes = run->watch->growth();
    run->record.grown_by = std::string(MethodName(run->watch->method()));
    run->watch.reset();
    Finish(entry, memory, run);
  } else if (options_->check != Check::kNone && options_->windowed == 0) {
    run->record.wrong += memory->CountWrongTargets();
  }
  return absl::OkStatus();
}

absl::Status Runner::Grow(LaneRun* run) const {
  const auto bytes = static_cast<size_t>(options_->grow_bytes);
  if (bytes == 0) return absl::OkStatus();
  run->grown = MapMemory(bytes);
  if (run->grown == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("--grow: cannot map ", BytesName(options_->grow_bytes)));
  }
  std::memset(run->grown.get(), kPoisonByte, bytes);
  return absl::OkStatus();
}

absl::Status Runner::Move(Session* session, bool last, CaseMemory* memory, LaneRun* run) {
  if (options_->windowed > 0) {
    run->record.whole_target_bytes = memory->whole_target_bytes();
    const WindowedChecks checks = {options_->check != Check::kNone, options_->fingerprint && last};
    return RunWindowed(session, run->transfer, checks, memory, run->watch.get(), &run->record);
  }
  SLUICE_ASSIGN_OR_RETURN(const auto id,
                          session->Start(run->transfer, memory->src(), memory->dst()));
  return id.Wait();
}

absl::Status Runner::TakeBaselineTurn(int iteration, CaseMemory* memory,
                                      BaselineRuns::Entry* baseline) {
  absl::Status status = RunOnce(iteration, memory, nullptr, &baseline->record, [&] {
    return baselines_->Run(baseline, Patience(case_bytes_), [this] { return Poll(); });
  });
  if (!status.ok() || options_->check == Check::kNone) return status;
  baseline->record.wrong += memory->CountWrongTargets();
  if (iteration + 1 == options_->warmup + options_->iterations) {
    baseline->record.wrong += memory->CountWrongSources();
  }
  return absl::OkStatus();
}

absl::Status Runner::RunOnce(int iteration, CaseMemory* memory, MemoryWatch* watch,
                             RankRecord* record, absl::FunctionRef<absl::Status()> move) {
  const auto progress = [this] { return Poll(); };
  SLUICE_RETURN_IF_ERROR(memory->PoisonTargets());
  // Before the barrier, because others may send from there on, and so that it takes none of the
  // time.
  if (watch != nullptr) watch->Begin();
  SLUICE_RETURN_IF_ERROR(ranks_->Barrier(Patience(case_bytes_), progress));
  TraceLog* const trace = lanes_[0].session->trace();
  if (trace != nullptr && !traced_ && iteration >= options_->warmup) {
    trace->Clear();
    traced_ = true;
  }
  const int64_t start_ns = MonotonicNs();
  SLUICE_RETURN_IF_ERROR(move());
  const int64_t own_end_ns = MonotonicNs();
  // Clocks of several hosts cannot be compared, so there the barrier is timed as well. On one host
  // it keeps those that are done from checking on CPUs that the others still need.
  absl::Status status = ranks_->Barrier(Patience(case_bytes_), progress);
  if (watch != nullptr) watch->End();
  if (!status.ok()) return status;
  if (iteration >= options_->warmup) {
    record->start_ns.push_back(start_ns);
    record->end_ns.push_back(ranks_->hosts().size() > 1 ? MonotonicNs() : own_end_ns);
  }
  return absl::OkStatus();
}

void Runner::Finish(const Case& entry, CaseMemory* memory, LaneRun* run) {
  RankRecord& record = run->record;
  if (options_->corrupt_bytes > 0) {
    record.corruptible_elements =
        memory->CorruptTargets(entry.spec, ranks_->rank(), options_->corrupt_bytes);
  }
  const bool late = options_->windowed > 0;  // these targets have been checked
  if (options_->check != Check::kNone || options_->corrupt_bytes > 0) {
    record.wrong += (late ? 0 : memory->CountWrongTargets()) + memory->CountWrongSources();
  }
  if (!options_->fingerprint || late) return;
  for (size_t i = 0; i < entry.spec.tensors.size(); ++i) {
    if (!HasRank(entry.spec.tensors[i].dst, ranks_->rank())) continue;
    record.fingerprints.emplace_back(static_cast<int64_t>(i), memory->FingerprintOf(i));
  }
}

absl::StatusOr<std::vector<RankRecord>> Runner::Gather(const RankRecord& mine) {
  SLUICE_ASSIGN_OR_RETURN(
      const auto texts,
      ranks_->GatherToFirst(Encode(mine), Patience(case_bytes_), [this] { return Poll(); }));
  std::vector<RankRecord> records;
  records.reserve(texts.size());
  for (const std::string& text : texts) records.push_back(Decode(text));
  return records;
}

absl::StatusOr<std::vector<CaseResult>> Runner::Collect(const Case& entry,
                                                        const std::vector<LaneRun>& runs,
                                                        bool* fatal) {
  *fatal = true;
  const bool one_host = ranks_->hosts().size() == 1;
  std::vector<CaseResult> results;
  std::vector<std::vector<double>> times;  // of each lane
  for (size_t i = 0; i < lanes_.size(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(const auto records, Gather(runs[i].record));
    if (ranks_->rank() != 0) continue;
    results.push_back(Summarise(entry.id + lanes_[i].suffix, entry.spec, *options_,
                                *lanes_[i].session, one_host, records));
    results.back().plan = lanes_[i].plan;
    times.push_back(IterationTimes(records, one_host));
  }
  for (const BaselineRuns::Entry& baseline : baselines_->entries()) {
    SLUICE_ASSIGN_OR_RETURN(const auto records, Gather(baseline.record));
    for (size_t i = 0; i < results.size(); ++i) {
      results[i].baselines.push_back(
          CompareWith(baseline.name, baseline.reason, times[i], records, one_host, results[i]));
    }
  }
  *fatal = false;
  return results;
}

absl::StatusOr<std::string> Runner::WriteTrace() {
  const TraceLog* const log = lanes_[0].session->trace();
  if (log == nullptr) return std::string();
  return WriteTraceFile(options_->trace_file, *log, options_->timeout(), ranks_,
                        [this] { return Poll(); });
}

absl::Status Runner::Close() {
  for (const Lane& lane : lanes_) SLUICE_RETURN_IF_ERROR(lane.session->Close());
  return absl::OkStatus();
}

}  // namespace sluice::bench
