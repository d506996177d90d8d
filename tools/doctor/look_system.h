// Asks the system, and the library's owners of facts, what this rank may do and has.
#ifndef SLUICE_TOOLS_DOCTOR_LOOK_SYSTEM_H_
#define SLUICE_TOOLS_DOCTOR_LOOK_SYSTEM_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "doctor/facts.h"
#include "doctor/options.h"
#include "job/job.h"
#include "job/ranks.h"

namespace sluice::bench {

// None of these waits for other ranks. LookAtMpi is for jobs of MPI; in programs without MPI there
// is nothing that it sees.
MpiFacts LookAtMpi();
CpuFacts LookAtCpus();
LimitFacts LookAtLimits();
// While the fabric is there.
PortFacts LookAtPorts();

// What of the wires a rank finds out alone.
WireFacts LookAtOwnWires();

// Entries of a directory that begin with `prefix`; 0 if there is none.
int CountEntries(const std::string& directory, const std::string& prefix);

// ---- Opens wires between ranks for trial, as sessions do. All collective. What is found is no
// error; errors are ranks that do not come.

// Connects the ranks of each node for direct copies. `limit` is that of the job.
absl::Status TryDirect(Ranks* ranks, absl::Span<const int> node_of_rank, absl::Duration timeout,
                       WireFacts* facts, DirectLimit* limit);

// This rank's GPU, and sessions over them if all ranks have one.
absl::Status TryGpus(Job* job, Ranks* ranks, absl::Span<const int> node_of_rank,
                     const DoctorOptions& options, GpuFacts* facts, GpuTrial* cuda_ipc,
                     GpuTrial* nccl);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_DOCTOR_LOOK_SYSTEM_H_
