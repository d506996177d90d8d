// The ranks of a job and how they first find each other.
//
// A Session is made from a Fabric: of a World (sluice/world.h), of an MPI communicator
// (sluice/mpi.h), or of threads of one process (MakeLocalFabric). A fabric carries small control
// records only; payload crosses through the Transport that it opens.
#ifndef SLUICE_FABRIC_H_
#define SLUICE_FABRIC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sluice {

class Transport;  // sluice/transport.h

// The wire that carries bytes to one rank, and why it was chosen.
struct WireReport {
  int rank = -1;
  int node = -1;  // the rank's, as in Fabric::node_of_rank
  // "direct", "ucx", "tcp", "mpi", "nccl", "cuda_ipc" or "loopback"; "messages" if nobody says.
  std::string wire;
  // The library below it with the version that has been loaded: "UCX 1.13.1". Empty: Sluice alone.
  std::string library;
  std::string why;  // for people: "all members have RDMA devices"
  // The wire that was to be taken before this one. `why` says what kept it from being taken.
  std::string fell_back_from;
};

// One rank's end of the fabric. Thread: one at a time, the one that uses the session; but see
// CheckOtherThread. Nothing blocks but OpenTransport.
class Fabric {
 public:
  static constexpr size_t kMaxRecordBytes = 2000;
  static constexpr size_t kMaxPostBytes = 1200;
  static constexpr int kMaxPostsPending = 4;

  virtual ~Fabric() = default;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(node_of_rank_.size()); }
  // The node of each rank, equal on all ranks; ranks with equal numbers share memory.
  absl::Span<const int> node_of_rank() const { return node_of_rank_; }

  // Starts sending `record` to every rank, and receiving theirs, all of the same length, at
  // most kMaxRecordBytes. Copies `record`. Collective, in the same order on all ranks;
  // FailedPrecondition while one is under way.
  virtual absl::Status StartAllGather(absl::Span<const std::byte> record) = 0;

  // True once every rank's record is in `all` (size() records in rank order) and has taken this
  // rank's. Until then false, and `missing`, if not null, lists the ranks that lack, ascending.
  // DataLoss names a rank whose record has another length.
  virtual absl::StatusOr<bool> PollAllGather(std::vector<std::byte>* all,
                                             std::vector<int>* missing) = 0;

  // Sends a short message, at most kMaxPostBytes, to one other rank, outside the order of
  // everything else. Copies `record`. Best effort: a rank that has ended or never polls does not
  // get it, and keeps nobody else from getting theirs. ResourceExhausted while kMaxPostsPending
  // posts to `dst` have not been taken by the network; an error means that this one was not sent.
  virtual absl::Status Post(int dst, absl::Span<const std::byte> record) = 0;

  // The next post that has come here: true, with its sender and what it says. Posts of one rank
  // come in the order in which it sent them.
  virtual bool PollPost(int* src, std::vector<std::byte>* record) = 0;

  // OK, or Unavailable, which names ranks whose processes have ended, from some time after their
  // end on: what they posted before may come first. Ranks of other nodes need not be noticed, nor
  // any by a fabric that cannot look. Costs little, so it may be called whenever something is
  // polled.
  virtual absl::Status CheckRanks() { return absl::OkStatus(); }
  // Whether `rank` has ended its fabric in good order, as far as this one knows.
  virtual bool HasLeft(int /*rank*/) const { return false; }

  // One more message transport between these ranks. Collective, in the same order on all ranks:
  // the n-th ones belong together, and none meets messages of another, whatever their tags. From
  // the second on it may wait until the other ranks have called: DeadlineExceeded if they do not
  // in time. Fabric and transports may be destroyed in any order.
  virtual absl::StatusOr<std::unique_ptr<Transport>> OpenTransport() = 0;

  // The wire that messages to `peer` cross by, without `rank` and `node`. The same as long as the
  // fabric lives.
  virtual WireReport DescribeWire(int /*peer*/) const {
    WireReport report;
    report.wire = "messages";
    report.why = "of the caller's own fabric";
    return report;
  }

  // OK if another thread than the fabric's maker may use the fabric and its transports, one thread
  // at a time. The maker goes on meanwhile with calls of its own to the library below.
  // FailedPrecondition says what that library lacks.
  virtual absl::Status CheckOtherThread() const = 0;

 protected:
  Fabric(int rank, std::vector<int> node_of_rank)
      : rank_(rank), node_of_rank_(std::move(node_of_rank)) {}

 private:
  int rank_;
  std::vector<int> node_of_rank_;
};

// An exchange of records of any length between all ranks of a fabric, by its all-gathers. The first
// one has each record's length and beginning, the others its pieces. Ranks whose records have at
// most 120 bytes need one all-gather. Every rank hears every byte, so this is not for payload.
// Nothing blocks. Thread: the fabric's.
class RecordExchange {
 public:
  static constexpr int64_t kDefaultBytesMax = (int64_t{1} << 31) - 1;

  // `fabric` must outlive this object. `bytes_max`: of all ranks' records together; equal on all
  // ranks.
  explicit RecordExchange(Fabric* fabric, int64_t bytes_max = kDefaultBytesMax)
      : fabric_(fabric), bytes_max_(bytes_max) {}

  // Begins; copies `record`. Collective, among the fabric's all-gathers. Errors are those of
  // Fabric::StartAllGather.
  absl::Status Start(absl::string_view record);

  // True once `records` has those of all ranks, in rank order, and all have taken this rank's.
  // Until then false, and `missing`, if not null, lists the ranks that lack, ascending. `records`
  // is filled call by call; null: this rank wants none. ResourceExhausted, on all ranks: the
  // records have too many bytes; names the rank with most. No memory is taken for these. Otherwise
  // errors are those of Fabric::PollAllGather and Fabric::CheckRanks.
  absl::StatusOr<bool> Poll(std::vector<std::string>* records, std::vector<int>* missing);

  // All-gathers that have ended since this object was made: more, as long as ranks go on.
  int64_t gathers() const { return gathers_; }
  // After an error: ranks may have seen different things, and an all-gather may be under way.
  bool out_of_step() const { return out_of_step_; }

 private:
  absl::Status TakeBeginnings(std::vector<std::string>* records);
  void TakePieces(std::vector<std::string>* records);
  absl::Status StartPiece();

  Fabric* const fabric_;
  const int64_t bytes_max_;
  std::string record_;
  std::string piece_;            // of it, under way
  std::vector<uint64_t> sizes_;  // of all ranks' records; empty: not known yet
  uint64_t longest_ = 0;
  uint64_t begin_ = 0;  // of the pieces under way
  std::vector<std::byte> all_;
  int64_t gathers_ = 0;
  bool out_of_step_ = false;
};

// All ranks of a job in one process, without MPI: for tests, examples and tools. One fabric for
// each rank, in rank order; all ranks are on one node. Each fabric, and each session made from one,
// is used by a thread of its own, because collective calls wait for the other ranks. A fabric may
// be destroyed before the others. InvalidArgument if `ranks` is not 1 .. 4096.
absl::StatusOr<std::vector<std::unique_ptr<Fabric>>> MakeLocalFabric(int ranks);

}  // namespace sluice

#endif  // SLUICE_FABRIC_H_
