// The ranks of a job and how they first find each other.
//
// A Session is made from a Fabric. `sluice/mpi.h` makes one from an MPI communicator. A fabric
// carries small control records only; payload crosses through the Transport that it opens.
#ifndef SLUICE_FABRIC_H_
#define SLUICE_FABRIC_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sluice {

class Transport;  // src/transport/transport.h

// An error that another rank has raised.
struct Alarm {
  int src = -1;  // the rank that raised it
  absl::StatusCode code = absl::StatusCode::kUnknown;
  std::string message;  // cut to Fabric::kMaxAlarmBytes
};

// One rank's end of the fabric. Thread: the one that uses the session. Nothing here blocks.
class Fabric {
 public:
  static constexpr size_t kMaxAlarmBytes = 1000;
  static constexpr size_t kMaxRecordBytes = 2000;

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

  // Tells every other rank that this one has failed, of which `status` (not OK) is the cause. Best
  // effort; the first call counts.
  virtual void RaiseAlarm(const absl::Status& status) = 0;

  // The first alarm of another rank that has come here, if one has; the same one ever after.
  virtual std::optional<Alarm> PollAlarm() = 0;

  // The message transport between these ranks. Called once; FailedPrecondition after that. Either
  // of the two may be destroyed first.
  virtual absl::StatusOr<std::unique_ptr<Transport>> OpenTransport() = 0;

 protected:
  Fabric(int rank, std::vector<int> node_of_rank)
      : rank_(rank), node_of_rank_(std::move(node_of_rank)) {}

 private:
  int rank_;
  std::vector<int> node_of_rank_;
};

}  // namespace sluice

#endif  // SLUICE_FABRIC_H_
