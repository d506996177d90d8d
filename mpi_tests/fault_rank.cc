// One rank of a job of which one rank dies or stops in the middle of a run. Everyone leaves a file
// that says how it ended; fault_test.py starts the job and judges.
//
//   fault_rank FOLDER VICTIM kill|stop sender|receiver|all
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "fault_result.h"
#include "session/clock.h"
#include "session/job.h"
#include "session_mpi_rank.h"

namespace sluice::session_test {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// Rendezvous; and so many in a run that no single Poll, however late it comes, ends the run.
constexpr int64_t kBucketBytes = 64 << 10;
constexpr absl::Duration kTimeout = absl::Seconds(3);
// When the victim goes, of the 256 or more that it has in a run.
constexpr int64_t kBucketsBefore = 5;

TransferSpec SpecOf(const std::string& part, int size, int victim) {
  TransferSpec spec = AllToAll(size, 8 * kMiB);
  if (part == "all") return spec;
  const Layout alone = MakeLayout({1}, {victim}, "R");
  const Layout shards = MakeLayout({size}, Ranks(0, size), "S(0)");
  spec.tensors[0].shape = {size, 16 * kMiB / 8};
  spec.tensors[0].src = part == "sender" ? alone : shards;
  spec.tensors[0].dst = part == "sender" ? shards : alone;
  return spec;
}

void PollUntilUnderWay(Session* session) {
  session->ResetCounters();
  while (session->counters().buckets_finished < kBucketsBefore) {
    if (!session->Poll().ok()) std::abort();
  }
}

// The error that ends the job here, also where this rank's part of the run was done before.
absl::Status UntilError(Session* session, Session::RunId run) {
  absl::Status status = session->Wait(run);
  const int64_t deadline_ns = MonotonicNs() + 4 * absl::ToInt64Nanoseconds(kTimeout);
  while (status.ok() && MonotonicNs() < deadline_ns) status = session->Poll();
  return status;
}

int Main(const std::string& folder, int victim, bool stop, const std::string& part) {
  Rank self = MpiRank(MPI_COMM_WORLD);
  if (self.fabric == nullptr) return 1;
  SessionOptions options;
  options.bucket_bytes = kBucketBytes;
  options.budget_buckets = 4;
  options.timeout = kTimeout;
  const auto session = OpenSession(self, options);
  if (session == nullptr) return 1;
  Bound bound = CompileBound(session.get(), SpecOf(part, self.size, victim));
  if (bound.transfer == nullptr) return 1;
  for (uint64_t round = 1; round <= 2; ++round) {
    bound.memory.Prepare(round);
    self.meet();  // filling memory may take some longer than the timeout
    const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst());
    if (!run.ok() || !session->Wait(*run).ok()) return 1;
  }
  bound.memory.Prepare(3);
  self.meet();
  const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst());
  if (!run.ok()) return 1;
  if (self.rank == victim) {
    PollUntilUnderWay(session.get());
    Vanish(folder, victim, stop);
  }
  FaultResult result;
  result.start_ns = MonotonicNs();
  result.status = UntilError(session.get(), *run);
  result.error_ns = MonotonicNs();
  result.closed = session->Close();
  result.closed_ns = MonotonicNs();
  WriteResult(folder, self.rank, result);
  // MPI_Finalize would wait for the operations with the rank that is gone.
  _exit(testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed() ? 1 : 0);
}

}  // namespace
}  // namespace sluice::session_test

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  _exit(sluice::session_test::Main(argv[1], std::atoi(argv[2]), std::string(argv[3]) == "stop",
                                   argv[4]));
}
