// Records as units in rings, and what has been taken of them.
#include "transport/direct/node_records.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "tensor/check.h"
#include "tensor/error_text.h"
#include "tensor/round.h"

namespace sluice {
namespace {

constexpr size_t kLine = 64;

// Rings use few of their pages, and most rings none.
void UseSmallPages(const SharedSegment& segment) {
  static_cast<void>(madvise(segment.data(), segment.bytes(), MADV_NOHUGEPAGE));
}

}  // namespace

NodeRecords::NodeRecords(int rank, absl::Span<const int> node_of_rank)
    : rank_(rank), peers_(node_of_rank.size()) {
  for (size_t other = 0; other < node_of_rank.size(); ++other) {
    if (node_of_rank[other] != node_of_rank[static_cast<size_t>(rank)]) continue;
    ranks_.push_back(static_cast<int>(other));
  }
  own_place_ = PlaceOf(rank);
}

absl::StatusOr<std::unique_ptr<NodeRecords>> NodeRecords::Make(int rank,
                                                               absl::Span<const int> node_of_rank) {
  auto records = std::unique_ptr<NodeRecords>(new NodeRecords(rank, node_of_rank));
  SLUICE_ASSIGN_OR_RETURN(records->inbox_, SharedSegment::Create(records->InboxBytes()));
  UseSmallPages(*records->inbox_);
  return records;
}

size_t NodeRecords::PlaceOf(int rank) const {
  return static_cast<size_t>(std::lower_bound(ranks_.begin(), ranks_.end(), rank) - ranks_.begin());
}

size_t NodeRecords::InboxBytes() const {
  return RoundUp(bell_words() * sizeof(uint64_t), kLine) + ranks_.size() * sizeof(RecordRing);
}

std::atomic<uint64_t>* NodeRecords::BellsIn(const SharedSegment& inbox) {
  return reinterpret_cast<std::atomic<uint64_t>*>(inbox.data());
}

RecordRing* NodeRecords::RingIn(const SharedSegment& inbox, size_t place) const {
  return reinterpret_cast<RecordRing*>(inbox.data() +
                                       RoundUp(bell_words() * sizeof(uint64_t), kLine)) +
         place;
}

void NodeRecords::Attach(absl::Span<const SharedSegmentName> names) {
  SLUICE_CHECK(names.size() == peers_.size(), "an inbox of each rank");
  for (const int rank : ranks_) {
    const SharedSegmentName& name = names[static_cast<size_t>(rank)];
    if (rank == rank_ || name.bytes != InboxBytes()) continue;
    auto segment = SharedSegment::Attach(name);
    if (!segment.ok()) continue;
    Peer& peer = At(rank);
    peer.segment = *std::move(segment);
    UseSmallPages(*peer.segment);
    peer.bells = BellsIn(*peer.segment);
    peer.out = RingIn(*peer.segment, own_place_);
  }
}

absl::Status NodeRecords::Send(int dst, int kind, absl::Span<const std::byte> record) {
  SLUICE_CHECK(record.size() <= kMaxBytes, "the record is too long");
  Peer& peer = At(dst);
  SLUICE_CHECK(peer.out != nullptr, "the rank is not reached");
  if (peer.is_broken) return absl::OkStatus();  // Check says so
  CountTaken(dst, kind);
  Count& count = peer.counts[static_cast<size_t>(kind)];
  if (count.untaken_bytes + record.size() > kMaxBytes || count.untaken.size() >= kMaxRecords) {
    return MakeError(absl::StatusCode::kResourceExhausted, RankInWords(dst), " has not taken ",
                     count.untaken.size(), " records; ", record.size(), " bytes more are too much");
  }
  ++count.sent;
  count.untaken.push_back(static_cast<uint32_t>(record.size()));
  count.untaken_bytes += record.size();
  const Head head = {static_cast<uint32_t>(record.size()), static_cast<uint32_t>(kind)};
  const size_t begin = peer.backlog.size();
  const size_t bytes = sizeof(head) + RoundUp(record.size(), RecordRing::kUnit);
  if (begin == 0) backlogs_.push_back(dst);
  peer.backlog.resize(begin + bytes);
  std::memcpy(&peer.backlog[begin], &head, sizeof(head));
  if (!record.empty()) {
    std::memcpy(&peer.backlog[begin + sizeof(head)], record.data(), record.size());
  }
  peer.queued += bytes;
  Write(dst);
  return absl::OkStatus();
}

// As much as has room.
void NodeRecords::Write(int dst) {
  Peer& peer = At(dst);
  if (peer.done == peer.backlog.size()) return;
  const uint64_t room = peer.out->Room(peer.written);
  if (room == RecordRing::kNonsense) return Break(dst, "it has read what was not written");
  const uint64_t bytes = std::min<uint64_t>(room, peer.backlog.size() - peer.done);
  if (bytes == 0) return;
  peer.out->Write(peer.written, &peer.backlog[peer.done], bytes);
  peer.written += bytes;
  peer.done += bytes;
  peer.bells[own_place_ / 64].fetch_or(uint64_t{1} << own_place_ % 64, std::memory_order_release);
  if (peer.done < peer.backlog.size()) return;
  peer.backlog.clear();
  peer.done = 0;
  std::erase(backlogs_, dst);
}

void NodeRecords::CountTaken(int dst, int kind) {
  Peer& peer = At(dst);
  Count& count = peer.counts[static_cast<size_t>(kind)];
  const uint32_t left = count.sent - peer.out->taken(kind);
  if (left > count.untaken.size()) return Break(dst, "it has taken what was not sent");
  while (count.untaken.size() > left) {
    count.untaken_bytes -= count.untaken.front();
    count.untaken.pop_front();
  }
}

int NodeRecords::Untaken(int dst, int kind) {
  Peer& peer = At(dst);
  if (peer.is_broken) return 0;
  Write(dst);
  CountTaken(dst, kind);
  return static_cast<int>(peer.counts[static_cast<size_t>(kind)].untaken.size());
}

bool NodeRecords::IsSent(int dst, uint64_t mark) {
  Write(dst);
  const Peer& peer = At(dst);
  return peer.is_broken || peer.written >= mark;
}

bool NodeRecords::Poll(int kind, int* src, std::vector<std::byte>* record) {
  if (!HasArrived(kind)) return false;
  std::deque<Record>& arrived = arrived_[static_cast<size_t>(kind)];
  *src = arrived.front().src;
  *record = std::move(arrived.front().bytes);
  arrived.pop_front();
  Count& count = At(*src).counts[static_cast<size_t>(kind)];
  count.arrived_bytes -= record->size();
  --count.arrived;
  RingIn(*inbox_, PlaceOf(*src))->Take(kind);
  return true;
}

bool NodeRecords::HasArrived(int kind) {
  const std::deque<Record>& arrived = arrived_[static_cast<size_t>(kind)];
  if (arrived.empty()) Receive();
  return !arrived.empty();
}

void NodeRecords::Receive() {
  // Write takes ranks out of the list.
  for (size_t i = backlogs_.size(); i > 0; --i) Write(backlogs_[i - 1]);
  std::atomic<uint64_t>* const bells = BellsIn(*inbox_);
  for (size_t word = 0; word < bell_words(); ++word) {
    if (bells[word].load(std::memory_order_relaxed) == 0) continue;
    uint64_t rung = bells[word].exchange(0, std::memory_order_acquire);
    for (; rung != 0; rung &= rung - 1) {
      const size_t place = 64 * word + static_cast<size_t>(std::countr_zero(rung));
      if (place < ranks_.size() && place != own_place_) Receive(place);
    }
  }
}

void NodeRecords::Receive(size_t place) {
  const int src = ranks_[place];
  Peer& peer = At(src);
  RecordRing* const ring = RingIn(*inbox_, place);
  while (!peer.is_broken) {
    const uint64_t available = ring->Available(peer.read);
    if (available == 0) return;
    if (available == RecordRing::kNonsense) return Break(src, "it has written beyond its ring");
    if (!ReceiveRecord(src, ring, available)) return;
  }
}

bool NodeRecords::ReceiveRecord(int src, RecordRing* ring, uint64_t available) {
  Peer& peer = At(src);
  if (!peer.in_record) {
    ring->Read(peer.read, reinterpret_cast<std::byte*>(&peer.head), sizeof(Head));
    peer.read += sizeof(Head);
    available -= sizeof(Head);
    if (peer.head.kind >= uint32_t{kKinds} || peer.head.bytes > kMaxBytes) {
      Break(src, "it has sent what is no record");
      return false;
    }
    peer.in_record = true;
    peer.record.clear();
  }
  const uint64_t whole = RoundUp(peer.head.bytes, RecordRing::kUnit);
  const uint64_t has = peer.record.size();
  const uint64_t bytes = std::min(available, whole - has);
  if (bytes > 0) {
    peer.record.resize(has + bytes);
    ring->Read(peer.read, &peer.record[has], bytes);
    peer.read += bytes;
  }
  if (peer.record.size() < whole) return false;
  peer.in_record = false;
  peer.record.resize(peer.head.bytes);
  Count& count = peer.counts[peer.head.kind];
  count.arrived_bytes += peer.head.bytes;
  if (count.arrived_bytes > kMaxBytes || ++count.arrived > kMaxRecords) {
    Break(src, "it has sent more than there is room for");
    return false;
  }
  arrived_[peer.head.kind].push_back({src, std::move(peer.record)});
  peer.record = {};
  return true;
}

void NodeRecords::Break(int rank, const char* what) {
  Peer& peer = At(rank);
  peer.is_broken = true;
  peer.backlog.clear();
  peer.done = 0;
  std::erase(backlogs_, rank);
  broken_.Update(MakeError(absl::StatusCode::kDataLoss, RankInWords(rank),
                           " makes no sense in memory that this node shares: ", what));
}

}  // namespace sluice
