// What the example rollouts.cc says in the end: sums over all ranks, whether all is as it should
// be, and the trace.
#ifndef SLUICE_EXAMPLES_ROLLOUTS_REPORT_H_
#define SLUICE_EXAMPLES_ROLLOUTS_REPORT_H_

#include <mpi.h>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rollouts.h"
#include "sluice/session.h"
#include "sluice/trace.h"

namespace rollouts {

// Ends the whole job: ranks that wait for this one would wait for ever.
inline void CheckOk(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "rollouts: " << status << std::endl;
  MPI_Abort(MPI_COMM_WORLD, 1);
}

template <typename T>
T Check(absl::StatusOr<T> value) {
  CheckOk(value.status());
  return *std::move(value);
}

// Of one rank.
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

inline int64_t OverRanks(int64_t value, MPI_Op op) {
  int64_t result = 0;
  MPI_Allreduce(&value, &result, 1, MPI_INT64_T, op, MPI_COMM_WORLD);
  return result;
}

// Says what is in it on rank 0, and on all ranks whether all of it is right. Collective.
inline bool Report(const Seen& mine, uint64_t digest, int64_t buckets) {
  int ranks = 1;
  int rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const uint64_t wanted = DigestWithoutOverlap();
  const int64_t missing = OverRanks(kBatches * kPerBatch - mine.rollouts, MPI_SUM);
  const int64_t out_of_order = OverRanks(mine.out_of_order, MPI_SUM);
  const int64_t wrong_update = OverRanks(mine.wrong_update, MPI_SUM);
  const int64_t same = OverRanks(digest == wanted ? 1 : 0, MPI_SUM);
  const int64_t least_made = OverRanks(mine.made_here, MPI_MIN);
  const int64_t most_made = OverRanks(mine.made_here, MPI_MAX);
  const int64_t staleness = OverRanks(mine.staleness, MPI_MAX);
  const int64_t stream_peak = OverRanks(mine.stream_peak, MPI_MAX);
  const int64_t buckets_peak = OverRanks(mine.buckets_peak, MPI_MAX);
  const int64_t staging_peak = OverRanks(mine.staging_peak, MPI_MAX);
  const int64_t played_us = OverRanks(mine.played_us, MPI_MAX);
  const int64_t took_us = OverRanks(mine.took_us, MPI_MAX);
  if (rank == 0) {
    std::cout << kBatches << " batches of " << kPerBatch << " rollouts: each rank made "
              << least_made << " to " << most_made << " of them and got all\n"
              << "of all ranks' rollouts " << missing << " are missing, " << out_of_order
              << " out of order, " << wrong_update << " saw another update than they should\n"
              << "they were begun with " << staleness << " update missing at most; " << same
              << " of " << ranks << " ranks have hash " << std::hex << wanted << std::dec
              << ", that of a loop without overlap\n"
              << "most at once on a rank: " << buckets_peak << " of " << buckets
              << " buckets of weights with " << staging_peak / 1024 << " KiB of staging, "
              << stream_peak / 1024 << " of " << mine.stream_budget / 1024 << " KiB of rollouts\n"
              << "a rank played for " << played_us / 1000 << " ms and computed for "
              << mine.computed_us / 1000 << " ms; with transfers all took " << took_us / 1000
              << " ms" << std::endl;
  }
  return missing == 0 && out_of_order == 0 && wrong_update == 0 && same == ranks &&
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
inline bool WriteTrace(sluice::Session& session, const std::string& path) {
  const std::string mine = session.trace()->Serialize();
  const int bytes = static_cast<int>(mine.size());
  std::vector<int> sizes(static_cast<size_t>(session.size()));
  MPI_Allgather(&bytes, 1, MPI_INT, sizes.data(), 1, MPI_INT, MPI_COMM_WORLD);
  std::vector<int> begins(sizes.size());
  std::exclusive_scan(sizes.begin(), sizes.end(), begins.begin(), 0);
  std::string all(static_cast<size_t>(begins.back() + sizes.back()), '\0');
  MPI_Gatherv(mine.data(), bytes, MPI_CHAR, all.data(), sizes.data(), begins.data(), MPI_CHAR, 0,
              MPI_COMM_WORLD);
  int written = 0;
  if (session.rank() == 0) {
    std::vector<sluice::TracePart> parts(sizes.size());
    for (size_t r = 0; r < parts.size(); ++r) {
      parts[r].content = all.substr(static_cast<size_t>(begins[r]), static_cast<size_t>(sizes[r]));
    }
    const std::string json = Check(sluice::ChromeTrace(parts));
    const int64_t of_stream = Count(json, "\"cat\":\"stream\"");
    const int64_t of_buckets = Count(json, "\"cat\":\"bucket\"");
    std::ofstream file(path, std::ios::binary);
    file << json;
    written = file.flush().good() && of_stream > 0 && of_buckets > 0 ? 1 : 0;
    std::cout << (written == 1 ? "wrote " : "cannot use ") << path << ": " << of_stream
              << " events of the stream, " << of_buckets << " stages of buckets" << std::endl;
  }
  MPI_Bcast(&written, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return written == 1;
}

// Says how it is called; the exit code for that.
inline int Usage(const std::string& argument) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    std::cerr << "rollouts: " << argument << "?\nusage: rollouts [--trace FILE] [--messages]\n";
  }
  return 2;
}

}  // namespace rollouts

#endif  // SLUICE_EXAMPLES_ROLLOUTS_REPORT_H_
