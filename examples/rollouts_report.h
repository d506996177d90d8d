// The final report of the example rollouts.cc: sums over all ranks, whether all is as it should be,
// and the trace.
#ifndef SLUICE_EXAMPLES_ROLLOUTS_REPORT_H_
#define SLUICE_EXAMPLES_ROLLOUTS_REPORT_H_

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ranks.h"
#include "rollouts.h"
#include "sluice/session.h"
#include "sluice/trace.h"

namespace rollouts {

template <typename T>
T Check(examples::Ranks* ranks, absl::StatusOr<T> value) {
  ranks->CheckOk(value.status());
  return *std::move(value);
}

// Counts of one rank.
struct Seen {
  int64_t rollouts = 0;
  int64_t out_of_order = 0;
  int64_t wrong_update = 0;  // rollouts that another update is in than should be
  int64_t made_here = 0;
  int64_t staleness = 0;    // batches that were begun without so many updates, at most
  int64_t stream_peak = 0;  // bytes
  int64_t stream_budget = 0;
  int64_t buckets_peak = 0;
  int64_t staging_peak = 0;  // bytes
  int64_t played_us = 0;     // making rollouts
  int64_t computed_us = 0;   // updates
  int64_t took_us = 0;
};

inline int64_t MostOf(examples::Ranks* ranks, int64_t value) {
  const std::vector<int64_t> all = ranks->AllGather(value);
  return *std::max_element(all.begin(), all.end());
}

inline int64_t LeastOf(examples::Ranks* ranks, int64_t value) { return -MostOf(ranks, -value); }

// Says what is in it on rank 0, and on all ranks whether all of it is right. Collective.
inline bool Report(examples::Ranks* ranks, const Seen& mine, uint64_t digest, int64_t buckets) {
  const uint64_t wanted = DigestWithoutOverlap();
  const int64_t missing = ranks->Sum(kBatches * kPerBatch - mine.rollouts);
  const int64_t out_of_order = ranks->Sum(mine.out_of_order);
  const int64_t wrong_update = ranks->Sum(mine.wrong_update);
  const int64_t same = ranks->Sum(digest == wanted ? 1 : 0);
  const int64_t least_made = LeastOf(ranks, mine.made_here);
  const int64_t most_made = MostOf(ranks, mine.made_here);
  const int64_t staleness = MostOf(ranks, mine.staleness);
  const int64_t stream_peak = MostOf(ranks, mine.stream_peak);
  const int64_t buckets_peak = MostOf(ranks, mine.buckets_peak);
  const int64_t staging_peak = MostOf(ranks, mine.staging_peak);
  const int64_t played_us = MostOf(ranks, mine.played_us);
  const int64_t took_us = MostOf(ranks, mine.took_us);
  if (ranks->rank() == 0) {
    std::cout << kBatches << " batches of " << kPerBatch << " rollouts: each rank made "
              << least_made << " to " << most_made << " of them and got all\n"
              << "of all ranks' rollouts " << missing << " are missing, " << out_of_order
              << " out of order, " << wrong_update << " saw another update than they should\n"
              << "they were begun with " << staleness << " update missing at most; " << same
              << " of " << ranks->size() << " ranks have hash " << std::hex << wanted << std::dec
              << ", that of a loop without overlap\n"
              << "most at once on a rank: " << buckets_peak << " of " << buckets
              << " buckets of weights with " << staging_peak / 1024 << " KiB of staging, "
              << stream_peak / 1024 << " of " << mine.stream_budget / 1024 << " KiB of rollouts\n"
              << "a rank played for " << played_us / 1000 << " ms and computed for "
              << mine.computed_us / 1000 << " ms; with transfers all took " << took_us / 1000
              << " ms" << std::endl;
  }
  return missing == 0 && out_of_order == 0 && wrong_update == 0 && same == ranks->size() &&
         staleness == 1 && stream_peak <= mine.stream_budget && buckets_peak <= buckets;
}

// How often `what` is in `text`.
inline int64_t Count(const std::string& text, const std::string& what) {
  int64_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// One file of all ranks, written by rank 0. False, on all ranks, if it cannot be, or lacks stream
// or transfers. The ranks must share a clock: one node. Collective.
inline bool WriteTrace(examples::Ranks* ranks, sluice::Session& session, const std::string& path) {
  const std::vector<std::string> all = ranks->AllGather(session.trace()->Serialize());
  int64_t written = 0;
  if (session.rank() == 0) {
    std::vector<sluice::TracePart> parts(all.size());
    for (size_t r = 0; r < parts.size(); ++r) parts[r].content = all[r];
    const std::string json = Check(ranks, sluice::ChromeTrace(parts));
    const int64_t of_stream = Count(json, "\"cat\":\"stream\"");
    const int64_t of_buckets = Count(json, "\"cat\":\"bucket\"");
    std::ofstream file(path, std::ios::binary);
    file << json;
    written = file.flush().good() && of_stream > 0 && of_buckets > 0 ? 1 : 0;
    std::cout << (written == 1 ? "wrote " : "cannot use ") << path << ": " << of_stream
              << " events of the stream, " << of_buckets << " stages of buckets" << std::endl;
  }
  return ranks->Sum(written) == 1;
}

// Says how it is called; the exit code for that.
inline int Usage(const examples::Ranks& ranks, const std::string& argument) {
  if (ranks.rank() == 0) {
    std::cerr << "rollouts: " << argument << "?\nusage: rollouts [--trace FILE] [--messages]\n";
  }
  return 2;
}

}  // namespace rollouts

#endif  // SLUICE_EXAMPLES_ROLLOUTS_REPORT_H_
