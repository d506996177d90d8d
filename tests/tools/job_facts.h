// Facts of a job with nothing wrong, for tests to break.
#ifndef SLUICE_TESTS_TOOLS_JOB_FACTS_H_
#define SLUICE_TESTS_TOOLS_JOB_FACTS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "doctor/facts.h"
#include "doctor/findings.h"

namespace sluice::bench {

// Ranks on machines of `per_node` CPUs, one on each.
inline JobFacts GoodJob(int ranks, int per_node) {
  JobFacts job;
  job.build = "gcc 12.2.0, release";
  job.mpi = "Open MPI v4.1.4";
  for (int rank = 0; rank < ranks; ++rank) {
    const int node = rank / per_node;
    RankFacts facts;
    facts.host = "node" + std::to_string(node);
    facts.machine = "machine" + std::to_string(node);
    facts.pid_namespace = 7;
    facts.mpi.has_all_threads = true;
    facts.mpi.thread_level = "MPI_THREAD_MULTIPLE";
    facts.mpi.launched = ranks;
    facts.cpu.cpus = {rank % per_node};
    facts.cpu.online = per_node;
    facts.cpu.cache_bytes = 2 << 20;
    facts.cpu.knows_cache = true;
    facts.gpu.built_in = "no CUDA";
    facts.limits.shm_bytes = int64_t{1} << 30;
    facts.limits.memlock_bytes = 8 << 20;
    facts.limits.files = 1024;
    facts.limits.files_hard = 4096;
    job.ranks.push_back(facts);
    job.node_of_rank.push_back(node);
  }
  return job;
}

// The findings of a check that are not ok.
inline Findings ProblemsOf(const JobFacts& job, absl::string_view check) {
  Findings problems;
  for (const Finding& finding : Examine(job)) {
    if (finding.check == check && finding.state != State::kOk) problems.push_back(finding);
  }
  return problems;
}

// The one finding of a check; one without a check if there are several, or none.
inline Finding Only(const JobFacts& job, absl::string_view check) {
  Findings found;
  for (const Finding& finding : Examine(job)) {
    if (finding.check == check) found.push_back(finding);
  }
  return found.size() == 1 ? found[0] : Finding();
}

}  // namespace sluice::bench

#endif  // SLUICE_TESTS_TOOLS_JOB_FACTS_H_
