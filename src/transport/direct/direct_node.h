// The processes of one node that copy to one another, as each of them sees the others.
#ifndef SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_NODE_H_
#define SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_NODE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/direct/direct_channel.h"
#include "transport/direct/direct_limit.h"
#include "transport/direct/direct_place.h"
#include "transport/direct/direct_slots.h"
#include "transport/direct/shared_segment.h"
#include "transport/process_name.h"

namespace sluice {

// The other end of copies.
class DirectPeer {
 public:
  DirectPeer(int rank, const ProcessName& name) : rank_(rank), process_(name) {}

  int rank() const { return rank_; }
  pid_t pid() const { return process_.pid(); }

  DirectQueue& in() { return *in_; }
  DirectQueue& out() { return *out_; }
  DirectClaims& claims(uint32_t number) { return claims_[number]; }
  DirectSlots& slots() { return *slots_; }

  // Whether the place lies in memory that the peer has shared; true of all that it has not.
  bool HasPlace(const DirectPlace& place) const;
  // Whether this process can read what lies at a place of the peer's: it is mapped, or the kernel
  // copies from there.
  bool CanRead(const DirectPlace& place) const { return place.segment > 0 || reads_; }
  bool reads() const { return reads_; }
  bool writes_here() const { return writes_here_; }
  // Whether the peer can write to a place of this process's own, in the same ways.
  bool CanWriteHere(const DirectPlace& own) const { return own.segment > 0 || writes_here_; }
  // The address at which this process sees a place of the peer's; null: only the kernel can copy
  // there.
  std::byte* Reach(const DirectPlace& place) const;
  // True once the process has ended. Asks the kernel.
  bool HasEnded() const { return process_.HasEnded(); }
  // The same, as of a millisecond ago at most: to be asked before the kernel is told to copy. The
  // number of a process goes to another one after its end, but not so soon.
  bool HasEndedLately() const;

 private:
  friend class DirectNode;

  const int rank_;
  ProcessHandle process_;
  bool reads_ = false;             // the kernel lets this process read all of the peer's memory
  bool writes_here_ = false;       // and the peer write all of this process's
  mutable int64_t looked_ns_ = 0;  // by HasEndedLately: when the process was there
  std::shared_ptr<SharedSegment> control_;
  std::vector<std::shared_ptr<SharedSegment>> segments_;
  DirectQueue* in_ = nullptr;
  DirectQueue* out_ = nullptr;
  DirectClaims* claims_ = nullptr;
  DirectSlots* slots_ = nullptr;
};

// How ranks tell each other something on the way. All ranks call it in the same order, each with
// how it fares and a record. Records have one length on all ranks. Returns the records of all
// ranks, if all are well. Otherwise it returns an error on each rank, the same wherever the ranks
// still hear one another.
using DirectExchange = absl::FunctionRef<absl::StatusOr<std::vector<std::string>>(
    const absl::Status& status, const std::string& record)>;
inline constexpr size_t kMaxDirectRecordBytes = 256;

// Whether the kernel is to copy what is not mapped. kNever is for tests: as if it never allowed it.
enum class KernelCopies { kWhereAllowed, kNever };

// Thread: one.
class DirectNode {
 public:
  // Copies of a rank that others help with, at once.
  static constexpr uint32_t kClaims = 64;

  // Collective. Ranks with equal numbers in `node_of_rank` share memory. FailedPrecondition where
  // a rank cannot map what another one shares; or what `exchange` returns.
  static absl::StatusOr<DirectNode> Connect(int rank, absl::Span<const int> node_of_rank,
                                            DirectExchange exchange,
                                            KernelCopies copies = KernelCopies::kWhereAllowed);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(peer_of_rank_.size()); }
  absl::Span<DirectPeer> peers() { return absl::MakeSpan(peers_); }
  // The index of a rank of this node among the peers; -1 for any other rank.
  int PeerOf(int rank) const { return peer_of_rank_[static_cast<size_t>(rank)]; }

  // The first one of the job, equal on all ranks. With a limit, some ranks reach no memory of some
  // others but what these share.
  const DirectLimit& limit() const { return limit_; }
  bool is_limited() const { return limit_.rank >= 0; }
  // Whether the kernel lets this rank read all memory of all peers.
  bool ReadsAll() const;

  // Own claims and slots.
  DirectClaims& claims(uint32_t number) { return claims_[number]; }
  DirectSlots& slots() { return *slots_; }

  // Collective, as Connect. Makes `bytes` of zeros that this rank's peers have mapped; null for 0
  // bytes. Ranks may ask for different lengths. The memory may outlive this object. When it is
  // gone, the peers unmap it with the next call.
  absl::StatusOr<std::shared_ptr<std::byte>> Share(size_t bytes, DirectExchange exchange);
  // Tells a peer where to find `data`, with which `rows` begin.
  DirectPlace PlaceOf(const std::byte* data, const DirectRows& rows) const;

 private:
  DirectNode(int rank, int size) : rank_(rank), peer_of_rank_(static_cast<size_t>(size), -1) {}

  // The rank at `place` among the node's `ranks`, of which this one is at `own_place`.
  absl::Status AddPeer(int rank, const SharedSegmentName& name, const ProcessName& process,
                       size_t place, size_t own_place, size_t ranks);
  // Moves the word `probe` through the peer's memory in both ways, as copies are going to. Takes
  // down in `limit` what goes wrong, unless something is there.
  void CheckAccess(DirectPeer* peer, uint64_t probes, uint64_t probe, size_t own_place,
                   DirectLimit* limit) const;
  DirectLimit LimitOf(const DirectPeer& peer, int error) const;

  // A rank's words to the others in Share.
  struct ShareRecord;
  absl::Status CheckAvailable(absl::Span<const ShareRecord> records) const;
  // Forgets what nobody uses any more, as far as it fits into one record.
  void TakeUnused(ShareRecord* record);
  static void DropUnused(const ShareRecord& record, DirectPeer* peer);

  int rank_;
  DirectLimit limit_;
  std::vector<int> peer_of_rank_;
  std::vector<DirectPeer> peers_;
  std::shared_ptr<SharedSegment> control_;
  DirectClaims* claims_ = nullptr;
  DirectSlots* slots_ = nullptr;
  // Memory that this rank shares: number n at n - 1.
  struct Shared {
    std::shared_ptr<SharedSegment> segment;  // null: unused
    std::weak_ptr<std::byte> user;
  };
  std::vector<Shared> shared_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_NODE_H_
