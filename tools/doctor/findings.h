// What is right and what is wrong about a job's system: findings out of facts.
#ifndef SLUICE_TOOLS_DOCTOR_FINDINGS_H_
#define SLUICE_TOOLS_DOCTOR_FINDINGS_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "doctor/facts.h"

namespace sluice::bench {

enum class State : int { kOk = 0, kSlow = 1, kMissing = 2 };

std::string StateName(State state);

struct Finding {
  std::string check;  // a name from results files, such as "wire_node"
  std::string value;  // in words
  State state = State::kOk;
  std::string todo;   // empty if and only if the state is kOk
  std::string ranks;  // "ranks 0-3,7"; empty: all of them
};

using Findings = std::vector<Finding>;

// Everything, in the order in which it is shown. Every check is there, whatever comes of it. There
// are several of a check where ranks differ.
Findings Examine(const JobFacts& job);

// How many are not ok, or with `missing_only` how many are missing.
int Problems(absl::Span<const Finding> findings, bool missing_only = false);

// ---- The parts of Examine.

Findings ExamineStart(const JobFacts& job);   // build, fabric, MPI, ranks, nodes
Findings ExamineWires(const JobFacts& job);   // between whom what carries bytes of host memory
Findings ExamineGpus(const JobFacts& job);    // GPUs, and what carries bytes of theirs
Findings ExamineCpus(const JobFacts& job);    // cores, binding, caches
Findings ExamineLimits(const JobFacts& job);  // what the system allows
Findings ExaminePorts(const JobFacts& job);   // who may connect to which ports

// What `judge` says of each rank, ranks of which it says the same together. It leaves `ranks`
// empty.
Findings ForRanks(const JobFacts& job, const std::function<Finding(const RankFacts&, int)>& judge);

// The ranks of each node, in the order of nodes.
std::vector<std::vector<int>> RanksOfNodes(const JobFacts& job);

// A line for each, wrapped, with what to do below it; the count of problems at the end.
std::string FindingsText(absl::Span<const Finding> findings);

// The "results" of a results file.
nlohmann::ordered_json FindingsJson(absl::Span<const Finding> findings);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_DOCTOR_FINDINGS_H_
