// Saves and loads, one after the other.
#include "checkpoint/checkpoint.h"

#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "checkpoint/rank_tensors.h"
#include "checkpoint/report.h"
#include "job/command.h"
#include "sluice/session.h"

namespace sluice::bench {
namespace {

static_assert(std::is_trivially_copyable_v<CheckpointRecord>);

class CheckpointCommand final : public Command {
 public:
  explicit CheckpointCommand(const CheckpointBenchOptions& options)
      : Command({"checkpoint", options.json_file, options.timeout()}, &report_),
        options_(options) {}

 private:
  absl::StatusOr<KnobList> Describe() override {
    const absl::StatusOr<CheckpointOptions> call = CallOptionsOf(options_);
    if (!call.ok()) return call.status();
    call_ = *call;
    if (options_.make) {
      const absl::StatusOr<std::string> directory = DirectoryOf(options_);
      if (!directory.ok()) return directory.status();
      directory_ = *directory;
    }
    absl::StatusOr<TransferSpec> spec = TensorsOf(options_);
    if (!spec.ok()) return spec.status();
    spec_ = *std::move(spec);
    return CheckpointKnobs(options_);
  }

  absl::Status Run(Ranks* ranks, std::unique_ptr<Fabric> fabric) override {
    ranks_ = ranks;
    Print(TableHeader(options_, report_));
    SessionOptions session_options;
    session_options.timeout = options_.timeout();
    session_options.progress_thread = options_.progress_thread;
    auto session = Session::Create(std::move(fabric), session_options);
    if (!session.ok()) return session.status();
    absl::Status status;
    if (options_.make) status = SaveAll(session->get());
    if (status.ok()) status = LoadAll(session->get());
    const absl::Status closed = (*session)->Close();
    // What is left under way cannot be finalised.
    if (!closed.ok()) End(status.ok() ? closed : status);
    return status;
  }

  bool IsGood() const override { return true; }  // wrong elements are errors
  std::string Json() const override { return JsonText(options_, report_); }
  std::string Footer() const override { return ErrorLines(report_); }

  absl::Status SaveAll(Session* session) {
    absl::StatusOr<RankTensors> mine = RankTensors::Create(spec_, false, rank(), options_.seed);
    absl::Status status = MadeByAll(mine.status(), session);
    if (!status.ok()) return status;
    mine->Fill();
    CheckpointResult result = {.mode = "save"};
    for (int i = 0; i < options_.iterations; ++i) {
      const absl::StatusOr<CheckpointStats> stats =
          SaveCheckpoint(session, directory_, mine->tensors(), call_);
      if (!stats.ok()) return stats.status();
      if (status = Add({*stats, 0}, session, &result); !status.ok()) return status;
    }
    Report(std::move(result));
    return status;
  }

  absl::Status LoadAll(Session* session) {
    absl::StatusOr<RankTensors> mine = RankTensors::Create(spec_, true, rank(), options_.seed);
    absl::Status status = MadeByAll(mine.status(), session);
    if (!status.ok()) return status;
    CheckpointResult result = {.mode = "load"};
    const Check check = options_.check_or_default();
    for (int i = 0; i < options_.iterations; ++i) {
      mine->Poison();
      const absl::StatusOr<CheckpointStats> stats =
          LoadCheckpoint(session, UriOf(options_), mine->tensors(), call_);
      if (!stats.ok()) return stats.status();
      const int64_t wrong = check == Check::kNone ? 0 : mine->CountWrong(check == Check::kSample);
      if (status = Add({*stats, wrong}, session, &result); !status.ok()) return status;
    }
    Report(std::move(result));
    return status;
  }

  absl::Status MadeByAll(const absl::Status& mine, Session* session) {
    return AllOk(ranks_, mine, [session] { return session->Poll(); });
  }

  // Collective; also keeps ranks from starting the next call before the others.
  absl::Status Add(const CheckpointRecord& record, Session* session, CheckpointResult* result) {
    std::string bytes(sizeof(record), '\0');
    std::memcpy(bytes.data(), &record, sizeof(record));
    const absl::StatusOr<std::vector<std::string>> all =
        ranks_->AllGather(bytes, options_.timeout(), [session] { return session->Poll(); });
    if (!all.ok()) return all.status();
    std::vector<CheckpointRecord> records(all->size());
    for (size_t i = 0; i < all->size(); ++i) {
      std::memcpy(static_cast<void*>(&records[i]), (*all)[i].data(), sizeof(records[i]));
    }
    AddIteration(records, result);
    return absl::OkStatus();
  }

  void Report(CheckpointResult result) {
    Print(TableRow(result));
    if (result.wrong > 0) {
      AddError("", absl::DataLossError(absl::StrCat(result.wrong, " elements are wrong")));
    }
    report_.results.push_back(std::move(result));
  }

  const CheckpointBenchOptions& options_;
  CheckpointOptions call_;
  std::string directory_;
  TransferSpec spec_;
  Ranks* ranks_ = nullptr;
  CheckpointReport report_;
};

}  // namespace

int RunCheckpoint(const CheckpointBenchOptions& options, const absl::Status& flags) {
  return CheckpointCommand(options).Execute(flags);
}

}  // namespace sluice::bench
