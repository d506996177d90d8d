// How the ranks of a node find one another's memory, and make sure that they may copy to it.
#include "transport/direct/direct_node.h"

#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "transport/direct/available_memory.h"
#include "transport/direct/process_memory.h"

namespace sluice {
namespace {

static_assert(std::atomic<uint64_t>::is_always_lock_free);

// A rank's words on itself.
struct Hello {
  SharedSegmentName control;
  ProcessName process;
  uint64_t probes = 0;  // address of words: the probe, then one for each rank of the node to write
  uint64_t probe = 0;   // a word that no other process has at this address
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
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::string> records, exchange(status, record));
  std::vector<T> values(records.size());
  for (size_t i = 0; i < values.size(); ++i) {
    SLUICE_CHECK(records[i].size() == sizeof(T), "a record of another length");
    std::memcpy(&values[i], records[i].data(), sizeof(T));
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

// A rank's control memory: slots, a queue from each rank of the node, and claims.
DirectSlots* SlotsIn(const SharedSegment& control) {
  return reinterpret_cast<DirectSlots*>(control.data());
}
DirectQueue* QueuesIn(const SharedSegment& control) {
  return reinterpret_cast<DirectQueue*>(control.data() + sizeof(DirectSlots));
}
DirectClaims* ClaimsIn(const SharedSegment& control, size_t ranks) {
  return reinterpret_cast<DirectClaims*>(QueuesIn(control) + ranks);
}

uint64_t RandomWord() {
  uint64_t word = 0;
  if (getrandom(&word, sizeof(word), GRND_NONBLOCK) == sizeof(word)) return word;
  return static_cast<uint64_t>(absl::GetCurrentTimeNanos()) ^ static_cast<uint64_t>(getpid()) << 32;
}

// Under Yama's scope 1 only those copy whom a process names, beside its parents. It can name one
// process, with all that this one has started, and each call replaces the one before. The ranks of
// a node have started none of each other. They need not have one parent either: scripts, debuggers
// and `srun` come in between. So it names any, as Open MPI does. The kernel's other conditions
// stay: the same user, the same or fewer capabilities, and a process that may be dumped.
void AllowCopies() { prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }

}  // namespace

bool DirectPeer::HasPlace(const DirectPlace& place) const {
  if (place.segment == 0) return true;
  if (place.segment > segments_.size() || segments_[place.segment - 1] == nullptr) return false;
  const size_t bytes = segments_[place.segment - 1]->bytes();
  return place.address <= bytes && place.rows.Extent() <= bytes - place.address;
}

bool DirectPeer::HasEndedLately() const {
  constexpr int64_t kLookNs = 1'000'000;
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const int64_t now_ns = int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  if (looked_ns_ != 0 && now_ns - looked_ns_ < kLookNs) return false;
  if (HasEnded()) return true;
  looked_ns_ = now_ns;
  return false;
}

std::byte* DirectPeer::Reach(const DirectPlace& place) const {
  if (place.segment > 0) return segments_[place.segment - 1]->data() + place.address;
  if (pid() != getpid()) return nullptr;
  return reinterpret_cast<std::byte*>(place.address);  // NOLINT(performance-no-int-to-ptr)
}

absl::StatusOr<DirectNode> DirectNode::Connect(int rank, absl::Span<const int> node_of_rank,
                                               DirectExchange exchange, KernelCopies copies) {
  DirectNode node(rank, static_cast<int>(node_of_rank.size()));
  const std::vector<int> ranks = RanksOfNode(rank, node_of_rank);
  const size_t bytes =
      sizeof(DirectSlots) + ranks.size() * sizeof(DirectQueue) + kClaims * sizeof(DirectClaims);
  absl::StatusOr<std::shared_ptr<SharedSegment>> control = SharedSegment::Create(bytes);
  // Peers write into it until the last gathering; if that fails, nobody knows when.
  auto probes = std::make_unique<std::vector<uint64_t>>(1 + ranks.size());
  Hello own;
  own.process = OwnProcessName();
  own.probes = reinterpret_cast<uint64_t>(probes->data());
  own.probe = (*probes)[0] = RandomWord();
  if (control.ok()) own.control = (*control)->name();
  AllowCopies();
  SLUICE_ASSIGN_OR_RETURN(const auto hellos, Exchange(exchange, control.status(), own));

  node.control_ = *std::move(control);
  node.claims_ = ClaimsIn(*node.control_, ranks.size());
  node.slots_ = SlotsIn(*node.control_);
  absl::Status status;
  DirectLimit limit;
  const size_t own_place =
      static_cast<size_t>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  for (size_t i = 0; i < ranks.size() && status.ok(); ++i) {
    if (i == own_place) continue;
    const Hello& hello = hellos[static_cast<size_t>(ranks[i])];
    status = node.AddPeer(ranks[i], hello.control, hello.process, i, own_place, ranks.size());
    if (!status.ok()) continue;
    DirectPeer& peer = node.peers_.back();
    if (copies == KernelCopies::kNever) {
      limit = node.LimitOf(peer, EPERM);
    } else {
      node.CheckAccess(&peer, hello.probes, hello.probe, own_place, &limit);
    }
  }
  if (status = exchange(status, "").status(); !status.ok()) {
    KeepForEver(std::move(probes));
    return status;
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i == own_place) continue;
    DirectPeer& peer = node.peers_[static_cast<size_t>(node.PeerOf(ranks[i]))];
    peer.writes_here_ = (*probes)[1 + i] == own.probe;
    // If the peer has noticed nothing, its words went to another process.
    if (!peer.writes_here_ && limit.rank < 0) limit = node.LimitOf(peer, EIO);
  }
  SLUICE_ASSIGN_OR_RETURN(const auto limits, Exchange(exchange, absl::OkStatus(), limit));
  const auto first = std::find_if(limits.begin(), limits.end(),
                                  [](const DirectLimit& each) { return each.rank >= 0; });
  if (first != limits.end()) node.limit_ = *first;
  node.control_->CloseDescriptor();
  return node;
}

absl::Status DirectNode::AddPeer(int rank, const SharedSegmentName& name,
                                 const ProcessName& process, size_t place, size_t own_place,
                                 size_t ranks) {
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<SharedSegment> control, SharedSegment::Attach(name));
  DirectPeer peer(rank, process);
  peer.control_ = std::move(control);
  peer.in_ = QueuesIn(*control_) + place;
  peer.out_ = QueuesIn(*peer.control_) + own_place;
  peer.claims_ = ClaimsIn(*peer.control_, ranks);
  peer.slots_ = SlotsIn(*peer.control_);
  peer_of_rank_[static_cast<size_t>(rank)] = static_cast<int>(peers_.size());
  peers_.push_back(std::move(peer));
  return absl::OkStatus();
}

void DirectNode::CheckAccess(DirectPeer* peer, uint64_t probes, uint64_t probe, size_t own_place,
                             DirectLimit* limit) const {
  const DirectRows word = {sizeof(uint64_t), 0, 0};
  uint64_t read = 0;
  int error = ReadProcessMemory(peer->pid(), probes, word, reinterpret_cast<std::byte*>(&read),
                                word, 0, sizeof(read));
  if (error == 0 && read != probe) error = EIO;
  peer->reads_ = error == 0;
  if (error == 0) {
    error = WriteProcessMemory(peer->pid(), probes + (1 + own_place) * sizeof(uint64_t), word,
                               reinterpret_cast<const std::byte*>(&probe), word, 0, sizeof(probe));
  }
  if (error != 0 && limit->rank < 0) *limit = LimitOf(*peer, error);
}

bool DirectNode::ReadsAll() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const DirectPeer& peer) { return peer.reads(); });
}

DirectLimit DirectNode::LimitOf(const DirectPeer& peer, int error) const {
  return {rank_, getpid(), peer.rank(), peer.pid(), error, YamaScope()};
}

struct DirectNode::ShareRecord {
  static constexpr size_t kUnusedMax = 32;

  SharedSegmentName name;
  uint64_t available = 0;  // bytes that the system has left before anybody takes any
  uint32_t number = 0;     // of the new segment; 0: none
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
  own.available = AvailableMemory();
  SLUICE_ASSIGN_OR_RETURN(const auto records, Exchange(exchange, status, own));
  status = CheckAvailable(records);
  if (status.ok() && segment != nullptr) status = segment->Reserve();
  for (DirectPeer& peer : peers_) {
    const ShareRecord& record = records[static_cast<size_t>(peer.rank())];
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

// Checks the memory that the node's ranks take together: too much would make the system end a
// process.
absl::Status DirectNode::CheckAvailable(absl::Span<const ShareRecord> records) const {
  uint64_t wanted = records[static_cast<size_t>(rank_)].name.bytes;
  uint64_t available = records[static_cast<size_t>(rank_)].available;
  for (const DirectPeer& peer : peers_) {
    const ShareRecord& record = records[static_cast<size_t>(peer.rank())];
    wanted += record.name.bytes;
    available = std::min(available, record.available);
  }
  if (wanted <= available) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the ", peers_.size() + 1, " ranks of the node ask to share ", wanted,
                   " bytes of memory, and ", available, " are available"));
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
    if (number > 0 && number <= peer->segments_.size()) peer->segments_[number - 1] = nullptr;
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
