// How the ranks of a node find one another's memory, and make sure that they may copy to it.
#include "transport/direct_node.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor/check.h"
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

std::vector<int> RanksOfNode(int own, absl::Span<const int> nodes) {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    if (nodes[rank] == nodes[static_cast<size_t>(own)]) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

// Records as values.
template <class T>
absl::StatusOr<std::vector<T>> Exchange(DirectExchange exchange, const absl::Status& status,
                                        const T& own) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kMaxDirectRecordBytes);
  const std::string record(reinterpret_cast<const char*>(&own), sizeof(T));
  const absl::StatusOr<std::vector<std::string>> records = exchange(status, record);
  if (!records.ok()) return records.status();
  std::vector<T> values(records->size());
  for (size_t i = 0; i < values.size(); ++i) {
    SLUICE_CHECK((*records)[i].size() == sizeof(T), "a record of another length");
    std::memcpy(&values[i], (*records)[i].data(), sizeof(T));
  }
  return values;
}

// Others may still write there.
void KeepForEver(std::unique_ptr<std::vector<uint64_t>> words) {
  static std::mutex mutex;
  static auto* const kKept = new std::vector<std::unique_ptr<std::vector<uint64_t>>>;
  const std::lock_guard<std::mutex> lock(mutex);
  kKept->push_back(std::move(words));
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
  const absl::Status status = absl::ErrnoToStatus(
      error,
      absl::StrCat("the kernel does not let it copy to and from rank ", rank, ", process ", pid));
  return absl::FailedPreconditionError(status.message());
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
  if (pid_ != getpid()) return nullptr;
  return reinterpret_cast<std::byte*>(place.address);  // NOLINT(performance-no-int-to-ptr)
}

bool DirectPeer::HasEnded() const {
  if (exit_fd_ < 0) return false;
  pollfd ended = {exit_fd_, POLLIN, 0};
  return poll(&ended, 1, 0) > 0;
}

absl::StatusOr<DirectNode> DirectNode::Connect(int rank, absl::Span<const int> node_of_rank,
                                               DirectExchange exchange) {
  DirectNode node(rank, static_cast<int>(node_of_rank.size()));
  const std::vector<int> ranks = RanksOfNode(rank, node_of_rank);
  const size_t bytes = ranks.size() * sizeof(DirectQueue) + kClaims * sizeof(DirectClaims);
  absl::StatusOr<std::shared_ptr<SharedSegment>> control = SharedSegment::Create(bytes);
  // Peers write into it until the last gathering; if that fails, nobody knows when.
  auto probes = std::make_unique<std::vector<uint64_t>>(1 + ranks.size());
  (*probes)[0] = kProbe;
  Hello own;
  if (control.ok()) own = {(*control)->name(), reinterpret_cast<uint64_t>(probes->data())};
  const auto hellos = Exchange(exchange, control.status(), own);
  if (!hellos.ok()) return hellos.status();

  node.control_ = *std::move(control);
  node.claims_ = ClaimsIn(*node.control_, ranks.size());
  absl::Status status;
  const size_t own_place =
      static_cast<size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  for (size_t i = 0; i < ranks.size() && status.ok(); ++i) {
    if (i == own_place) continue;
    const Hello& hello = (*hellos)[static_cast<size_t>(ranks[i])];
    status = node.AddPeer(ranks[i], hello.control, i, own_place, ranks.size());
    if (status.ok()) status = node.CheckAccess(node.peers_.back(), hello.probes, own_place);
  }
  if (status = exchange(status, "").status(); !status.ok()) {
    KeepForEver(std::move(probes));
    return status;
  }
  for (size_t i = 0; i < ranks.size() && status.ok(); ++i) {
    if (i != own_place && (*probes)[1 + i] != kProbe) status = CannotReach(ranks[i], 0, EIO);
  }
  if (status = exchange(status, "").status(); !status.ok()) return status;
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

struct DirectNode::ShareRecord {
  static constexpr size_t kUnusedMax = 32;

  SharedSegmentName name;
  uint32_t number = 0;  // of the new segment; 0: none
  std::array<uint32_t, kUnusedMax> unused = {};
};

absl::StatusOr<std::shared_ptr<std::byte>> DirectNode::Share(size_t bytes,
                                                             DirectExchange exchange) {
  ShareRecord own;
  TakeUnused(&own);
  std::shared_ptr<SharedSegment> segment;
  absl::Status status;
  if (bytes > 0) {
    absl::StatusOr<std::shared_ptr<SharedSegment>> made = SharedSegment::Create(bytes);
    status = made.status();
    if (made.ok()) {
      segment = *std::move(made);
      own.name = segment->name();
      const auto free = std::find_if(shared_.begin(), shared_.end(),
                                     [](const Shared& each) { return each.segment == nullptr; });
      own.number = static_cast<uint32_t>(free - shared_.begin()) + 1;
    }
  }
  const auto records = Exchange(exchange, status, own);
  if (!records.ok()) return records.status();
  for (DirectPeer& peer : peers_) {
    const ShareRecord& record = (*records)[static_cast<size_t>(peer.rank())];
    DropUnused(record, &peer);
    if (record.number == 0) continue;
    absl::StatusOr<std::shared_ptr<SharedSegment>> attached = SharedSegment::Attach(record.name);
    status.Update(attached.status());
    if (peer.segments_.size() < record.number) peer.segments_.resize(record.number);
    if (attached.ok()) peer.segments_[record.number - 1] = *std::move(attached);
  }
  if (status = exchange(status, "").status(); !status.ok()) return status;
  if (segment == nullptr) return nullptr;
  segment->CloseDescriptor();
  std::shared_ptr<std::byte> user(segment->data(), [segment](std::byte*) {});
  if (shared_.size() < own.number) shared_.resize(own.number);
  shared_[own.number - 1] = {segment, user};
  return user;
}

void DirectNode::TakeUnused(ShareRecord* record) {
  size_t count = 0;
  for (size_t i = 0; i < shared_.size() && count < ShareRecord::kUnusedMax; ++i) {
    if (shared_[i].segment == nullptr || !shared_[i].user.expired()) continue;
    shared_[i].segment = nullptr;
    record->unused[count++] = static_cast<uint32_t>(i + 1);
  }
}

void DirectNode::DropUnused(const ShareRecord& record, DirectPeer* peer) {
  for (const uint32_t number : record.unused) {
    if (number > 0) peer->segments_[number - 1] = nullptr;
  }
}

DirectPlace DirectNode::PlaceOf(const std::byte* data, const DirectRows& rows) const {
  const auto address = reinterpret_cast<uint64_t>(data);
  for (size_t i = 0; i < shared_.size(); ++i) {
    const SharedSegment* const segment = shared_[i].segment.get();
    if (segment == nullptr) continue;
    const auto first = reinterpret_cast<uint64_t>(segment->data());
    if (address >= first && address < first + segment->bytes()) {
      return {address - first, static_cast<uint32_t>(i + 1), rows};
    }
  }
  return {address, 0, rows};
}

}  // namespace sluice
