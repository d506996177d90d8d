// Saves, then loads; other ways to load have their turns with ours.
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "checkpoint/options.h"
#include "checkpoint/plain_files.h"
#include "checkpoint/rank_tensors.h"
#include "checkpoint/report.h"
#include "commands.h"
#include "job/command.h"
#include "report/progress_bar.h"
#include "sluice/session.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

static_assert(std::is_trivially_copyable_v<CheckpointRecord>);

class CheckpointCommand final : public Command {
 public:
  explicit CheckpointCommand(const CheckpointBenchOptions& options)
      : Command({"checkpoint", options.json_file, options.timeout()}, &report_),
        options_(options),
        check_(options.check_or_default()) {}

 private:
  absl::StatusOr<KnobList> Describe() override {
    SLUICE_RETURN_IF_ERROR(CheckFlags(options_));
    const absl::StatusOr<std::string> directory = DirectoryOf(options_);
    if (directory.ok()) directory_ = *directory;
    if (options_.make && !directory.ok()) return directory.status();
    if (options_.layout.empty() && !options_.has_system()) {
      options_.layout = DefaultLayoutText(report_.world);
    }
    SLUICE_ASSIGN_OR_RETURN(spec_, TensorsOf(options_));
    return KnobsOf(Config(options_));
  }

  absl::Status Run(Ranks* ranks, std::unique_ptr<Fabric> fabric) override {
    ranks_ = ranks;
    bar_.emplace(ranks->rank() == 0);
    PrintLater(TableHeader(options_, report_));
    SessionOptions session_options;
    session_options.timeout = session_options.patience = options_.timeout();
    session_options.progress_thread = options_.progress_thread;
    SLUICE_ASSIGN_OR_RETURN(auto session, Session::Create(std::move(fabric), session_options));
    absl::Status status;
    if (options_.make) status = SaveAll(session.get());
    if (status.ok()) status = LoadAll(session.get());
    const absl::Status closed = session->Close();
    // What is left under way cannot be finalised.
    if (!closed.ok()) End(status.ok() ? closed : status);
    return status;
  }

  bool IsGood() const override { return true; }  // wrong elements are errors
  std::string Json() const override { return JsonText(options_, report_); }
  std::string Footer() const override { return ErrorLines(report_); }

  absl::Status SaveAll(Session* session) {
    absl::StatusOr<RankTensors> mine = RankTensors::Create(spec_, false, rank(), options_.seed);
    SLUICE_RETURN_IF_ERROR(OnAll(mine.status(), session));
    mine->Fill();
    CheckpointResult result = {.mode = "save"};
    for (int i = 0; i < options_.iterations; ++i) {
      SLUICE_ASSIGN_OR_RETURN(
          const CheckpointStats stats,
          Shown("save", i + 1, options_.iterations, [&](const CheckpointOptions& call) {
            return SaveCheckpoint(session, directory_, mine->tensors(), call);
          }));
      SLUICE_ASSIGN_OR_RETURN(const auto all, Gather({stats, 0}, session));
      AddIteration(all, true, &result);
    }
    Report(std::move(result));
    return absl::OkStatus();
  }

  absl::Status LoadAll(Session* session) {
    absl::StatusOr<RankTensors> mine = RankTensors::Create(spec_, true, rank(), options_.seed);
    SLUICE_RETURN_IF_ERROR(OnAll(mine.status(), session));
    CheckpointResult result = {
        .mode = "load", .checked = check_ != Check::kNone, .sampled = check_ == Check::kSample};
    std::optional<MappedLoad> mapped;
    for (const std::string& name : options_.baselines) {
      CheckpointResult& other = result.others.emplace_back();  // mmap is the only one
      other.mode = name;
      other.is_other = true;
      other.checked = result.checked;
      SLUICE_RETURN_IF_ERROR(PrepareMapped(*mine, session, &mapped, &result.others.back()));
    }
    for (int i = -options_.warmup; i < options_.iterations; ++i) {
      // Every other round the other way first, so that neither always follows the same one.
      const bool ours_first = i % 2 == 0;
      if (ours_first) SLUICE_RETURN_IF_ERROR(LoadOurs(i >= 0, session, &*mine, &result));
      if (mapped) {
        SLUICE_RETURN_IF_ERROR(
            LoadMapped(i >= 0, *mapped, session, &*mine, &result.others.front()));
      }
      if (!ours_first) SLUICE_RETURN_IF_ERROR(LoadOurs(i >= 0, session, &*mine, &result));
    }
    Report(std::move(result));
    return absl::OkStatus();
  }

  absl::Status LoadOurs(bool timed, Session* session, RankTensors* mine, CheckpointResult* result) {
    SLUICE_RETURN_IF_ERROR(BeforeLoad(session, mine));
    SLUICE_ASSIGN_OR_RETURN(const CheckpointStats stats,
                            Shown("load", ++loads_, options_.warmup + options_.iterations,
                                  [&](const CheckpointOptions& call) {
                                    return LoadCheckpoint(session, UriOf(options_), mine->tensors(),
                                                          call);
                                  }));
    SLUICE_ASSIGN_OR_RETURN(const auto all, Gather({stats, CountWrong(*mine)}, session));
    AddIteration(all, timed, result);
    return absl::OkStatus();
  }

  absl::Status LoadMapped(bool timed, const MappedLoad& load, Session* session, RankTensors* mine,
                          CheckpointResult* way) {
    SLUICE_RETURN_IF_ERROR(BeforeLoad(session, mine));
    const int64_t begin_ns = MonotonicNs();
    const absl::Status loaded = load.Run();
    CheckpointRecord record;
    record.stats.seconds = absl::Nanoseconds(MonotonicNs() - begin_ns);
    SLUICE_RETURN_IF_ERROR(OnAll(loaded, session));
    record.wrong = CountWrong(*mine);
    SLUICE_ASSIGN_OR_RETURN(const auto all, Gather(record, session));
    AddIteration(all, timed, way);
    return absl::OkStatus();
  }

  // What `call` returns, which is time number `number` of `all`; its progress is shown.
  absl::StatusOr<CheckpointStats> Shown(
      const char* what, int number, int all,
      absl::FunctionRef<absl::StatusOr<CheckpointStats>(const CheckpointOptions&)> call) {
    CheckpointProgress progress;
    CheckpointOptions options = options_.call;
    options.progress = &progress;
    bar_->Begin(all > 1 ? absl::StrCat(what, " ", number, " of ", all) : what, 0, "");
    bar_->Follow(&progress.total, &progress.done);
    absl::StatusOr<CheckpointStats> stats = call(options);
    bar_->Clear();
    return stats;
  }

  // Leaves `*load` empty, and says why, if some rank cannot load this way.
  absl::Status PrepareMapped(const RankTensors& mine, Session* session,
                             std::optional<MappedLoad>* load, CheckpointResult* way) {
    absl::StatusOr<MappedLoad> made = MappedLoad::Create(directory_, &mine);
    absl::Status status = OnAll(made.status(), session);
    if (absl::IsUnimplemented(status)) {
      way->reason = absl::StrCat(status.message());
      return absl::OkStatus();
    }
    if (status.ok()) load->emplace(*std::move(made));
    return status;
  }

  // What no way is charged for. All ranks are ready when it returns.
  absl::Status BeforeLoad(Session* session, RankTensors* mine) {
    absl::Status status;
    if (options_.new_memory) {
      status = mine->Renew();
    } else {
      mine->Poison();
    }
    if (options_.cold && status.ok() && ranks_->local_rank() == 0) {
      const absl::StatusOr<std::vector<PlainFile>> files = CheckpointFiles(directory_);
      std::vector<std::string> paths;
      if (files.ok()) {
        for (const PlainFile& file : *files) paths.push_back(file.path);
      }
      status = files.ok() ? DropFromPageCache(paths) : files.status();
    }
    status = OnAll(status, session);
    return absl::IsFailedPrecondition(status) ? Needs(status) : status;
  }

  int64_t CountWrong(const RankTensors& mine) const {
    return check_ == Check::kNone ? 0 : mine.CountWrong(check_ == Check::kSample);
  }

  absl::Status OnAll(const absl::Status& mine, Session* session) {
    return AllOk(ranks_, mine, [session] { return session->Poll(); });
  }

  // Collective; also keeps ranks from starting the next call before the others.
  absl::StatusOr<std::vector<CheckpointRecord>> Gather(const CheckpointRecord& mine,
                                                       Session* session) {
    std::string bytes(sizeof(mine), '\0');
    std::memcpy(bytes.data(), &mine, sizeof(mine));
    SLUICE_ASSIGN_OR_RETURN(
        const std::vector<std::string> all,
        ranks_->AllGather(bytes, options_.timeout(), [session] { return session->Poll(); }));
    std::vector<CheckpointRecord> records(all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      std::memcpy(static_cast<void*>(&records[i]), all[i].data(), sizeof(records[i]));
    }
    return records;
  }

  void Report(CheckpointResult result) {
    for (CheckpointResult& way : result.others) {
      way.stats.tensors = result.stats.tensors;
      way.stats.files = result.stats.files;
      way.stats.file_bytes = result.stats.file_bytes;
      way.ratio = RatioOf(way.seconds, result.seconds);
    }
    Print(TableRows(result));
    AddWrong(result.mode, result.wrong);
    for (const CheckpointResult& way : result.others) AddWrong(way.mode, way.wrong);
    report_.results.push_back(std::move(result));
    SaveResults();  // what is there, should the rest not come to its end
  }

  void AddWrong(const std::string& way, int64_t wrong) {
    if (wrong == 0) return;
    AddError(way, absl::DataLossError(absl::StrCat(wrong, " elements are wrong")));
  }

  CheckpointBenchOptions options_;  // with what was left out
  const Check check_;
  std::string directory_;
  TransferSpec spec_;
  Ranks* ranks_ = nullptr;
  std::optional<ProgressBar> bar_;
  int loads_ = 0;
  CheckpointReport report_;
};

}  // namespace

int RunCheckpoint(absl::StatusOr<std::unique_ptr<Job>> job, const CheckpointBenchOptions& options,
                  const absl::Status& flags) {
  return CheckpointCommand(options).Execute(std::move(job), flags);
}

}  // namespace sluice::bench
