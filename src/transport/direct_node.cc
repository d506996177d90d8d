// How the ranks of a node find one another's memory, and make sure that they may copy to it.
#include "transport/direct_node.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/agreement.h"
#include "transport/process_memory.h"

namespace sluice {
namespace {

static_assert(std::atomic<uint64_t>::is_always_lock_free);

constexpr uint64_t kProbe = 0x5c1a17ce0ddba11;

// What each rank says of itself.
struct Hello {
  SharedSegmentName control;
  uint64_t probes = 0;  // address of words: kProbe, then one for each rank of the node to write
};

std::vector<int> RanksOfNode(const Fabric& fabric) {
  const absl::Span<const int> nodes = fabric.node_of_rank();
  std::vector<int> ranks;
  for (int rank = 0; rank < fabric.size(); ++rank) {
    if (nodes[static_cast<size_t>(rank)] == nodes[static_cast<size_t>(fabric.rank())]) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

DirectQueue* QueuesIn(const SharedSegment& control) {
  return reinterpret_cast<DirectQueue*>(control.data());
}
DirectClaims* ClaimsIn(const SharedSegment& control, size_t ranks) {
  return reinterpret_cast<DirectClaims*>(control.data() + ranks * sizeof(DirectQueue));
}

int OpenExitDescriptor(pid_t pid) {
  if (pid == getpid()) return -1;
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

absl::Status CannotReach(int rank, pid_t pid, int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("the kernel does not let it copy to and from rank ", rank, ", process ", pid,
                   ": ", std::strerror(error)));
}

}  // namespace

DirectPeer::DirectPeer(DirectPeer&& other) noexcept
    : rank_(other.rank_),
      pid_(other.pid_),
      exit_fd_(std::exchange(other.exit_fd_, -1)),
      control_(std::move(other.control_)),
      segments_(std::move(other.segments_)),
      in_(other.in_),
      out_(other.out_),
      claims_(other.claims_) {}

DirectPeer::~DirectPeer() {
  if (exit_fd_ >= 0) close(exit_fd_);
}

std::byte* DirectPeer::Reach(const DirectPlace& place) const {
  if (place.segment > 0) return segments_[place.segment - 1]->data() + place.address;
  return pid_ == getpid() ? reinterpret_cast<std::byte*>(place.address) : nullptr;
}

bool DirectPeer::HasEnded() const {
  if (exit_fd_ < 0) return false;
  pollfd ended = {exit_fd_, POLLIN, 0};
  return poll(&ended, 1, 0) > 0;
}

absl::StatusOr<DirectNode> DirectNode::Connect(Fabric* fabric, absl::Duration timeout) {
  DirectNode node(fabric->rank(), fabric->size());
  const std::vector<int> ranks = RanksOfNode(*fabric);
  const size_t bytes = ranks.size() * sizeof(DirectQueue) + kClaims * sizeof(DirectClaims);
  absl::StatusOr<std::shared_ptr<SharedSegment>> control = SharedSegment::Create(bytes);
  // Peers write into it until the last gathering; if that fails, nobody knows when.
  auto probes = std::make_unique<std::vector<uint64_t>>(1 + ranks.size());
  (*probes)[0] = kProbe;
  Hello own;
  if (control.ok()) own = {(*control)->name(), reinterpret_cast<uint64_t>(probes->data())};
  const auto hellos = ExchangeIfAllOk(fabric, own, control.status(), timeout);
  if (!hellos.ok()) return hellos.status();

  node.control_ = *std::move(control);
  node.claims_ = ClaimsIn(*node.control_, ranks.size());
  absl::Status status;
  const size_t own_place =
      static_cast<size_t>(std::find(ranks.begin(), ranks.end(), fabric->rank()) - ranks.begin());
  for (size_t i = 0; i < ranks.size() && status.ok(); ++i) {
    if (i == own_place) continue;
    const Hello& hello = (*hellos)[static_cast<size_t>(ranks[i])];
    status = node.AddPeer(ranks[i], hello.control, i, own_place, ranks.size());
    if (status.ok()) status = node.CheckAccess(node.peers_.back(), hello.probes, own_place);
  }
  if (status = GatherIfAllOk(fabric, {}, status, timeout).status(); !status.ok()) {
    static_cast<void>(probes.release());
    return status;
  }
  for (size_t i = 0; i < ranks.size() && status.ok(); ++i) {
    if (i != own_place && (*probes)[1 + i] != kProbe) status = CannotReach(ranks[i], 0, EIO);
  }
  if (status = GatherIfAllOk(fabric, {}, status, timeout).status(); !status.ok()) return status;
  node.control_->CloseDescriptor();
  return node;
}

absl::Status DirectNode::AddPeer(int rank, const SharedSegmentName& name, size_t place,
                                 size_t own_place, size_t ranks) {
  absl::StatusOr<std::shared_ptr<SharedSegment>> control = SharedSegment::Attach(name);
  if (!control.ok()) return control.status();
  DirectPeer peer(rank, name.pid, OpenExitDescriptor(name.pid));
  peer.control_ = *std::move(control);
  peer.in_ = QueuesIn(*control_) + place;
  peer.out_ = QueuesIn(*peer.control_) + own_place;
  peer.claims_ = ClaimsIn(*peer.control_, ranks);
  peer_of_rank_[static_cast<size_t>(rank)] = static_cast<int>(peers_.size());
  peers_.push_back(std::move(peer));
  return absl::OkStatus();
}

absl::Status DirectNode::CheckAccess(const DirectPeer& peer, uint64_t probes, size_t own_place) {
  const DirectRows word = {sizeof(uint64_t), 0, 0};
  uint64_t probe = 0;
  int error = ReadProcessMemory(peer.pid(), probes, word, reinterpret_cast<std::byte*>(&probe),
                                word, 0, sizeof(probe));
  if (error == 0 && probe != kProbe) error = EIO;
  if (error == 0) {
    error = WriteProcessMemory(peer.pid(), probes + (1 + own_place) * sizeof(uint64_t), word,
                               reinterpret_cast<const std::byte*>(&probe), word, 0, sizeof(probe));
  }
  return error == 0 ? absl::OkStatus() : CannotReach(peer.rank(), peer.pid(), error);
}

absl::StatusOr<std::shared_ptr<SharedSegment>> DirectNode::Share(Fabric* fabric, size_t bytes,
                                                                 absl::Duration timeout) {
  std::shared_ptr<SharedSegment> own;
  absl::Status status;
  if (bytes > 0) {
    absl::StatusOr<std::shared_ptr<SharedSegment>> made = SharedSegment::Create(bytes);
    status = made.status();
    if (made.ok()) own = *std::move(made);
  }
  const auto names =
      ExchangeIfAllOk(fabric, own == nullptr ? SharedSegmentName() : own->name(), status, timeout);
  if (!names.ok()) return names.status();
  std::vector<std::shared_ptr<SharedSegment>> theirs;
  for (const DirectPeer& peer : peers_) {
    const SharedSegmentName& name = (*names)[static_cast<size_t>(peer.rank())];
    theirs.emplace_back();
    if (name.bytes == 0) continue;
    absl::StatusOr<std::shared_ptr<SharedSegment>> attached = SharedSegment::Attach(name);
    status.Update(attached.status());
    if (attached.ok()) theirs.back() = *std::move(attached);
  }
  if (status = GatherIfAllOk(fabric, {}, status, timeout).status(); !status.ok()) return status;
  for (size_t i = 0; i < peers_.size(); ++i) peers_[i].segments_.push_back(std::move(theirs[i]));
  segments_.push_back(own);
  if (own != nullptr) own->CloseDescriptor();
  return own;
}

DirectPlace DirectNode::PlaceOf(const std::byte* data, const DirectRows& rows) const {
  const auto address = reinterpret_cast<uint64_t>(data);
  for (size_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i] == nullptr) continue;
    const auto first = reinterpret_cast<uint64_t>(segments_[i]->data());
    if (address >= first && address < first + segments_[i]->bytes()) {
      return {address - first, static_cast<uint32_t>(i + 1), rows};
    }
  }
  return {address, 0, rows};
}

}  // namespace sluice
