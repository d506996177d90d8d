// Control records between the processes of one node, through shared memory.
#ifndef SLUICE_SRC_TRANSPORT_DIRECT_NODE_RECORDS_H_
#define SLUICE_SRC_TRANSPORT_DIRECT_NODE_RECORDS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/direct/record_ring.h"
#include "transport/direct/shared_segment.h"
#include "transport/near_records.h"

namespace sluice {

// Each rank shares a segment, its inbox, which has a ring for each rank of the node, and a bell for
// each ring. A sender writes into its ring, and then rings its bell. So a rank to which nothing has
// come looks at one word for 64 senders. A record that finds no room in the ring waits in memory of
// its sender.
//
// Numbers that another process has written are looked at before they are used.
class NodeRecords final : public NearRecords {
 public:
  // Ranks with equal numbers in `node_of_rank` share memory. ResourceExhausted: no memory.
  static absl::StatusOr<std::unique_ptr<NodeRecords>> Make(int rank,
                                                           absl::Span<const int> node_of_rank);

  // How the others find this rank's inbox, as long as this object lives.
  const SharedSegmentName& name() const { return inbox_->name(); }
  // The names of all ranks' inboxes, once. A rank whose inbox cannot be mapped is not reached.
  void Attach(absl::Span<const SharedSegmentName> names);

  bool Reaches(int rank) const override { return At(rank).out != nullptr; }
  absl::Status Send(int dst, int kind, absl::Span<const std::byte> record) override;
  bool Poll(int kind, int* src, std::vector<std::byte>* record) override;
  bool HasArrived(int kind) override;
  int Untaken(int dst, int kind) override;
  uint64_t Mark(int dst) const override { return At(dst).queued; }
  bool IsSent(int dst, uint64_t mark) override;
  absl::Status Check() const override { return broken_; }

 private:
  // How a record begins in a ring.
  struct Head {
    uint32_t bytes = 0;
    uint32_t kind = 0;
  };
  static_assert(sizeof(Head) == RecordRing::kUnit);

  // The records of one rank and kind.
  struct Count {
    uint32_t sent = 0;
    std::deque<uint32_t> untaken;  // bytes of records that were sent and not taken
    uint64_t untaken_bytes = 0;
    size_t arrived = 0;  // records that have come and were not taken
    uint64_t arrived_bytes = 0;
  };
  struct Peer {
    // To it.
    std::shared_ptr<SharedSegment> segment;
    RecordRing* out = nullptr;  // null: it is not reached
    std::atomic<uint64_t>* bells = nullptr;
    uint64_t written = 0;            // into the ring
    uint64_t queued = 0;             // to be written into it, ever
    std::vector<std::byte> backlog;  // from `done` on: not written yet
    size_t done = 0;
    std::array<Count, kKinds> counts;
    // From it.
    uint64_t read = 0;
    bool in_record = false;
    Head head;                      // of the record that is coming
    std::vector<std::byte> record;  // what has come of it, with what fills up its last unit
    bool is_broken = false;
  };
  struct Record {
    int src = -1;
    std::vector<std::byte> bytes;
  };

  NodeRecords(int rank, absl::Span<const int> node_of_rank);

  size_t PlaceOf(int rank) const;
  size_t bell_words() const { return (ranks_.size() + 63) / 64; }
  size_t InboxBytes() const;
  static std::atomic<uint64_t>* BellsIn(const SharedSegment& inbox);
  RecordRing* RingIn(const SharedSegment& inbox, size_t place) const;

  Peer& At(int rank) { return peers_[static_cast<size_t>(rank)]; }
  const Peer& At(int rank) const { return peers_[static_cast<size_t>(rank)]; }

  void Write(int dst);
  void CountTaken(int dst, int kind);
  void Receive();
  void Receive(size_t place);
  // False: the rest has not come.
  bool ReceiveRecord(int src, RecordRing* ring, uint64_t available);
  void Break(int rank, const char* what);

  const int rank_;
  std::vector<int> ranks_;  // of this node, ascending
  size_t own_place_ = 0;
  std::shared_ptr<SharedSegment> inbox_;
  std::vector<Peer> peers_;    // by rank
  std::vector<int> backlogs_;  // ranks that have one
  std::array<std::deque<Record>, kKinds> arrived_;
  absl::Status broken_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DIRECT_NODE_RECORDS_H_
