// From the command line to the exit code.
#include "checkpoint/checkpoint.h"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "checkpoint/rank_tensors.h"
#include "checkpoint/report.h"
#include "reshard/ranks.h"
#include "sluice/mpi.h"
#include "sluice/session.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

static_assert(std::is_trivially_copyable_v<CheckpointRecord>);

class Command {
 public:
  explicit Command(const CheckpointBenchOptions& options) : options_(options) {
    MPI_Comm_size(MPI_COMM_WORLD, &report_.world);
  }

  int Run(absl::Status status) {
    auto ranks = Ranks::Create(timeout());
    if (!ranks.ok()) End(ranks.status());
    ranks_ = *std::move(ranks);
    report_.hosts = ranks_->hosts();
    status.Update(Load());
    status = ranks_->AllOk(status, timeout(), [] { return absl::OkStatus(); });
    if (EndsAll(status)) End(status);
    if (status.ok()) {
      Print(stdout, TableHeader(options_, report_));
      status = RunAll();
    }
    return Finish(status);
  }

 private:
  absl::Duration timeout() const { return absl::Seconds(options_.timeout_s); }

  // What each rank finds out for itself.
  absl::Status Load() {
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
    return WriteJson();
  }

  absl::Status RunAll() {
    auto fabric = MakeMpiFabric(MPI_COMM_WORLD, {0, timeout()});
    if (!fabric.ok()) return fabric.status();
    SessionOptions session_options;
    session_options.timeout = timeout();
    session_options.progress_thread = options_.progress_thread;
    auto session = Session::Create(*std::move(fabric), session_options);
    if (!session.ok()) return session.status();
    absl::Status status;
    if (options_.make) status = SaveAll(session->get());
    if (status.ok()) status = LoadAll(session->get());
    const absl::Status closed = (*session)->Close();
    return status.ok() ? closed : status;
  }

  absl::Status SaveAll(Session* session) {
    absl::StatusOr<RankTensors> mine =
        RankTensors::Create(spec_, false, ranks_->rank(), options_.seed);
    absl::Status status = AllOk(mine.status(), session);
    if (!status.ok()) return status;
    mine->Fill();
    CheckpointResult result = {.mode = "save"};
    for (int i = 0; i < options_.iterations; ++i) {
      const absl::StatusOr<CheckpointStats> stats =
          session->SaveCheckpoint(directory_, mine->tensors(), call_);
      if (!stats.ok()) return stats.status();
      if (status = Add({*stats, 0}, session, &result); !status.ok()) return status;
    }
    Report(std::move(result));
    return status;
  }

  absl::Status LoadAll(Session* session) {
    absl::StatusOr<RankTensors> mine =
        RankTensors::Create(spec_, true, ranks_->rank(), options_.seed);
    absl::Status status = AllOk(mine.status(), session);
    if (!status.ok()) return status;
    CheckpointResult result = {.mode = "load"};
    for (int i = 0; i < options_.iterations; ++i) {
      mine->Poison();
      const absl::StatusOr<CheckpointStats> stats =
          session->LoadCheckpoint(UriOf(options_), mine->tensors(), call_);
      if (!stats.ok()) return stats.status();
      const int64_t wrong = options_.check == 1 ? mine->CountWrong() : 0;
      if (status = Add({*stats, wrong}, session, &result); !status.ok()) return status;
    }
    Report(std::move(result));
    return status;
  }

  absl::Status AllOk(const absl::Status& mine, Session* session) {
    return ranks_->AllOk(mine, timeout(), [session] { return session->Poll(); });
  }

  // Collective; also keeps ranks from starting the next call before the others.
  absl::Status Add(const CheckpointRecord& record, Session* session, CheckpointResult* result) {
    std::string bytes(sizeof(record), '\0');
    std::memcpy(bytes.data(), &record, sizeof(record));
    const absl::StatusOr<std::vector<std::string>> all =
        ranks_->AllGather(bytes, timeout(), [session] { return session->Poll(); });
    if (!all.ok()) return all.status();
    std::vector<CheckpointRecord> records(all->size());
    for (size_t i = 0; i < all->size(); ++i) {
      std::memcpy(static_cast<void*>(&records[i]), (*all)[i].data(), sizeof(records[i]));
    }
    AddIteration(records, result);
    return absl::OkStatus();
  }

  void Report(CheckpointResult result) {
    Print(stdout, TableRow(result));
    if (result.wrong > 0) {
      report_.errors.push_back(absl::StrCat(result.wrong, " elements are wrong"));
    }
    report_.results.push_back(std::move(result));
  }

  // The orderly end, on all ranks.
  int Finish(const absl::Status& status) {
    report_.finished = true;
    if (!status.ok()) report_.errors.push_back(absl::StrCat(status.message()));
    for (const std::string& error : report_.errors) {
      Print(stderr, absl::StrCat("sluice-bench checkpoint: ", error, "\n"));
    }
    const absl::Status written = WriteJson();
    if (!written.ok()) Print(stderr, absl::StrCat("# error: ", written.message(), "\n"));
    // A session that a silent rank has poisoned leaves operations that cannot be finalised.
    if (EndsAll(status)) MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    ranks_.reset();
    MPI_Finalize();
    return report_.errors.empty() && written.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
  }

  // The end after an error that others may not have: ends the job.
  [[noreturn]] void End(const absl::Status& status) {
    std::fputs(absl::StrCat("sluice-bench checkpoint: ", status.message(), "\n").c_str(), stderr);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    std::_Exit(EXIT_FAILURE);
  }

  absl::Status WriteJson() const {
    if (ranks_->rank() != 0 || options_.json_file.empty()) return absl::OkStatus();
    return WriteFile(options_.json_file, JsonText(options_, report_));
  }

  // On rank 0.
  void Print(FILE* stream, const std::string& text) const {
    if (ranks_->rank() != 0) return;
    std::fputs(text.c_str(), stream);
    std::fflush(stream);
  }

  const CheckpointBenchOptions& options_;
  CheckpointOptions call_;
  std::string directory_;
  TransferSpec spec_;
  std::unique_ptr<Ranks> ranks_;
  CheckpointReport report_;
};

}  // namespace

int RunCheckpoint(const CheckpointBenchOptions& options, const absl::Status& flags) {
  Command command(options);
  return command.Run(flags);
}

}  // namespace sluice::bench
