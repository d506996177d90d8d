// Agreement, output and the ends of a job.
#include "job/command.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "workload/write_file.h"
#include "world/launch.h"

namespace sluice::bench {
namespace {

// How long ranks wait for rank 0 to write the results and end the job, before they end it.
constexpr absl::Duration kGraceForRankZero = absl::Seconds(10);
// How long a rank waits before it ends the job. Some launchers end all ranks at once then, and what
// the others have said would be lost.
constexpr absl::Duration kGraceForOthers = absl::Milliseconds(500);

void PrintTo(FILE* stream, const std::string& text) {
  std::fputs(text.c_str(), stream);
  std::fflush(stream);
}

}  // namespace

int Command::Execute(absl::StatusOr<std::unique_ptr<Job>> job, const absl::Status& flags) {
  if (!job.ok()) return StayAlone(flags.ok() ? job.status() : flags);
  job_ = *std::move(job);
  rank_ = job_->rank();
  last_words_ = std::make_unique<LastWords>(rank_ == 0);
  report_->world = job_->size();
  report_->mpi = job_->kind() == JobKind::kMpi ? MpiVersion() : "no MPI";
  auto fabric = job_->MakeFabric(settings_.timeout);
  if (!fabric.ok()) End(fabric.status());
  auto beside = job_->MakeFabric(settings_.timeout);
  if (!beside.ok()) End(beside.status());
  auto ranks = Ranks::Create(*std::move(beside), settings_.timeout);
  if (!ranks.ok()) End(ranks.status());
  absl::Status mine = flags;
  KnobList knobs;
  // Before hours of work that nobody could write down.
  if (mine.ok()) mine = CheckJsonFile();
  if (mine.ok()) {
    absl::StatusOr<KnobList> described = Describe();
    mine = described.status();
    if (described.ok()) knobs = *std::move(described);
  }
  absl::Status status = (*ranks)->Agree(mine, knobs, settings_.timeout);
  if (EndsAll(status)) EndWith(mine.ok() ? kFailedExit : kBadUsageExit, status, "");
  const bool agreed = status.ok();
  if (agreed) {
    report_->hosts = (*ranks)->hosts();
    status =
        Run(ranks->get(), PlanNodes(*std::exchange(fabric, nullptr), settings_.ranks_per_node));
    if (EndsAll(status)) End(status);
  }
  (*ranks)->Part(settings_.timeout);
  // They may have communicators, whose end must come before MPI_Finalize.
  fabric = nullptr;
  ranks->reset();
  if (status.ok()) return Finish();
  if (!agreed) return Refuse(status, kBadUsageExit);
  const int code = ExitCodeOf(status);
  return Refuse(status, cannot_run_ && code == kFailedExit ? kCannotRunExit : code);
}

int Command::StayAlone(const absl::Status& status) {
  const Launch launch = OwnLaunch();
  rank_ = launch.rank;
  report_->world = launch.size;
  report_->finished = true;
  AddError("", status);
  PrintTo(stderr, absl::StrCat("sluice-bench ", settings_.name, ": rank ", rank_, ": ",
                               status.message(), "\n"));
  WriteJson().IgnoreError();  // the error has been said
  return ExitCodeOf(status);
}

void Command::Print(const std::string& text) const {
  if (rank_ == 0) PrintTo(stdout, absl::StrCat(std::exchange(head_, ""), text));
}

bool Command::SaveResults() const {
  if (rank_ == 0 && last_words_ != nullptr) SetLastWords(Footer());
  const absl::Status written = WriteJson();
  if (written.ok()) return true;
  PrintTo(stderr, absl::StrCat("# error: ", written.message(), "\n"));
  return false;
}

void Command::AddError(const std::string& id, const absl::Status& status) {
  report_->errors.push_back({id, std::string(status.message())});
}

absl::Status Command::Needs(const absl::Status& status) {
  if (!status.ok()) cannot_run_ = true;
  return status;
}

absl::Status Command::AllOk(Ranks* ranks, const absl::Status& mine, Ranks::Progress progress) {
  absl::Status status = ranks->AllOk(mine, settings_.timeout, progress);
  if (EndsAll(status)) End(status);
  return status;
}

void Command::EndWith(int code, const absl::Status& status, const std::string& id) {
  last_words_ = nullptr;  // launchers end who is left by SIGTERM
  report_->finished = true;
  AddError(id, status);
  if (rank_ == 0) {
    Print(Footer());
    WriteJson().IgnoreError();  // the error itself may be that it cannot be written
  }
  PrintTo(stderr, absl::StrCat("sluice-bench ", settings_.name, ": rank ", rank_, ": ",
                               status.message(), "\n"));
  if (report_->world > 1) absl::SleepFor(rank_ == 0 ? kGraceForOthers : kGraceForRankZero);
  job_->Abort(code);
  std::_Exit(code);
}

absl::Status Command::CheckJsonFile() const {
  const absl::Status written = WriteJson();
  return written.ok() ? written
                      : absl::InvalidArgumentError(absl::StrCat("--json: ", written.message()));
}

absl::Status Command::WriteJson() const {
  if (rank_ != 0 || settings_.json_file.empty()) return absl::OkStatus();
  return WriteFile(settings_.json_file, Json());
}

int Command::Finish() {
  last_words_ = nullptr;  // launchers end who is left by SIGTERM
  report_->finished = true;
  Print(Footer());
  bool is_good = SaveResults() && IsGood() && report_->errors.empty();
  if (std::ferror(stdout) != 0) {
    PrintTo(stderr, absl::StrCat("sluice-bench ", settings_.name, ": cannot write to stdout\n"));
    is_good = false;
  }
  job_ = nullptr;
  if (!is_good && rank_ != 0) absl::SleepFor(kGraceForOthers);
  return is_good ? kGoodExit : kFailedExit;
}

int Command::Refuse(const absl::Status& status, int code) {
  last_words_ = nullptr;  // launchers end who is left by SIGTERM
  report_->finished = true;
  AddError("", status);
  if (rank_ == 0) {
    PrintTo(stderr, absl::StrCat("sluice-bench ", settings_.name, ": ", status.message(), "\n"));
    WriteJson().IgnoreError();  // the error itself may be that it cannot be written
  }
  job_ = nullptr;
  return code;
}

}  // namespace sluice::bench
