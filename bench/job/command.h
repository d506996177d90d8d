// One benchmark command on one rank, from the flags to the exit code.
//
// A command says what it has understood, runs, and puts its report into words. How ranks agree
// before anything moves, who prints and writes, and how a job ends is the same for all commands.
#ifndef SLUICE_BENCH_JOB_COMMAND_H_
#define SLUICE_BENCH_JOB_COMMAND_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/exit_codes.h"
#include "job/job.h"
#include "job/last_words.h"
#include "job/ranks.h"
#include "report/report.h"
#include "sluice/fabric.h"

namespace sluice::bench {

struct CommandSettings {
  std::string name;       // of the subcommand
  std::string json_file;  // the results file; empty: none
  absl::Duration timeout;
  int ranks_per_node = 0;  // 0: by host (PlanNodes)
};

class Command {
 public:
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // Collective over `job`, which may be an error: then there is none. `flags` says whether this
  // rank's flags could be read. Leaves the job and returns the exit code, or ends the job.
  int Execute(absl::StatusOr<std::unique_ptr<Job>> job, const absl::Status& flags);

 protected:
  // `report` is a member of the command, so that it is made after this object.
  Command(CommandSettings settings, JobReport* report)
      : settings_(std::move(settings)), report_(report) {}

  // ---- What a command fills in.

  // Reads what the flags name. Returns what has to be equal on all ranks, by name. Called on ranks
  // whose flags could be read.
  virtual absl::StatusOr<KnobList> Describe() = 0;
  // Runs on ranks that have described the same. An error is all ranks', unless EndsAll is true of
  // it: then it ends the job.
  virtual absl::Status Run(Ranks* ranks, std::unique_ptr<Fabric> fabric) = 0;
  // Whether the results are good; errors of the report count without it.
  virtual bool IsGood() const = 0;
  // The results file as it stands; called on rank 0 at any time.
  virtual std::string Json() const = 0;
  // What follows the rows of the table.
  virtual std::string Footer() const = 0;

  // ---- What a command uses.

  Job* job() const { return job_.get(); }
  int rank() const { return rank_; }
  // To the standard output of rank 0.
  void Print(const std::string& text) const;
  // The same, once something else is printed: not if nothing can be run.
  void PrintLater(const std::string& head) { head_ = head; }
  // Writes the results file on rank 0; says on its standard error what went wrong. False if
  // anything did. What the table has to say so far is what an interrupt prints.
  bool SaveResults() const;
  // What an interrupt prints from now on.
  void SetLastWords(const std::string& text) const { last_words_->Set(text); }
  void AddError(const std::string& id, const absl::Status& status);
  // An error of what has to be there means that nothing can be run here, unless a flag is wrong.
  // Returns `status`, for Run to return.
  absl::Status Needs(const absl::Status& status);
  // One status for all ranks. Ends the job where it leaves ranks apart.
  absl::Status AllOk(Ranks* ranks, const absl::Status& mine, Ranks::Progress progress);
  absl::Status AllOk(Ranks* ranks, const absl::Status& mine) {
    return AllOk(ranks, mine, [] { return absl::OkStatus(); });
  }
  // The end after an error that others may not have: ends the job. `id`: the case's, if any.
  [[noreturn]] void End(const absl::Status& status, const std::string& id = "") {
    EndWith(kFailedExit, status, id);
  }

 private:
  [[noreturn]] void EndWith(int code, const absl::Status& status, const std::string& id);
  absl::Status WriteJson() const;
  // Writes it for the first time: an error is the flag's, and of the job's ranks alike.
  absl::Status CheckJsonFile() const;
  // The end where there is no job, because of `status`.
  int StayAlone(const absl::Status& status);
  // The orderly end, on all ranks, which have the same report.
  int Finish();
  // The end after an error that all ranks have; `code` is returned.
  int Refuse(const absl::Status& status, int code);

  const CommandSettings settings_;
  JobReport* const report_;
  std::unique_ptr<Job> job_;  // null: there is none
  int rank_ = 0;
  std::unique_ptr<LastWords> last_words_;
  bool cannot_run_ = false;
  mutable std::string head_;  // to be printed before the next text
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_COMMAND_H_
