// Carrying out cases: compile, warm up, time, check.
#include "reshard/runner.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "reshard/memory_need.h"
#include "sluice/mpi.h"

namespace sluice::bench {
namespace {

// A rank fills and checks at least this fast, even where many share a core.
constexpr double kSlowestBytesPerSecond = 50e6;

int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

std::vector<int> RanksOfMyHost(const Ranks& ranks) {
  std::vector<int> mine;
  const std::vector<int>& host = ranks.host_of_rank();
  for (int r = 0; r < ranks.size(); ++r) {
    if (host[static_cast<size_t>(r)] == host[static_cast<size_t>(ranks.rank())]) mine.push_back(r);
  }
  return mine;
}

bool InTargetMesh(const TensorTransfer& tensor, int rank) {
  return tensor.dst.mesh.PositionOf(rank).has_value();
}

}  // namespace

absl::StatusOr<std::vector<Lane>> MakeLanes(const Options& options,
                                            std::unique_ptr<Fabric> first_fabric) {
  std::vector<int64_t> budgets = options.compare_budgets;
  const bool compare = !budgets.empty();
  if (!compare) budgets.push_back(options.budget_buckets);
  std::vector<Lane> lanes;
  for (size_t i = 0; i < budgets.size(); ++i) {
    const int64_t budget = budgets[i];
    Lane lane;
    lane.options = SessionOptionsOf(options, budget);
    if (compare) lane.suffix = absl::StrCat("/budget-", budget);
    std::unique_ptr<Fabric> fabric;
    if (i == 0) fabric = std::move(first_fabric);  // NOLINT(clang-analyzer-cplusplus.Move): once
    if (i > 0) {
      auto made = MakeMpiFabric(MPI_COMM_WORLD, {options.ranks_per_node, options.timeout()});
      if (!made.ok()) return made.status();
      fabric = *std::move(made);
    }
    auto session = Session::Create(std::move(fabric), lane.options);
    if (!session.ok()) return session.status();
    lane.session = *std::move(session);
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

absl::Status Runner::Poll() {
  for (const Lane& lane : lanes_) {
    absl::Status status = lane.session->Poll();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Duration Runner::Patience(int64_t bytes) const {
  const double work = static_cast<double>(bytes) * ranks_->size() / kSlowestBytesPerSecond;
  return options_->timeout() + absl::Seconds(work);
}

absl::Status Runner::CheckFits(const Case& entry) const {
  if (!entry.status.ok()) return entry.status;
  const auto available = AvailableBytes();
  if (!available) return absl::OkStatus();
  std::vector<SessionOptions> sessions;
  for (const Lane& lane : lanes_) sessions.push_back(lane.options);
  return CheckMemory(entry.spec, RanksOfMyHost(*ranks_), sessions, *available / 10 * 9);
}

absl::StatusOr<std::vector<Runner::LaneRun>> Runner::Compile(const Case& entry, bool* fatal) {
  std::vector<LaneRun> runs(lanes_.size());
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const auto transfer = lanes_[i].session->Compile(entry.spec);
    if (!transfer.ok()) {
      *fatal = !lanes_[i].session->Poll().ok();
      return transfer.status();
    }
    runs[i].transfer = *transfer;
    runs[i].record.stats = (*transfer)->stats();
  }
  return runs;
}

absl::StatusOr<std::vector<CaseResult>> Runner::Run(const Case& entry, bool* fatal) {
  const auto progress = [this] { return Poll(); };
  *fatal = true;
  // Everybody has freed the case before when memory is looked at.
  absl::Status status = ranks_->Barrier(Patience(case_bytes_), progress);
  case_bytes_ = 0;
  if (!status.ok()) return status;
  status = ranks_->AllOk(CheckFits(entry), options_->timeout(), progress);
  if (!status.ok()) {
    *fatal = absl::IsDeadlineExceeded(status) || !Poll().ok();
    return status;
  }
  auto runs = Compile(entry, fatal);
  if (!runs.ok()) return runs.status();
  *fatal = true;
  for (const TensorTransfer& tensor : entry.spec.tensors) {
    int64_t elements = 1;
    for (const int64_t size : tensor.shape) elements *= size;
    case_bytes_ += 2 * elements * DTypeBytes(tensor.dst_dtype);
  }
  auto memory = CaseMemory::Create(entry.spec, ranks_->rank(), options_->seed,
                                   options_->fingerprint || entry.spec.tensors.size() == 1);
  status = ranks_->AllOk(memory.status(), Patience(case_bytes_), progress);
  if (!status.ok()) {
    *fatal = absl::IsDeadlineExceeded(status) || !Poll().ok();
    return status;
  }
  status = Iterate(entry, &*memory, &*runs, fatal);
  if (!status.ok()) return status;
  return Collect(entry, *runs, fatal);
}

absl::Status Runner::Iterate(const Case& entry, CaseMemory* memory, std::vector<LaneRun>* runs,
                             bool* fatal) {
  for (const Lane& lane : lanes_) lane.session->ResetCounters();
  const int last = options_->warmup + options_->iterations - 1;
  for (int i = 0; i <= last; ++i) {
    for (size_t turn = 0; turn < lanes_.size(); ++turn) {
      // Every other round backwards, so that no lane always runs after the same one.
      const size_t lane = i % 2 == 0 ? turn : lanes_.size() - 1 - turn;
      LaneRun* run = &(*runs)[lane];
      absl::Status status = RunOnce(lane, i, memory, run);
      if (!status.ok()) {
        *fatal = absl::IsDeadlineExceeded(status) || !Poll().ok();
        return status;
      }
      if (i == last) {
        run->record.counters = lanes_[lane].session->counters();
        Finish(entry, memory, run);
      } else if (options_->check != 0) {
        run->record.wrong += memory->CountWrongTargets();
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Runner::RunOnce(size_t lane, int iteration, CaseMemory* memory, LaneRun* run) {
  const auto progress = [this] { return Poll(); };
  Session* session = lanes_[lane].session.get();
  memory->PoisonTargets();
  absl::Status status = ranks_->Barrier(Patience(case_bytes_), progress);
  if (!status.ok()) return status;
  const int64_t start_ns = NowNs();
  const auto id = session->Start(run->transfer, memory->src(), memory->dst());
  if (!id.ok()) return id.status();
  status = session->Wait(*id);
  if (!status.ok()) return status;
  if (ranks_->hosts().size() > 1) {
    status = ranks_->Barrier(options_->timeout(), progress);
    if (!status.ok()) return status;
  }
  if (iteration >= options_->warmup) {
    run->record.start_ns.push_back(start_ns);
    run->record.end_ns.push_back(NowNs());
  }
  return absl::OkStatus();
}

void Runner::Finish(const Case& entry, CaseMemory* memory, LaneRun* run) {
  RankRecord& record = run->record;
  if (options_->corrupt_bytes > 0) {
    record.corruptible_elements =
        memory->CorruptTargets(entry.spec, ranks_->rank(), options_->corrupt_bytes);
  }
  if (options_->check != 0 || options_->corrupt_bytes > 0) {
    record.wrong += memory->CountWrongTargets() + memory->CountWrongSources();
  }
  if (!options_->fingerprint) return;
  for (size_t i = 0; i < entry.spec.tensors.size(); ++i) {
    if (!InTargetMesh(entry.spec.tensors[i], ranks_->rank())) continue;
    record.fingerprints.emplace_back(static_cast<int64_t>(i), memory->FingerprintOf(i));
  }
}

absl::StatusOr<std::vector<CaseResult>> Runner::Collect(const Case& entry,
                                                        const std::vector<LaneRun>& runs,
                                                        bool* fatal) {
  const auto progress = [this] { return Poll(); };
  std::vector<CaseResult> results;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const auto texts =
        ranks_->GatherToFirst(Encode(runs[i].record), Patience(case_bytes_), progress);
    if (!texts.ok()) {
      *fatal = true;
      return texts.status();
    }
    if (ranks_->rank() != 0) continue;
    std::vector<RankRecord> records;
    for (const std::string& text : *texts) records.push_back(Decode(text));
    results.push_back(Summarise(entry.id + lanes_[i].suffix, entry.spec, *options_,
                                lanes_[i].session->slots(), ranks_->hosts().size() == 1, records));
  }
  *fatal = false;
  return results;
}

absl::Status Runner::Close() {
  for (const Lane& lane : lanes_) {
    absl::Status status = lane.session->Close();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace sluice::bench
