// Matching sends with receives in memory.
#include "transport/loopback/loopback_messages.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tensor/check.h"
#include "transport/op_check.h"

namespace sluice {
namespace {

constexpr TransportOp::Kind Opposite(TransportOp::Kind kind) {
  return kind == TransportOp::Kind::kSend ? TransportOp::Kind::kReceive : TransportOp::Kind::kSend;
}

// Where byte `at` of an operation lies, and how many lie there in one stretch.
std::byte* AddressOf(const TransportOp& op, size_t at) {
  if (op.row_bytes == 0) return op.data + at;
  return op.data + at / op.row_bytes * op.stride_bytes + at % op.row_bytes;
}
size_t LeftOfRow(const TransportOp& op, size_t at) {
  return op.row_bytes == 0 ? op.bytes - at : op.row_bytes - at % op.row_bytes;
}

// Copies the message, or says why the receive fails. `rank` is the receiver.
absl::Status Deliver(const TransportOp& send, const TransportOp& receive, int rank) {
  if (send.bytes != receive.bytes) return LengthError(receive, rank, send.bytes);
  for (size_t at = 0; at < send.bytes;) {
    const size_t piece = std::min(LeftOfRow(send, at), LeftOfRow(receive, at));
    std::memcpy(AddressOf(receive, at), AddressOf(send, at), piece);
    at += piece;
  }
  return absl::OkStatus();
}

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport(int rank, int size, std::shared_ptr<LoopbackMessages> messages)
      : Transport({.name = "loopback"}), rank_(rank), size_(size), messages_(std::move(messages)) {}
  ~LoopbackTransport() override {
    messages_->Forget(rank_);
    TakeKept();
  }

  absl::Status Reserve(int capacity) override {
    messages_->Reserve(rank_, capacity);
    return absl::OkStatus();
  }

  absl::Status UseStaging(absl::Span<std::byte> /*staging*/) override { return absl::OkStatus(); }

  absl::Status Start(absl::Span<const TransportOp> ops) override {
    CheckOps(ops, rank_, size_, traits());
    return messages_->Start(rank_, ops);
  }

  absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) override {
    return messages_->Poll(rank_, events);
  }

  void Withdraw() override { messages_->Withdraw(rank_); }
  bool Part() override {
    messages_->Withdraw(rank_);
    messages_->Part(rank_);
    return outstanding() == 0;
  }
  int outstanding() const override { return messages_->outstanding(rank_); }

 private:
  const int rank_;
  const int size_;
  const std::shared_ptr<LoopbackMessages> messages_;
};

}  // namespace

void LoopbackMessages::Append(End& end, List& list, int index) {
  Entry& entry = end.entries[static_cast<size_t>(index)];
  entry.previous = list.tail;
  entry.next = -1;
  (list.tail < 0 ? list.head : end.entries[static_cast<size_t>(list.tail)].next) = index;
  list.tail = index;
}

void LoopbackMessages::Remove(End& end, List& list, int index) {
  const Entry& entry = end.entries[static_cast<size_t>(index)];
  (entry.previous < 0 ? list.head : end.entries[static_cast<size_t>(entry.previous)].next) =
      entry.next;
  (entry.next < 0 ? list.tail : end.entries[static_cast<size_t>(entry.next)].previous) =
      entry.previous;
}

void LoopbackMessages::Move(End& end, List& from, List& to, int index) {
  Remove(end, from, index);
  Append(end, to, index);
}

void LoopbackMessages::Reserve(int rank, int capacity) {
  const std::lock_guard<std::mutex> lock(mutex_);
  End& end = ends_[static_cast<size_t>(rank)];
  SLUICE_CHECK(end.outstanding == 0, "Reserve with operations outstanding");
  const int old_capacity = static_cast<int>(end.entries.size());
  if (capacity <= old_capacity) return;
  end.entries.resize(static_cast<size_t>(capacity));
  for (int i = old_capacity; i < capacity; ++i) Append(end, end.unused, i);
}

absl::Status LoopbackMessages::Start(int rank, absl::Span<const TransportOp> ops) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const End& end = ends_[static_cast<size_t>(rank)];
  const int capacity = static_cast<int>(end.entries.size());
  if (absl::Status status = CheckCapacity(ops.size(), end.outstanding, capacity); !status.ok()) {
    return status;
  }
  for (const TransportOp& op : ops) StartOne(rank, op);
  return absl::OkStatus();
}

void LoopbackMessages::StartOne(int rank, const TransportOp& op) {
  End& end = ends_[static_cast<size_t>(rank)];
  const int index = end.unused.head;
  Entry& entry = end.entries[static_cast<size_t>(index)];
  entry.op = op;
  entry.status = absl::OkStatus();
  ++end.outstanding;

  const bool send = op.kind == TransportOp::Kind::kSend;
  if (!send && TakeStored(rank, op, &entry.status)) return Move(end, end.unused, end.ended, index);
  const int partner_index = FindPartner(rank, op);
  if (partner_index < 0 && send && sends_ == LoopbackSends::kEager) {
    Stored& stored = ends_[static_cast<size_t>(op.peer)].stored.emplace_back();
    stored = {rank, op.tag, std::vector<std::byte>(op.bytes)};
    TransportOp store = op;
    store.data = stored.bytes.data();
    store.row_bytes = 0;
    static_cast<void>(Deliver(op, store, op.peer));
    return Move(end, end.unused, end.ended, index);
  }
  if (partner_index < 0) {
    Move(end, end.unused, end.unmatched, index);
    return;
  }
  End& partner_end = ends_[static_cast<size_t>(op.peer)];
  Entry& partner = partner_end.entries[static_cast<size_t>(partner_index)];
  if (send) {
    partner.status = Deliver(op, partner.op, op.peer);
  } else {
    entry.status = Deliver(partner.op, op, rank);
  }
  Move(end, end.unused, end.ended, index);
  Move(partner_end, partner_end.unmatched, partner_end.ended, partner_index);
}

int LoopbackMessages::FindPartner(int rank, const TransportOp& op) const {
  const End& end = ends_[static_cast<size_t>(op.peer)];
  for (int i = end.unmatched.head; i >= 0; i = end.entries[static_cast<size_t>(i)].next) {
    const TransportOp& other = end.entries[static_cast<size_t>(i)].op;
    if (other.kind == Opposite(op.kind) && other.peer == rank && other.tag == op.tag) return i;
  }
  return -1;
}

bool LoopbackMessages::TakeStored(int rank, const TransportOp& op, absl::Status* status) {
  std::deque<Stored>& all = ends_[static_cast<size_t>(rank)].stored;
  const auto found = std::find_if(all.begin(), all.end(), [&op](const Stored& stored) {
    return stored.src == op.peer && stored.tag == op.tag;
  });
  if (found == all.end()) return false;
  TransportOp send = op;
  send.data = found->bytes.data();
  send.bytes = found->bytes.size();
  send.row_bytes = 0;
  *status = Deliver(send, op, rank);
  all.erase(found);
  return true;
}

int LoopbackMessages::Poll(int rank, absl::Span<TransportEvent> events) {
  const std::lock_guard<std::mutex> lock(mutex_);
  End& end = ends_[static_cast<size_t>(rank)];
  size_t count = 0;
  while (count < events.size() && end.ended.head >= 0) {
    const int index = end.ended.head;
    Entry& entry = end.entries[static_cast<size_t>(index)];
    events[count].cookie = entry.op.cookie;
    events[count].status = std::move(entry.status);
    ++count;
    Move(end, end.ended, end.unused, index);
  }
  end.outstanding -= static_cast<int>(count);
  return static_cast<int>(count);
}

int LoopbackMessages::outstanding(int rank) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ends_[static_cast<size_t>(rank)].outstanding;
}

void LoopbackMessages::Withdraw(int rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  End& end = ends_[static_cast<size_t>(rank)];
  for (int i = end.unmatched.head, next; i >= 0; i = next) {
    Entry& entry = end.entries[static_cast<size_t>(i)];
    next = entry.next;
    if (entry.op.kind != TransportOp::Kind::kReceive) continue;
    entry.status = WithdrawnError(entry.op, rank);
    Move(end, end.unmatched, end.ended, i);
  }
}

void LoopbackMessages::Part(int rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  PartFromAll(rank);
}

void LoopbackMessages::PartFromAll(int rank) {
  End& own = ends_[static_cast<size_t>(rank)];
  if (std::exchange(own.parted, true)) return;
  for (size_t other = 0; other < ends_.size(); ++other) {
    if (!ends_[other].parted) continue;
    EndSends(rank, static_cast<int>(other));
    EndSends(static_cast<int>(other), rank);
  }
}

void LoopbackMessages::EndSends(int src, int dst) {
  End& end = ends_[static_cast<size_t>(src)];
  for (int i = end.unmatched.head, next; i >= 0; i = next) {
    Entry& entry = end.entries[static_cast<size_t>(i)];
    next = entry.next;
    if (entry.op.kind != TransportOp::Kind::kSend || entry.op.peer != dst) continue;
    entry.status = PartedError(entry.op, src);
    Move(end, end.unmatched, end.ended, i);
  }
}

void LoopbackMessages::Forget(int rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  PartFromAll(rank);
  End& end = ends_[static_cast<size_t>(rank)];
  end = End();
  end.parted = true;
}

std::unique_ptr<Transport> MakeLoopbackTransport(int rank, int size,
                                                 std::shared_ptr<LoopbackMessages> messages) {
  return std::make_unique<LoopbackTransport>(rank, size, std::move(messages));
}

}  // namespace sluice
