// Matching sends with receives in memory.
#include "transport/loopback/loopback_messages.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "tensor/check.h"
#include "tensor/error_text.h"
#include "transport/op_check.h"

namespace sluice {
namespace {

// The address of byte `at` of an operation, and how many bytes lie there in one stretch.
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

void LoopbackMessages::Reserve(int rank, int capacity) {
  const std::lock_guard<std::mutex> lock(mutex_);
  End& end = At(rank);
  SLUICE_CHECK(end.outstanding == 0, "Reserve with operations outstanding");
  const size_t wanted = static_cast<size_t>(capacity);
  end.unused.reserve(wanted);
  end.ended.reserve(wanted);
  for (; end.entries.size() < wanted; end.entries.emplace_back()) {
    end.unused.push_back(static_cast<int>(end.entries.size()));
  }
  size_t all = 0;
  for (const End& each : ends_) all += each.entries.size();
  for (End& each : ends_) each.lines.Reserve(all, ends_.size());
}

absl::Status LoopbackMessages::Start(int rank, absl::Span<const TransportOp> ops) {
  const std::lock_guard<std::mutex> lock(mutex_);
  End& end = At(rank);
  const int capacity = static_cast<int>(end.entries.size());
  SLUICE_RETURN_IF_ERROR(CheckCapacity(ops.size(), end.outstanding, capacity));
  for (const TransportOp& op : ops) {
    const int index = end.unused.back();
    end.unused.pop_back();
    EntryAt(end, index) = {op, absl::OkStatus()};
    ++end.outstanding;
    op.kind == TransportOp::Kind::kSend ? StartSend(rank, index) : StartReceive(rank, index);
  }
  return absl::OkStatus();
}

void LoopbackMessages::StartSend(int rank, int index) {
  End& end = At(rank);
  const TransportOp& op = EntryAt(end, index).op;
  End& there = At(op.peer);
  if (const std::optional<int> receive = there.lines.TakeReceive(rank, op.tag)) {
    Entry& met = EntryAt(there, *receive);
    met.status = Deliver(op, met.op, op.peer);
    there.ended.push_back(*receive);
  } else if (sends_ == LoopbackSends::kEager) {
    Offer offer = {-1, std::vector<std::byte>(op.bytes)};
    TransportOp store = op;
    store.data = offer.bytes.data();
    store.row_bytes = 0;
    static_cast<void>(Deliver(op, store, op.peer));
    there.lines.AddOffer(rank, op.tag, std::move(offer));
  } else {
    there.lines.AddOffer(rank, op.tag, {index, {}});
    return;
  }
  end.ended.push_back(index);
}

void LoopbackMessages::StartReceive(int rank, int index) {
  End& end = At(rank);
  Entry& entry = EntryAt(end, index);
  const TransportOp& op = entry.op;
  std::optional<Offer> offer = end.lines.TakeOffer(op.peer, op.tag);
  if (!offer) return end.lines.AddReceive(op.peer, op.tag, index);
  TransportOp send = op;
  if (offer->send >= 0) {
    send = EntryAt(At(op.peer), offer->send).op;
    At(op.peer).ended.push_back(offer->send);
  } else {
    send.data = offer->bytes.data();
    send.bytes = offer->bytes.size();
    send.row_bytes = 0;
  }
  entry.status = Deliver(send, op, rank);
  end.ended.push_back(index);
}

int LoopbackMessages::Poll(int rank, absl::Span<TransportEvent> events) {
  const std::lock_guard<std::mutex> lock(mutex_);
  End& end = At(rank);
  const size_t count = std::min(events.size(), end.ended.size());
  for (size_t i = 0; i < count; ++i) {
    Entry& entry = EntryAt(end, end.ended[i]);
    events[i] = {entry.op.cookie, std::move(entry.status)};
    end.unused.push_back(end.ended[i]);
  }
  end.ended.erase(end.ended.begin(), end.ended.begin() + static_cast<std::ptrdiff_t>(count));
  end.outstanding -= static_cast<int>(count);
  return static_cast<int>(count);
}

int LoopbackMessages::outstanding(int rank) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ends_[static_cast<size_t>(rank)].outstanding;
}

void LoopbackMessages::Withdraw(int rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  End& end = At(rank);
  end.lines.TakeReceives(end.lines.kAllPeers, [&](int index) {
    EntryAt(end, index).status = WithdrawnError(EntryAt(end, index).op, rank);
    end.ended.push_back(index);
  });
}

void LoopbackMessages::Part(int rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  PartFromAll(rank);
}

void LoopbackMessages::PartFromAll(int rank) {
  if (std::exchange(At(rank).parted, true)) return;
  for (int other = 0; other < static_cast<int>(ends_.size()); ++other) {
    if (!At(other).parted) continue;
    EndSends(rank, other);
    EndSends(other, rank);
  }
}

void LoopbackMessages::EndSends(int src, int dst) {
  if (sends_ == LoopbackSends::kEager) return;  // all have ended; what they sent stays
  End& end = At(src);
  At(dst).lines.TakeOffers(src, [&](const Offer& offer) {
    EntryAt(end, offer.send).status = PartedError(EntryAt(end, offer.send).op, src);
    end.ended.push_back(offer.send);
  });
}

void LoopbackMessages::Forget(int rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  PartFromAll(rank);
  End& end = At(rank);
  // Sends of others stay: they end when those part.
  end.lines.TakeReceives(end.lines.kAllPeers, [](int) {});
  if (sends_ == LoopbackSends::kMeetTheirReceives) {
    for (End& each : ends_) each.lines.TakeOffers(rank, [](const Offer&) {});
  }
  end.entries.clear();
  end.unused.clear();
  end.ended.clear();
  end.outstanding = 0;
}

std::unique_ptr<Transport> MakeLoopbackTransport(int rank, int size,
                                                 std::shared_ptr<LoopbackMessages> messages) {
  return std::make_unique<LoopbackTransport>(rank, size, std::move(messages));
}

}  // namespace sluice
