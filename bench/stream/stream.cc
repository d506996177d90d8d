// From the command line to the exit code.
#include "stream/stream.h"

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gpu/gpu.h"
#include "reshard/agreement.h"
#include "reshard/ranks.h"
#include "sluice/mpi.h"
#include "sluice/session.h"
#include "stream/contents.h"
#include "stream/load_contents.h"
#include "stream/report.h"
#include "stream/rounds.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

void Print(FILE* stream, const std::string& text) {
  std::fputs(text.c_str(), stream);
  std::fflush(stream);
}

// The session's own memory is for transfers: here it needs next to none.
SessionOptions SessionOptionsOf(const StreamBenchOptions& options) {
  SessionOptions session;
  session.bucket_bytes = 64 << 10;
  session.budget_buckets = 1;
  session.budget_bytes = session.bucket_bytes;
  session.timeout = options.timeout();
  if (!options.trace_file.empty()) session.trace_events = options.trace_events;
  session.progress_thread = options.progress_thread != 0;
  return session;
}

// The state of one rank of the subcommand.
class Command {
 public:
  explicit Command(const StreamBenchOptions& options) : options_(options) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &report_.world);
    report_.mpi = MpiVersion();
  }

  int Run(const absl::Status& flags) {
    std::unique_ptr<Fabric> fabric = MakeFabric();
    absl::Status status = flags;
    if (status.ok()) status = WriteJson();
    status = Agree({status, StreamKnobs(options_)}, options_.timeout(), fabric.get());
    if (EndsAll(status)) End(status);
    if (!status.ok()) return Refuse(status);
    auto ranks = Ranks::Create(options_.timeout());
    if (!ranks.ok()) End(ranks.status());
    report_.hosts = (*ranks)->hosts();
    status = RunAll(ranks->get(), std::move(fabric));
    ranks->reset();  // it frees a communicator, which must come before MPI_Finalize
    return status.ok() ? Finish() : Refuse(status);
  }

 private:
  std::unique_ptr<Fabric> MakeFabric() {
    MpiFabricOptions fabric_options;
    fabric_options.timeout = options_.timeout();
    auto fabric = MakeMpiFabric(MPI_COMM_WORLD, fabric_options);
    if (!fabric.ok()) End(fabric.status());
    return *std::move(fabric);
  }

  // An error is all ranks', and nothing was run.
  absl::Status RunAll(Ranks* ranks, std::unique_ptr<Fabric> fabric) {
    const auto idle = [] { return absl::OkStatus(); };
    auto contents = LoadContents(options_, ranks);
    absl::Status status = contents.status();
    if (status.ok()) status = CheckItems(**contents);
    status = ranks->AllOk(status, options_.timeout(), idle);
    if (EndsAll(status)) End(status);
    if (!status.ok()) return status;
    GpuOptions gpu_options;
    gpu_options.dst_device = options_.device;
    auto gpu = OpenGpu(gpu_options, ranks->local_rank());
    status = ranks->AllOk(gpu.status(), options_.timeout(), idle);
    if (EndsAll(status)) End(status);
    if (!status.ok()) return status;
    SessionOptions session_options = SessionOptionsOf(options_);
    session_options.accelerator = gpu->accelerator;
    auto session = Session::Create(std::move(fabric), session_options);
    if (EndsAll(session.status())) End(session.status());
    if (!session.ok()) return session.status();
    if (rank_ == 0) Print(stdout, StreamTableHeader(options_, report_));
    RunRounds(**contents, ranks, session->get());
    return absl::OkStatus();
  }

  absl::Status CheckItems(const Contents& contents) const {
    if (options_.items > contents.items()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--items: the source has only ", contents.items()));
    }
    constexpr double kCheckedMax = 1e10;  // a bit each
    if (options_.order == "completed" &&
        static_cast<double>(contents.items()) * static_cast<double>(options_.epochs) >
            kCheckedMax) {
      return absl::InvalidArgumentError("--order completed: too many items to check off");
    }
    return absl::OkStatus();
  }

  void RunRounds(const Contents& contents, Ranks* ranks, Session* session) {
    Rounds rounds(&options_, &contents, ranks, session);
    bool lost = false;
    absl::Status status = rounds.Run(&report_.results, &lost);
    if (lost) End(status);
    if (!status.ok()) report_.errors.emplace_back(status.message());
    const auto line = rounds.WriteTrace();
    if (!line.ok() && EndsAll(line.status())) End(line.status());
    if (!line.ok()) report_.errors.emplace_back(line.status().message());
    for (std::string& error : GrowthErrors(options_, report_.results)) {
      report_.errors.push_back(std::move(error));
    }
    for (const Result& result : report_.results) {
      if (rank_ == 0) Print(stdout, StreamTableRow(options_, result));
    }
    if (rank_ == 0 && line.ok() && !line->empty()) Print(stdout, absl::StrCat("# ", *line, "\n"));
    status = session->Close();
    if (!status.ok()) End(status);
  }

  // The orderly end, on all ranks, which have the same report.
  int Finish() {
    report_.finished = true;
    int code = report_.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
    if (rank_ == 0) Print(stdout, StreamTableFooter(report_));
    absl::Status written = WriteJson();
    if (!written.ok()) {
      Print(stderr, absl::StrCat("# error: ", written.message(), "\n"));
      code = EXIT_FAILURE;
    }
    MPI_Finalize();
    return code;
  }

  // The end after an error that all ranks have, before anything was run.
  int Refuse(const absl::Status& status) {
    report_.finished = true;
    report_.errors.emplace_back(status.message());
    if (rank_ == 0) {
      Print(stderr, absl::StrCat("sluice-bench stream: ", status.message(), "\n"));
      WriteJson().IgnoreError();  // the error itself may be that it cannot be written
    }
    MPI_Finalize();
    return EXIT_FAILURE;
  }

  // The end after an error that others may not have: ends the job.
  [[noreturn]] void End(const absl::Status& status) {
    report_.finished = true;
    report_.errors.emplace_back(status.message());
    if (rank_ == 0) {
      Print(stdout, StreamTableFooter(report_));
      WriteJson().IgnoreError();
    }
    Print(stderr, absl::StrCat("sluice-bench stream: rank ", rank_, ": ", status.message(), "\n"));
    if (rank_ != 0) absl::SleepFor(kGraceForRankZero);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    std::_Exit(EXIT_FAILURE);
  }

  absl::Status WriteJson() {
    if (rank_ != 0 || options_.json_file.empty()) return absl::OkStatus();
    return WriteFile(options_.json_file, StreamJsonText(options_, report_));
  }

  const StreamBenchOptions& options_;
  int rank_ = 0;
  StreamReport report_;
};

}  // namespace

int RunStream(const StreamBenchOptions& options, const absl::Status& flags) {
  return Command(options).Run(flags);
}

}  // namespace sluice::bench
