// Opens wires between ranks for trial, as sessions do.
#ifndef SLUICE_TOOLS_DOCTOR_LOOK_WIRES_H_
#define SLUICE_TOOLS_DOCTOR_LOOK_WIRES_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "doctor/facts.h"
#include "doctor/options.h"
#include "job/job.h"
#include "job/ranks.h"

namespace sluice::bench {

// All collective. What they find is no error; errors are ranks that do not come.

// Connects the ranks of each node for direct copies. `limit` is that of the job.
absl::Status TryDirect(Ranks* ranks, absl::Span<const int> node_of_rank, absl::Duration timeout,
                       WireFacts* facts, DirectLimit* limit);

// This rank's GPU, and sessions over them if all ranks have one.
absl::Status TryGpus(Job* job, Ranks* ranks, absl::Span<const int> node_of_rank,
                     const DoctorOptions& options, GpuFacts* facts, GpuTrial* cuda_ipc,
                     GpuTrial* nccl);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_DOCTOR_LOOK_WIRES_H_
