// Every rank looks; rank 0 judges and says.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "commands.h"
#include "doctor/facts.h"
#include "doctor/findings.h"
#include "doctor/look_system.h"
#include "doctor/options.h"
#include "job/built_with.h"
#include "job/command.h"
#include "sluice/transport.h"
#include "transport/process_name.h"
#include "world/launch.h"

namespace sluice::bench {
namespace {

absl::Status NoNews() { return absl::OkStatus(); }

class DoctorCommand final : public Command {
 public:
  explicit DoctorCommand(const DoctorOptions& options)
      : Command({"doctor", options.json_file, options.timeout(), options.ranks_per_node}, &report_),
        options_(options) {}

 private:
  absl::StatusOr<KnobList> Describe() override {
    return KnobList{{"timeout_us", absl::ToInt64Microseconds(options_.timeout())},
                    {"ranks_per_node", options_.ranks_per_node}};
  }

  absl::Status Run(Ranks* ranks, std::unique_ptr<Fabric> fabric) override {
    JobFacts job;
    job.node_of_rank.assign(fabric->node_of_rank().begin(), fabric->node_of_rank().end());
    job.nodes_are_given = options_.ranks_per_node > 0;
    absl::Status status = FindFabric(fabric.get(), &job);
    if (!status.ok()) return status;
    RankFacts own = LookAlone(*ranks);
    status = TryDirect(ranks, job.node_of_rank, options_.timeout(), &own.wires, &job.limit);
    if (status.ok()) {
      status = TryGpus(this->job(), ranks, job.node_of_rank, options_, &own.gpu, &job.cuda_ipc,
                       &job.nccl);
    }
    if (!status.ok()) return status;
    const auto texts = ranks->GatherToFirst(ToText(own), options_.timeout(), &NoNews);
    if (!texts.ok()) return texts.status();
    status = AllOk(ranks, rank() == 0 ? Judge(*texts, &job) : absl::OkStatus());
    if (!status.ok()) return status;
    return ShareVerdict(ranks);
  }

  bool IsGood() const override { return problems_ == 0; }

  std::string Json() const override {
    nlohmann::ordered_json json = ResultsHead({{"ranks_per_node", options_.ranks_per_node},
                                               {"timeout_s", options_.timeout_s},
                                               {"world", report_.world},
                                               {"hosts", report_.hosts.size()}});
    json["results"] = FindingsJson(findings_);
    json["errors"] = ErrorsJson(report_.ErrorsSoFar());
    return ResultsText(json);
  }

  std::string Footer() const override { return ErrorLines(report_); }

  // What ranks meet over. Where nothing tells beforehand what carries their messages, such a
  // transport is opened for trial.
  absl::Status FindFabric(Fabric* fabric, JobFacts* facts) const {
    facts->fabric = job()->Describe();
    facts->started_by = OwnLaunch().by;
    facts->uses_mpi = job()->kind() == JobKind::kMpi;
    if (facts->uses_mpi) return absl::OkStatus();
    const absl::StatusOr<std::unique_ptr<Transport>> transport = fabric->OpenTransport();
    if (transport.ok()) facts->messages = std::string((*transport)->name());
    return transport.status();
  }

  RankFacts LookAlone(const Ranks& ranks) const {
    RankFacts facts;
    const ProcessName process = OwnProcessName();
    facts.host =
        ranks.hosts()[static_cast<size_t>(ranks.host_of_rank()[static_cast<size_t>(rank())])];
    facts.machine = process.boot.data();
    facts.pid_namespace = process.pid_namespace;
    if (job()->kind() == JobKind::kMpi) facts.mpi = LookAtMpi();
    facts.wires = LookAtOwnWires();
    facts.cpu = LookAtCpus();
    facts.limits = LookAtLimits();
    facts.ports = LookAtPorts();
    return facts;
  }

  // On rank 0.
  absl::Status Judge(const std::vector<std::string>& texts, JobFacts* job) {
    job->build = BuiltWith();
    job->mpi = report_.mpi;
    for (const std::string& text : texts) {
      absl::StatusOr<RankFacts> facts = RankFactsOf(text);
      if (!facts.ok()) return facts.status();
      job->ranks.push_back(*std::move(facts));
    }
    findings_ = Examine(*job);
    problems_ = Problems(findings_, !options_.strict);
    Print(absl::StrCat("# sluice-bench doctor ", SLUICE_VERSION, ": ", report_.world,
                       report_.world == 1 ? " rank on " : " ranks on ",
                       absl::StrJoin(report_.hosts, ","), "\n", FindingsText(findings_)));
    return absl::OkStatus();
  }

  // All ranks end with one code.
  absl::Status ShareVerdict(Ranks* ranks) {
    const auto counts = ranks->AllGather(absl::StrCat(problems_), options_.timeout(), &NoNews);
    if (!counts.ok()) return counts.status();
    if (counts->front() != "0") problems_ = std::max(problems_, 1);
    return absl::OkStatus();
  }

  const DoctorOptions& options_;
  Findings findings_;
  int problems_ = 0;  // that the exit code tells of
  JobReport report_;
};

}  // namespace

int RunDoctor(absl::StatusOr<std::unique_ptr<Job>> job, const DoctorOptions& options,
              const absl::Status& flags) {
  return DoctorCommand(options).Execute(std::move(job), flags);
}

}  // namespace sluice::bench
