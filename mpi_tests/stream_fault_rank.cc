// One rank of a job that shares a stream and of which one rank dies or stops before its end.
//
//   stream_fault_rank FOLDER VICTIM kill|stop stream
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "fault_result.h"
#include "session/job.h"
#include "session_mpi_rank.h"
#include "sluice/stream.h"

namespace sluice::session_test {
namespace {

constexpr int64_t kItemBytes = 64 << 10;  // rendezvous
constexpr int kObjects = 16;
constexpr int kItemsPerObject = 16;
// When the victim goes. No rank can be further ahead of it than slots and device buffers reach.
constexpr int kItemsBefore = 5;
constexpr int kSlots = 4;

void WriteShards(const std::string& folder) {
  const std::vector<char> shard(static_cast<size_t>(kItemsPerObject * kItemBytes), 'x');
  for (int object = 0; object < kObjects; ++object) {
    std::ofstream(absl::StrCat(folder, "/shard-", object + 100, ".raw"))
        .write(shard.data(), static_cast<std::streamsize>(shard.size()));
  }
}

StreamOptions OptionsOf(const std::string& folder, bool stop) {
  StreamOptions options;
  options.source.uri = "buffered:" + folder;
  options.source.format = ItemFormat::kRaw;
  options.source.item_bytes = kItemBytes;
  options.reads.slots = kSlots;
  options.timeout = TimeoutOf(stop);
  return options;
}

// The error that ends the stream; OK at its end, which is none.
absl::Status TakeUntilError(Stream* stream, int items) {
  for (int i = 0; i < items; ++i) {
    const absl::StatusOr<Lease> lease = stream->Next();
    if (!lease.ok()) return lease.status();
    if (lease->end()) break;
  }
  return absl::OkStatus();
}

int Main(const std::string& folder, int victim, bool stop) {
  Rank self = MpiRank(MPI_COMM_WORLD);
  if (self.fabric == nullptr) return 1;
  WatchCallsOf(folder, self.rank);
  const std::string shards = folder + "/shards";
  if (self.rank == 0) {
    if (mkdir(shards.c_str(), 0700) != 0) return 1;
    WriteShards(shards);
  }
  self.meet();
  SessionOptions session_options;
  session_options.timeout = TimeoutOf(stop);
  const auto session = OpenSession(self, session_options);
  if (session == nullptr) return 1;
  auto stream = OpenStream(session.get(), OptionsOf(shards, stop));
  if (!stream.ok()) return 1;
  if (!TakeUntilError(stream->get(), kItemsBefore).ok()) return 1;
  if (self.rank == victim) Vanish(folder, victim, stop);
  FaultResult result;
  result.start_ns = MonotonicNs();
  result.status = TakeUntilError(stream->get(), kObjects * kItemsPerObject);
  result.error_ns = MonotonicNs();
  stream->reset();
  result.closed = session->Close();
  result.closed_ns = MonotonicNs();
  WriteResult(folder, self.rank, result);
  // MPI_Finalize would wait for the operations with the rank that is gone.
  _exit(0);
}

}  // namespace
}  // namespace sluice::session_test

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  _exit(sluice::session_test::Main(argv[1], std::atoi(argv[2]), std::string(argv[3]) == "stop"));
}
