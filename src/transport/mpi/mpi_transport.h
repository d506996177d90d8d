// Messages between ranks by non-blocking MPI point-to-point. It only moves bytes.
#ifndef SLUICE_SRC_TRANSPORT_MPI_MPI_TRANSPORT_H_
#define SLUICE_SRC_TRANSPORT_MPI_MPI_TRANSPORT_H_

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "sluice/transport.h"
#include "tensor/error_text.h"
#include "transport/deadline.h"
#include "transport/mpi/mpi_communicator.h"
#include "transport/mpi/mpi_farewell.h"
#include "transport/rank_processes.h"

namespace sluice {

// Active requests stand in a dense array, so that a poll scans no more than what is active.
//
// MPI may send the first bytes of a message before its receive has been started: 64 KiB over Open
// MPI's TCP. They lie in the receiver's memory until then. So at most
// kUnmetBytesMax bytes may be on their way to a rank. Sends beyond this limit wait here, but for
// the first one of each channel: the receiver may be waiting for just that one. It sends a knock: a
// message without bytes, in its place. Once the knock has met the receive, both ends go on with the
// body.
// Bodies of one length have a tag of their own, and meet in the order in which they were started.
class MpiTransport final : public Transport {
 public:
  // `processes`, where it is not null, says which ranks have ended.
  explicit MpiTransport(std::shared_ptr<MpiCommunicator> comm,
                        std::shared_ptr<RankProcesses> processes = nullptr)
      : Transport({.name = "mpi", .takes_device_memory = MpiTakesDeviceMemory()}),
        comm_(std::move(comm)),
        processes_(std::move(processes)),
        unmet_bytes_(static_cast<size_t>(comm_->size())),
        unmet_bodies_(static_cast<size_t>(comm_->size())),
        unmet_bytes_max_(UnmetBytesMax(comm_->size())) {}
  ~MpiTransport() override;

  absl::Status Reserve(int capacity) override;
  absl::Status UseStaging(absl::Span<std::byte> /*staging*/) override { return absl::OkStatus(); }
  absl::Status Start(absl::Span<const TransportOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) override;
  void Withdraw() override;
  bool Part() override;
  int outstanding() const override { return active_ + ended_; }

 private:
  // Half of the 8 MiB that a rank may hold beside its budgets, dealt out to those that may send.
  static constexpr int64_t kUnmetBytesMax = int64_t{4} << 20;
  // One message of each may always be there.
  static int64_t UnmetBytesMax(int ranks) {
    return std::clamp<int64_t>(kUnmetBytesMax / std::max(ranks - 1, 1), 64 << 10,
                               kUnmetBytesMax / 8);
  }

  // The state of an active operation.
  enum class Phase : uint8_t {
    kWaiting,   // of a send: there is no room for its message, and nothing is under way
    kWhole,     // its message is under way; a receive may meet a knock as well
    kKnock,     // of a send: its knock is under way
    kAnswered,  // the knock has met its receive, and nothing is under way
    kBody,      // what the knock has announced is under way
    kCutOff,    // its peer has ended, says MPI or the system, and nothing is under way
    kEnded,     // it leaves the array with the next CloseGaps
  };
  static bool IsUnderWay(Phase phase) {
    return phase == Phase::kWhole || phase == Phase::kKnock || phase == Phase::kBody;
  }
  // Operations among which messages keep their order.
  using Queue = std::tuple<TransportOp::Kind, int, int>;  // kind, peer, tag with its length
  Queue QueueOf(const TransportOp& op) const {
    return {op.kind, op.peer, comm_->BodyTag(op.tag, op.bytes)};
  }

  // The sends of a channel that have not ended.
  struct Channel {
    int under_way = 0;
    int waiting = 0;
  };
  Channel ChannelOf(const TransportOp& op) const;

  void StartOne(const TransportOp& op);
  // Has the operation's message begin, or its knock where there is no room. False: it has ended.
  bool EnterFirst(size_t slot);
  // Starts sends that have waited, in the order of each channel, as far as there is room.
  void StartWaiting();
  // Starts the operation's message, or knock, or body.
  absl::Status Post(size_t slot);
  // A request has ended with this outcome.
  void Completed(size_t slot, const MPI_Status& outcome, bool error_in_status);
  bool IsAnswered(size_t slot, const MPI_Status& outcome, bool error_in_status) const;
  // Goes on with the bodies of those whose turn it is.
  void PostBodies();
  // Enters the operation's next phase, with what is counted of each.
  void Enter(size_t slot, Phase phase);
  void CountInChannel(const TransportOp& op, Phase from, Phase to);
  // The counter of unmet bytes for a message of this kind in this phase; null: not counted.
  int64_t* UnmetBytesOf(const TransportOp& op, Phase phase);
  // True if a message may enter this phase now. The first message may always go.
  bool HasRoom(const TransportOp& op, Phase phase);
  void EndOne(size_t slot, absl::Status status);
  int TagOf(size_t slot) const;
  // The most bytes that a message may take up before its receive has been started.
  static int64_t UnmetBytes(const TransportOp& op);
  // The type of an operation's rows, made on first use.
  absl::StatusOr<MPI_Datatype> TypeOf(const TransportOp& op);
  void FreeTypes();
  void WithdrawOne(size_t slot);
  // Ends operations with ranks that have ended: nobody reads or writes for them any more.
  void GiveUpEnded();
  // The operation waits for EndCutOff: its peer has ended.
  void CutOff(size_t slot);
  // Ends what MPI has cut off, once it is known which ranks have ended: MPI speaks of the peer,
  // which may have ended because another rank did, and the first one is to be named.
  void EndCutOff();
  absl::Status CutOffError(const TransportOp& op, const ErrorText& who) const;
  // Moves what MPI has completed from the active requests to the ended events.
  absl::Status Test();
  absl::Status Outcome(const TransportOp& op, const MPI_Status& outcome,
                       bool error_in_status) const;
  void End(uint64_t cookie, absl::Status status);
  void CloseGaps();

  // Rows by number, size and distance.
  using RowsKey = std::array<size_t, 3>;

  const std::shared_ptr<MpiCommunicator> comm_;
  const std::shared_ptr<RankProcesses> processes_;
  std::map<RowsKey, MPI_Datatype> types_;
  int capacity_ = 0;
  int active_ = 0;                     // requests_[0 .. active_) and ops_[0 .. active_)
  std::vector<MPI_Request> requests_;  // this and the following: capacity_ entries
  std::vector<Phase> phases_;
  std::vector<TransportOp> ops_;
  std::vector<MPI_Status> statuses_;
  std::vector<int> indices_;
  absl::flat_hash_map<std::pair<int, int>, Channel>
      channels_;                          // by peer and tag, none that is empty
  absl::flat_hash_set<Queue> undecided_;  // of PostBodies, and of StartWaiting
  std::vector<TransportEvent> events_;    // a ring: ended_ events from first_ended_ on
  std::vector<int64_t> unmet_bytes_;      // by rank: of whole sends under way
  // Bytes of bodies under way: apart, so that none waits for a whole send. The receiver starts the
  // body's receive whenever it polls next, so each of these goes on.
  std::vector<int64_t> unmet_bodies_;
  int64_t unmet_bytes_max_ = 0;  // of one rank, and either kind
  int waiting_ = 0;              // operations in phase kWaiting
  int answered_ = 0;             // operations in phase kAnswered
  int cut_off_ = 0;              // operations in phase kCutOff
  std::optional<Deadline> cut_off_until_;
  bool parting_ = false;  // nothing is begun any more, bodies included
  int first_ended_ = 0;
  int ended_ = 0;
  std::unique_ptr<MpiFarewell> farewell_;  // null: this rank has not parted
  int polls_since_parting_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_MPI_MPI_TRANSPORT_H_
