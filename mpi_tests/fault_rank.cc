// One rank of a job in which one rank dies or stops. That happens in the middle of a run or stream,
// or when the others are about to wait for that rank elsewhere. Each rank leaves a file that says
// how it ended; fault_test.py starts the job and judges.
//
//   fault_rank FOLDER VICTIM kill|stop sender|receiver|all|stream|late|compile|idle|open|load|save|
//       loading|saving
#include <mpi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "fault_result.h"
#include "session/job.h"
#include "session_mpi_rank.h"
#include "sluice/checkpoint.h"
#include "sluice/stream.h"

namespace sluice::session_test {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// Rendezvous; and so many in a run that no single Poll, however late it comes, ends the run.
constexpr int64_t kBucketBytes = 64 << 10;
// When the victim goes, of the 256 or more that it has in a run.
constexpr int64_t kBucketsBefore = 5;

TransferSpec SpecOf(const std::string& part, int size, int victim) {
  TransferSpec spec = AllToAll(size, 8 * kMiB);
  if (part == "all" || part == "late") return spec;
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

// For longer than the others would wait for a rank that did not answer.
void PollWithoutStarting(Session* session) {
  const int64_t end_ns = MonotonicNs() + 2 * absl::ToInt64Nanoseconds(session->options().timeout);
  while (MonotonicNs() < end_ns) {
    if (!session->Poll().ok()) std::abort();
  }
}

// The error that ends the job here, for who polls and does nothing else.
absl::Status PollUntilError(Session* session) {
  absl::Status status;
  const int64_t deadline_ns =
      MonotonicNs() + 4 * absl::ToInt64Nanoseconds(session->options().timeout);
  while (status.ok() && MonotonicNs() < deadline_ns) status = session->Poll();
  return status;
}

// The same, also where this rank's part of the run was done before.
absl::Status UntilError(Session* session, Run run) {
  const absl::Status status = run.Wait();
  return status.ok() ? PollUntilError(session) : status;
}

// Streams: items past the eager limit, and when the victim goes. No rank can be further ahead of
// the victim than slots and device buffers reach.
constexpr int64_t kItemBytes = 64 << 10;
constexpr int kObjects = 16;
constexpr int kItemsPerObject = 16;
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

// Checkpoints: so many bytes on each rank that saving them takes longer than the victim lives.
std::vector<CheckpointTensor> TensorsOf(int size, std::vector<std::byte>* memory) {
  constexpr int64_t kRows = 32 * kMiB;
  memory->resize(static_cast<size_t>(kRows));
  CheckpointTensor tensor;
  tensor.name = "weights";
  tensor.shape = {size, kRows};
  tensor.dtype = DType::kU8;
  tensor.layout = MakeLayout({size}, Ranks(0, size), "S(0)");
  tensor.view = DenseView(memory->data(), {1, kRows}, DType::kU8);
  return {tensor};
}

// What a survivor does in a call that the victim does not make.
absl::Status CallAlone(const std::string& part, const std::string& folder, Session* session) {
  if (part == "compile") return session->Compile(AllToAll(session->size(), kMiB)).status();
  if (part == "idle") return PollUntilError(session);
  if (part == "open") {
    StreamOptions options;
    options.source.uri = "file:" + folder;
    return OpenStream(session, options).status();
  }
  std::vector<std::byte> memory;
  const std::vector<CheckpointTensor> tensors = TensorsOf(session->size(), &memory);
  return part == "load" ? LoadCheckpoint(session, "file:" + folder, tensors, {}).status()
                        : SaveCheckpoint(session, folder, tensors, {}).status();
}

// Checkpoints again and again, until a rank is gone; it goes in the middle.
absl::Status CallUntilError(const std::string& part, const std::string& folder, Session* session) {
  std::vector<std::byte> memory;
  const std::vector<CheckpointTensor> tensors = TensorsOf(session->size(), &memory);
  absl::Status status = SaveCheckpoint(session, folder, tensors, {}).status();
  while (status.ok()) {
    status = part == "loading" ? LoadCheckpoint(session, "file:" + folder, tensors, {}).status()
                               : SaveCheckpoint(session, folder, tensors, {}).status();
  }
  return status;
}

absl::Status CallTogether(const std::string& part, const std::string& folder, Session* session,
                          bool is_victim) {
  const std::string checkpoint = folder + "/checkpoint";
  mkdir(checkpoint.c_str(), 0700);
  std::thread end;
  if (is_victim) {
    end = std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
      raise(SIGKILL);
    });
  }
  absl::Status status = CallUntilError(part, checkpoint, session);
  if (is_victim) end.join();
  return status;
}

bool IsCall(const std::string& part) {
  return part == "loading" || part == "saving" || part == "compile" || part == "idle" ||
         part == "open" || part == "load" || part == "save";
}

int Leave(const std::string& folder, int rank, Session* session, FaultResult* result) {
  if (result->error_ns == 0) result->error_ns = MonotonicNs();
  result->closed = session->Close();
  result->closed_ns = MonotonicNs();
  WriteResult(folder, rank, *result);
  // MPI_Finalize would wait for the operations with the rank that is gone.
  _exit(testing::UnitTest::GetInstance()->ad_hoc_test_result().Failed() ? 1 : 0);
}

// Shares a stream until an error ends it, which is before its end.
int TakeItems(const std::string& folder, Rank& self, int victim, bool stop) {
  const std::string shards = folder + "/shards";
  if (self.rank == 0) {
    if (mkdir(shards.c_str(), 0700) != 0) return 1;
    WriteShards(shards);
  }
  self.meet();
  const auto session = OpenSession(self, {.timeout = TimeoutOf(stop)});
  auto stream = OpenStream(session.get(), OptionsOf(shards, stop));
  if (!stream.ok() || !TakeUntilError(stream->get(), kItemsBefore).ok()) return 1;
  if (self.rank == victim) Vanish(folder, victim, stop);
  FaultResult result;
  result.start_ns = MonotonicNs();
  result.status = TakeUntilError(stream->get(), kObjects * kItemsPerObject);
  result.error_ns = MonotonicNs();
  stream->reset();
  return Leave(folder, self.rank, session.get(), &result);
}

int Main(const std::string& folder, int victim, bool stop, const std::string& part) {
  Rank self = MpiRank(MPI_COMM_WORLD);
  WatchCallsOf(folder, self.rank);
  if (part == "stream") return TakeItems(folder, self, victim, stop);
  SessionOptions options;
  options.bucket_bytes = kBucketBytes;
  options.budget_buckets = 4;
  options.timeout = TimeoutOf(stop);
  const auto session = OpenSession(self, options);
  if (IsCall(part)) {
    self.meet();
    const bool together = part == "loading" || part == "saving";
    if (self.rank == victim && !together) Vanish(folder, victim, stop);
    FaultResult result;
    result.start_ns = MonotonicNs();
    result.status = together ? CallTogether(part, folder, session.get(), self.rank == victim)
                             : CallAlone(part, folder, session.get());
    return Leave(folder, self.rank, session.get(), &result);
  }
  Bound bound = CompileBound(session.get(), SpecOf(part, self.size, victim));
  for (uint64_t round = 1; round <= 2; ++round) {
    bound.memory.Prepare(round);
    self.meet();  // filling memory may take some longer than the timeout
    const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst());
    if (!run.ok() || !run->Wait().ok()) return 1;
  }
  bound.memory.Prepare(3);
  self.meet();
  FaultResult result;
  if (self.rank == victim && part == "late") {
    PollWithoutStarting(session.get());
    Vanish(folder, victim, stop);
    result.status = PollUntilError(session.get());
    return Leave(folder, self.rank, session.get(), &result);
  }
  const auto run = session->Start(bound.transfer, bound.memory.src(), bound.memory.dst());
  if (!run.ok()) return 1;
  if (self.rank == victim) {
    PollUntilUnderWay(session.get());
    Vanish(folder, victim, stop);
  }
  result.start_ns = MonotonicNs();
  result.status = UntilError(session.get(), *run);
  return Leave(folder, self.rank, session.get(), &result);
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
