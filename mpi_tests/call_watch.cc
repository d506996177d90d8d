// MPI functions in front of the library's, which they reach by the profiling interface, and a
// thread that looks how long the present call has lasted.
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "fault_result.h"

namespace sluice::session_test {
namespace {

std::atomic<const char*> present_call{nullptr};
std::atomic<uint64_t> calls_begun{0};

class Call {
 public:
  explicit Call(const char* name) {
    calls_begun.fetch_add(1, std::memory_order_relaxed);
    present_call.store(name, std::memory_order_release);
  }
  ~Call() { present_call.store(nullptr, std::memory_order_release); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
};

[[noreturn]] void Look(absl::Duration limit, const std::function<void(const char*)>& stuck) {
  uint64_t seen = 0;
  absl::Time since = absl::Now();
  while (true) {
    absl::SleepFor(absl::Milliseconds(100));
    const char* const name = present_call.load(std::memory_order_acquire);
    const uint64_t begun = calls_begun.load(std::memory_order_relaxed);
    if (name == nullptr || begun != seen) {
      seen = begun;
      since = absl::Now();
    } else if (absl::Now() - since >= limit) {
      stuck(name);
      since = absl::Now();
    }
  }
}

}  // namespace

void WatchCalls(absl::Duration limit, std::function<void(const char* call)> stuck) {
  std::thread([limit, stuck = std::move(stuck)] { Look(limit, stuck); }).detach();
}

}  // namespace sluice::session_test

using sluice::session_test::Call;

int MPI_Issend(const void* data, int count, MPI_Datatype type, int dst, int tag, MPI_Comm comm,
               MPI_Request* request) {
  const Call call("MPI_Issend");
  return PMPI_Issend(data, count, type, dst, tag, comm, request);
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int src, int tag, MPI_Comm comm,
              MPI_Request* request) {
  const Call call("MPI_Irecv");
  return PMPI_Irecv(data, count, type, src, tag, comm, request);
}

int MPI_Test(MPI_Request* request, int* complete, MPI_Status* status) {
  const Call call("MPI_Test");
  return PMPI_Test(request, complete, status);
}

int MPI_Testsome(int incount, MPI_Request requests[], int* outcount, int indices[],
                 MPI_Status statuses[]) {
  const Call call("MPI_Testsome");
  return PMPI_Testsome(incount, requests, outcount, indices, statuses);
}

int MPI_Iprobe(int src, int tag, MPI_Comm comm, int* found, MPI_Status* status) {
  const Call call("MPI_Iprobe");
  return PMPI_Iprobe(src, tag, comm, found, status);
}

int MPI_Cancel(MPI_Request* request) {
  const Call call("MPI_Cancel");
  return PMPI_Cancel(request);
}
