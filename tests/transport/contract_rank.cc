// One rank of a contract script, polled.
#include "transport/contract_rank.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xA5};

std::byte PatternByte(size_t i, uint64_t seed) {
  uint64_t x = (i / 8 + 1) * 0x9E3779B97F4A7C15u + seed * 0xBF58476D1CE4E5B9u;
  x ^= x >> 29;
  return static_cast<std::byte>(x >> (8 * (i % 8)));
}

}  // namespace

ContractRank::ContractRank(std::unique_ptr<Fabric> fabric) : fabric_(std::move(fabric)) {
  OpenTransport();
}

void ContractRank::OpenTransport() {
  absl::StatusOr<std::unique_ptr<Transport>> transport = fabric_->OpenTransport();
  EXPECT_TRUE(transport.ok()) << transport.status();
  loopback_ = (*transport)->name() == "loopback";
  transports_.push_back(*std::move(transport));
}

ContractRank::~ContractRank() {
  if (!open_.empty() && !loopback_) static_cast<void>(buffers_.release());
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

void ContractRank::Do(std::function<void()> action) {
  Until("an action", [action = std::move(action)] {
    action();
    return true;
  });
}

void ContractRank::Until(std::string what, std::function<bool()> done) {
  steps_.push_back({std::move(what), std::move(done)});
}

void ContractRank::ExpectSilence(int polls) {
  auto left = std::make_shared<int>(polls);
  Until("silence", [this, left] {
    const size_t before = ended();
    Poll(8);
    EXPECT_EQ(ended(), before) << "an operation ended too early";
    return --*left == 0;
  });
}

void ContractRank::UntilAllEnded() {
  Until("the end of all operations", [this] { return AllEnded(); });
}

bool ContractRank::Advance() {
  if (steps_.empty()) return false;
  if (steps_.front().done()) {
    steps_.pop_front();
  } else {
    Poll(8);
  }
  return true;
}

std::string ContractRank::Position() const {
  return absl::StrCat("rank ", rank(), " waits for ",
                      steps_.empty() ? "nothing" : steps_.front().what, ", ", ended(), " of ",
                      started(), " operations have ended");
}

void ContractRank::CheckEnd() const {
  int outstanding = 0;
  for (const auto& transport : transports_) {
    if (transport != nullptr) outstanding += transport->outstanding();
  }
  EXPECT_EQ(static_cast<size_t>(outstanding), open_.size()) << Position();
  EXPECT_TRUE(AllEnded()) << Position();
  for (const Guarded& buffer : *buffers_) {
    const auto& memory = buffer.memory;
    const auto end = static_cast<std::ptrdiff_t>(kGuardBytes);
    const auto is_guard = [](std::byte b) { return b == kGuard; };
    EXPECT_TRUE(std::all_of(memory.begin(), memory.begin() + end, is_guard))
        << "bytes written before a buffer of rank " << rank();
    EXPECT_TRUE(std::all_of(memory.end() - end, memory.end(), is_guard))
        << "bytes written past a buffer of rank " << rank();
  }
}

std::byte* ContractRank::Buffer(size_t bytes) {
  buffers_->emplace_back();
  auto& memory = buffers_->back().memory;
  memory.assign(kGuardBytes + bytes + kGuardBytes, kGuard);
  return memory.data() + kGuardBytes;
}

std::byte* ContractRank::FilledBuffer(size_t bytes, uint64_t seed) {
  std::byte* data = Buffer(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = PatternByte(i, seed);
  return data;
}

bool ContractRank::Matches(const std::byte* data, size_t bytes, uint64_t seed) {
  for (size_t i = 0; i < bytes; ++i) {
    if (data[i] != PatternByte(i, seed)) return false;
  }
  return true;
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

}  // namespace sluice
