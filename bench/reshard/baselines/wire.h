// Messages of the baselines: plain MPI on a communicator of their own, waited for by polling, so
// that a rank that has died or failed ends the wait.
#ifndef SLUICE_BENCH_RESHARD_BASELINES_WIRE_H_
#define SLUICE_BENCH_RESHARD_BASELINES_WIRE_H_

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "transport/deadline.h"

namespace sluice::bench {

class Wire {
 public:
  using Requests = std::vector<MPI_Request>;

  // Collective over MPI_COMM_WORLD, which is duplicated.
  static absl::StatusOr<std::unique_ptr<Wire>> Create(absl::Duration timeout);
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  MPI_Comm comm() const { return comm_; }

  // From now on until the next call, waiting ends `patience` after this call, or with an error of
  // `progress`, which is called now and then.
  void Arm(absl::Duration patience, std::function<absl::Status()> progress);

  // Start a message, in pieces if MPI cannot count its bytes, and add its requests to `requests`.
  absl::Status Send(const std::byte* data, int64_t bytes, int dst, int tag, Requests* requests);
  absl::Status Receive(std::byte* data, int64_t bytes, int src, int tag, Requests* requests);

  // Waits for all of `requests` and clears them. DeadlineExceeded, or the error of `progress`.
  absl::Status Wait(Requests* requests);

  // Has `done` name those of `requests` that have ended since they were last looked at, by their
  // places, which they keep. TestSome may find none; WaitSome waits for one, and there must be one.
  static absl::Status TestSome(Requests* requests, std::vector<int>* done);
  absl::Status WaitSome(Requests* requests, std::vector<int>* done);

  // Internal, with what the call says, if `code` is not MPI_SUCCESS.
  static absl::Status FromMpi(int code, const char* call);

 private:
  explicit Wire(MPI_Comm comm) : comm_(comm) {}
  absl::Status WhileIdle(int64_t polls);

  MPI_Comm comm_;
  Deadline deadline_{absl::InfiniteDuration()};
  std::function<absl::Status()> progress_;
};

// Communicators of a root and the ranks that it broadcasts to, each made once.
class RankSets {
 public:
  explicit RankSets(MPI_Comm comm) : comm_(comm) {}  // `comm` must outlive it
  ~RankSets();
  RankSets(const RankSets&) = delete;
  RankSets& operator=(const RankSets&) = delete;

  // Collective over `comm`, in the same order on all ranks. `root` is rank 0 of the result, which
  // is null on ranks that are neither root nor listed. Unimplemented past kMost different sets.
  static constexpr size_t kMost = 64;
  absl::StatusOr<MPI_Comm> Get(int root, absl::Span<const int> ranks);

 private:
  MPI_Comm comm_;
  std::map<std::pair<int, std::vector<int>>, MPI_Comm> made_;
};

// Of one call of MPI, which counts them as an int.
inline constexpr int64_t kMostBytes = int64_t{1} << 30;

// Tags of the baselines' messages.
inline constexpr int kPayloadTag = 1;
inline constexpr int kTurnTag = 2;

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_BASELINES_WIRE_H_
