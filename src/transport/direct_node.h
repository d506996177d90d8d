// The processes of one node that copy to one another, as each of them sees the others.
#ifndef SLUICE_SRC_TRANSPORT_DIRECT_NODE_H_
#define SLUICE_SRC_TRANSPORT_DIRECT_NODE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "sluice/fabric.h"
#include "transport/direct_channel.h"
#include "transport/direct_place.h"
#include "transport/shared_segment.h"

namespace sluice {

// The other end of copies.
class DirectPeer {
 public:
  DirectPeer(int rank, pid_t pid, int exit_fd) : rank_(rank), pid_(pid), exit_fd_(exit_fd) {}
  DirectPeer(DirectPeer&& other) noexcept;
  DirectPeer& operator=(DirectPeer&&) = delete;
  ~DirectPeer();

  int rank() const { return rank_; }
  pid_t pid() const { return pid_; }

  DirectQueue& in() { return *in_; }
  DirectQueue& out() { return *out_; }
  DirectClaims& claims(uint32_t number) { return claims_[number]; }

  // Where this process sees a place of the peer's; null: only the kernel can copy there.
  std::byte* Reach(const DirectPlace& place) const;
  // True once the process has ended. Asks the kernel.
  bool HasEnded() const;

 private:
  friend class DirectNode;

  const int rank_;
  const pid_t pid_;
  int exit_fd_;  // a pidfd; -1: this process, or not to be had
  std::shared_ptr<SharedSegment> control_;
  std::vector<std::shared_ptr<SharedSegment>> segments_;
  DirectQueue* in_ = nullptr;
  DirectQueue* out_ = nullptr;
  DirectClaims* claims_ = nullptr;
};

// Thread: one.
class DirectNode {
 public:
  // Copies of a rank that others help with, at once.
  static constexpr uint32_t kClaims = 64;

  // Collective over the fabric, with the same error on all ranks: FailedPrecondition where the
  // kernel keeps a rank from another one's memory. Ranks that `fabric` says share a node do so.
  static absl::StatusOr<DirectNode> Connect(Fabric* fabric, absl::Duration timeout);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(peer_of_rank_.size()); }
  absl::Span<DirectPeer> peers() { return absl::MakeSpan(peers_); }
  // The index of a rank of this node among the peers; -1 for any other rank.
  int PeerOf(int rank) const { return peer_of_rank_[static_cast<size_t>(rank)]; }

  // Own claims.
  DirectClaims& claims(uint32_t number) { return claims_[number]; }

  // Collective over the fabric, as Connect: memory of `bytes` that this rank's peers have mapped,
  // or null for 0 bytes, where the others need not ask for as much. It and the peers' mappings stay
  // as long as this object.
  absl::StatusOr<std::shared_ptr<SharedSegment>> Share(Fabric* fabric, size_t bytes,
                                                       absl::Duration timeout);
  // What a peer needs to know to find `data`, with which `rows` begin.
  DirectPlace PlaceOf(const std::byte* data, const DirectRows& rows) const;

 private:
  DirectNode(int rank, int size) : rank_(rank), peer_of_rank_(static_cast<size_t>(size), -1) {}

  // The rank at `place` among the node's `ranks`, of which this one is at `own_place`.
  absl::Status AddPeer(int rank, const SharedSegmentName& name, size_t place, size_t own_place,
                       size_t ranks);
  // Moves a word through the peer's memory in both ways, as copies are going to.
  static absl::Status CheckAccess(const DirectPeer& peer, uint64_t probes, size_t own_place);

  int rank_;
  std::vector<int> peer_of_rank_;
  std::vector<DirectPeer> peers_;
  std::shared_ptr<SharedSegment> control_;
  DirectClaims* claims_ = nullptr;
  std::vector<std::shared_ptr<SharedSegment>> segments_;  // number n at n - 1
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DIRECT_NODE_H_
