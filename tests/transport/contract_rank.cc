// One rank of a contract script, polled.
#include "transport/contract_rank.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "session/base/backoff.h"
#include "transport/contract_content.h"

namespace sluice {
namespace {

constexpr size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xA5};
constexpr int kGoTag = kMaxTransportTag;

// Ends a script whose wait takes too long.
struct Stuck {};

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> HostContractMemory::OpenTransport(Fabric* fabric) {
  absl::StatusOr<std::unique_ptr<Transport>> transport = fabric->OpenTransport();
  if (transport.ok()) must_stay_ = (*transport)->name() != "loopback";
  return transport;
}

std::byte* HostContractMemory::Allocate(size_t bytes) {
  return buffers_.emplace_back(bytes).data();
}

void HostContractMemory::Free(std::byte* data) {
  std::erase_if(buffers_, [data](const auto& buffer) { return buffer.data() == data; });
}

void HostContractMemory::Write(std::byte* to, absl::Span<const std::byte> bytes) {
  std::copy(bytes.begin(), bytes.end(), to);
}

std::vector<std::byte> HostContractMemory::Read(const std::byte* from, size_t bytes) {
  return {from, from + bytes};
}

ContractRank::ContractRank(std::unique_ptr<Fabric> fabric, std::unique_ptr<ContractMemory> memory)
    : memory_(std::move(memory)), fabric_(std::move(fabric)) {
  OpenTransport();
}

void ContractRank::OpenTransport() {
  absl::StatusOr<std::unique_ptr<Transport>> transport = memory_->OpenTransport(fabric_.get());
  EXPECT_TRUE(transport.ok()) << transport.status();
  transports_.push_back(*std::move(transport));
}

ContractRank::~ContractRank() {
  transports_.clear();
  if (!open_.empty() && memory_->must_stay()) static_cast<void>(memory_.release());
}

bool ContractRank::AllEnded() const {
  return std::includes(hopeless_.begin(), hopeless_.end(), open_.begin(), open_.end());
}

std::vector<int> ContractRank::Peers() const {
  std::vector<int> peers;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) peers.push_back(peer);
  }
  return peers;
}

bool ContractRank::Run(const ContractScript& script, std::chrono::seconds patience) {
  deadline_ = std::chrono::steady_clock::now() + patience;
  try {
    script(*this);
  } catch (const Stuck&) {
    return false;
  }
  waits_for_ = "nothing";
  return true;
}

void ContractRank::Until(const std::string& what, const std::function<bool()>& done) {
  waits_for_ = what;
  Backoff idle;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline_) throw Stuck();
    const size_t events = ended();
    Poll(8);
    if (ended() != events) idle.Reset();
    pause_ ? pause_() : idle.Pause();
  }
}

void ContractRank::ExpectSilence(int polls) {
  Until("silence", [this, &polls] {
    const size_t before = ended();
    Poll(8);
    EXPECT_EQ(ended(), before) << "an operation ended too early";
    return --polls == 0;
  });
}

void ContractRank::UntilAllEnded() {
  Until("the end of all operations", [this] { return AllEnded(); });
}

void ContractRank::UntilEnded(uint64_t cookie) {
  Until("the end of an operation", [this, cookie] { return Ended(cookie); });
}

void ContractRank::Reserve(int capacity, size_t n) {
  const absl::Status status = transports_[n]->Reserve(capacity);
  EXPECT_TRUE(status.ok()) << status;
}

std::string ContractRank::Position() const {
  return absl::StrCat("rank ", rank(), " waits for ", waits_for_, ", ", ended(), " of ", started(),
                      " operations have ended");
}

void ContractRank::CheckEnd() const {
  int outstanding = 0;
  for (const auto& transport : transports_) {
    if (transport != nullptr) outstanding += transport->outstanding();
  }
  EXPECT_EQ(static_cast<size_t>(outstanding), open_.size()) << Position();
  EXPECT_TRUE(AllEnded()) << Position();
  const std::vector<std::byte> guard(kGuardBytes, kGuard);
  for (const Guarded& buffer : buffers_) {
    EXPECT_EQ(Read(buffer.data, kGuardBytes), guard)
        << "bytes written before a buffer of rank " << rank();
    EXPECT_EQ(Read(buffer.data + buffer.bytes - kGuardBytes, kGuardBytes), guard)
        << "bytes written past a buffer of rank " << rank();
  }
}

std::byte* ContractRank::Buffer(size_t bytes) {
  const size_t guarded_bytes = kGuardBytes + bytes + kGuardBytes;
  buffers_.push_back({memory_->Allocate(guarded_bytes), guarded_bytes});
  Write(buffers_.back().data, std::vector<std::byte>(guarded_bytes, kGuard));
  return buffers_.back().data + kGuardBytes;
}

void ContractRank::FreeBuffer(const std::byte* data) {
  const auto found = std::find_if(buffers_.begin(), buffers_.end(), [data](const Guarded& buffer) {
    return buffer.data + kGuardBytes == data;
  });
  ASSERT_NE(found, buffers_.end());
  memory_->Free(found->data);
  buffers_.erase(found);
}

std::byte* ContractRank::FilledBuffer(size_t bytes, uint64_t seed) {
  std::byte* const data = Buffer(bytes);
  Write(data, PatternContent(bytes, seed));
  return data;
}

bool ContractRank::Matches(const std::byte* data, size_t bytes, uint64_t seed) const {
  return AreSame(Read(data, bytes), PatternContent(bytes, seed));
}

TransportOp ContractRank::Op(TransportOp::Kind kind, int peer, int tag, std::byte* data,
                             size_t bytes) {
  ++started_;
  open_.insert(next_cookie_);
  return {kind, peer, tag, data, bytes, next_cookie_++};
}

TransportOp ContractRank::Send(int peer, int tag, std::byte* data, size_t bytes) {
  return Op(TransportOp::Kind::kSend, peer, tag, data, bytes);
}

TransportOp ContractRank::Receive(int peer, int tag, std::byte* data, size_t bytes) {
  return Op(TransportOp::Kind::kReceive, peer, tag, data, bytes);
}

void ContractRank::Start(absl::Span<const TransportOp> ops, size_t n) {
  const absl::Status status = transports_[n]->Start(ops);
  EXPECT_TRUE(status.ok()) << status;
}

void ContractRank::Forget(const TransportOp& op) {
  EXPECT_FALSE(Ended(op.cookie));
  --started_;
  open_.erase(op.cookie);
}

void ContractRank::Poll(size_t events_max) {
  std::vector<TransportEvent> events(events_max);
  for (const auto& transport : transports_) {
    if (transport == nullptr) continue;
    const absl::StatusOr<int> count = transport->Poll(absl::MakeSpan(events));
    ASSERT_TRUE(count.ok()) << count.status();
    ASSERT_LE(static_cast<size_t>(*count), events_max);
    for (int i = 0; i < *count; ++i) Take(events[static_cast<size_t>(i)]);
  }
}

void ContractRank::Take(const TransportEvent& event) {
  EXPECT_TRUE(event.cookie > 0 && event.cookie < next_cookie_) << "an unknown cookie";
  EXPECT_TRUE(events_.emplace(event.cookie, event.status).second)
      << "two events for one operation of rank " << rank();
  open_.erase(event.cookie);
}

void Tell(ContractRank& r, int dst) { r.Start({r.Send(dst, kGoTag, r.Buffer(1), 1)}); }

void UntilTold(ContractRank& r, int src) {
  const TransportOp word = r.Receive(src, kGoTag, r.Buffer(1), 1);
  r.Start({word});
  r.UntilEnded(word.cookie);
}

}  // namespace sluice
