// What one rank knows after a case, as it travels to rank 0.
#ifndef SLUICE_BENCH_RESHARD_RANK_RECORD_H_
#define SLUICE_BENCH_RESHARD_RANK_RECORD_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sluice/session.h"
#include "workload/local_tensor.h"

namespace sluice::bench {

struct RankRecord {
  std::vector<int64_t> start_ns;  // of each timed iteration, CLOCK_MONOTONIC
  std::vector<int64_t> end_ns;
  int64_t wrong = 0;
  int64_t peak_target_bytes = 0;     // with --windowed: target memory held at once
  int64_t whole_target_bytes = 0;    // with --windowed: of all its targets
  int64_t grown_bytes = 0;           // of resident memory, in all iterations
  std::string grown_by = "none";     // how that is known: MethodName
  int64_t corruptible_elements = 0;  // that --corrupt could have hit, on all ranks
  TransferStats stats;
  SessionCounters counters;
  // With --fingerprint: (tensor of the spec, fingerprint), where this rank is in the target mesh.
  std::vector<std::pair<int64_t, Fingerprint>> fingerprints;
};

std::string Encode(const RankRecord& record);
RankRecord Decode(const std::string& text);  // of what Encode returned

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_RANK_RECORD_H_
