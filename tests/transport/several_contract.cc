// What fabrics must do when several transports are opened: each matches its own messages alone.
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

constexpr int kTag = 5;
constexpr size_t kTransports = 4;
constexpr size_t kSmallBytes = 64;               // eager
constexpr size_t kLargeBytes = size_t{1} << 16;  // past the eager limit of shared memory

// All other ranks; in larger worlds the neighbours alone, so that there is less to copy.
std::vector<int> Partners(const ContractRank& r) {
  if (r.size() <= 5) return r.Peers();
  return {r.next(), r.previous()};
}

// Opens all but the first, which is there.
void OpenAll(ContractRank& r) {
  while (r.transports() < kTransports) r.OpenTransport();
  for (size_t n = 0; n < kTransports; ++n) r.Reserve(4 * r.size(), n);
}

// Differs between transports, so that a message on the wrong one is found out.
uint64_t Seed(int src, int dst, size_t n) {
  return static_cast<uint64_t>(src) * 10000 + static_cast<uint64_t>(dst) * 100 + n;
}

// What a rank receives, to be checked later.
struct Received {
  std::byte* data;
  size_t bytes;
  uint64_t seed;
  uint64_t cookie;
};
using ReceivedList = std::vector<Received>;

void StartReceive(ContractRank& r, int src, size_t n, size_t bytes, ReceivedList* list) {
  std::byte* const data = r.Buffer(bytes);
  const TransportOp op = r.Receive(src, kTag, data, bytes);
  list->push_back({data, bytes, Seed(src, r.rank(), n), op.cookie});
  r.Start({op}, n);
}

void StartSend(ContractRank& r, int dst, size_t n, size_t bytes) {
  r.Start({r.Send(dst, kTag, r.FilledBuffer(bytes, Seed(r.rank(), dst, n)), bytes)}, n);
}

void EndAll(ContractRank& r, const ReceivedList& list) {
  r.UntilAllEnded();
  for (const Received& received : list) {
    EXPECT_TRUE(r.Outcome(received.cookie).ok()) << r.Outcome(received.cookie);
    EXPECT_TRUE(r.Matches(received.data, received.bytes, received.seed))
        << "a message of another transport or rank";
  }
}

// All ranks to their partners on the transports `numbers`, on which each rank starts its sends and
// its receives in orders of its own.
void ExchangeOn(ContractRank& r, const std::vector<size_t>& numbers, size_t bytes) {
  ReceivedList list;
  const size_t count = numbers.size();
  const size_t shift = static_cast<size_t>(r.rank());
  for (size_t i = 0; i < count; ++i) {
    const size_t in = numbers[(i + shift) % count];
    for (const int peer : Partners(r)) StartReceive(r, peer, in, bytes, &list);
  }
  for (size_t i = count; i-- > 0;) {
    const size_t out = numbers[(i + 2 * shift) % count];
    for (const int peer : Partners(r)) StartSend(r, peer, out, bytes);
  }
  EndAll(r, list);
}

TEST_P(FabricContract, TransportsDoNotMixMessages) {
  Run([](ContractRank& r) {
    OpenAll(r);
    for (const size_t bytes : {kSmallBytes, kLargeBytes}) ExchangeOn(r, {0, 1, 2, 3}, bytes);
  });
}

TEST_P(FabricContract, ReceivesOnOtherTransportsStayAlone) {
  Run([](ContractRank& r) {
    OpenAll(r);
    if (r.rank() > 1) return;
    if (r.rank() == 0) {
      StartSend(r, 1, 2, kSmallBytes);
      r.Start({r.Receive(1, kTag, r.Buffer(1), 1)}, 3);
      r.UntilAllEnded();
      // The other has met the one message, and nothing else.
      StartSend(r, 1, 1, kSmallBytes);
      StartSend(r, 1, 0, kSmallBytes);
      r.UntilAllEnded();
      return;
    }
    ReceivedList list;
    for (const size_t n : {0, 1, 2}) StartReceive(r, 0, n, kSmallBytes, &list);
    r.UntilEnded(list.back().cookie);
    r.ExpectSilence(50);
    r.Start({r.Send(0, kTag, r.Buffer(1), 1)}, 3);
    EndAll(r, list);
  });
}

TEST_P(FabricContract, WithdrawConcernsOneTransport) {
  Run([](ContractRank& r) {
    OpenAll(r);
    ReceivedList list;
    std::vector<uint64_t> withdrawn;
    for (const int peer : Partners(r)) {
      const TransportOp op = r.Receive(peer, kTag, r.Buffer(kSmallBytes), kSmallBytes);
      withdrawn.push_back(op.cookie);
      r.Start({op}, 1);
      for (const size_t n : {0, 2}) StartReceive(r, peer, n, kSmallBytes, &list);
    }
    r.transport(1).Withdraw();
    for (const int peer : Partners(r)) {
      for (const size_t n : {0, 2}) StartSend(r, peer, n, kSmallBytes);
    }
    EndAll(r, list);
    for (const uint64_t cookie : withdrawn) {
      EXPECT_EQ(r.Outcome(cookie).code(), absl::StatusCode::kCancelled);
    }
  });
}

TEST_P(FabricContract, OpensTransportsAfterOthersWereDestroyed) {
  Run([](ContractRank& r) {
    OpenAll(r);
    ExchangeOn(r, {0, 1, 2, 3}, kSmallBytes);
    r.DestroyTransport(2);
    r.DestroyTransport(0);
    ExchangeOn(r, {1, 3}, kLargeBytes);
    r.OpenTransport();
    r.Reserve(4 * r.size(), kTransports);
    ExchangeOn(r, {1, 3, kTransports}, kLargeBytes);
  });
}

// Messages that nobody has asked for when their transport ends, at one end or both, are not taken
// for those of the next transport. Either end may end its transport first.
TEST_P(FabricContract, WhatComesLateMeetsNoOtherTransport) {
  Run([](ContractRank& r) {
    constexpr int kMessages = 40;
    constexpr int kRounds = 4;
    for (int round = 0; round < kRounds; ++round) {
      const auto late = static_cast<size_t>(1 + 2 * round);
      const size_t next = late + 1;
      r.OpenTransport();
      r.Reserve(kMessages, late);
      if (r.rank() == 0) {
        auto memory = std::make_shared<std::vector<std::byte>>(kSmallBytes, std::byte{77});
        for (int n = 0; n < kMessages; ++n) {
          const TransportOp op = r.Send(1, kTag, memory->data(), kSmallBytes);
          r.Start({op}, late);
          r.Forget(op);
        }
        r.transport(late).KeepUntilOver(std::move(memory));
      }
      // In some rounds they have time to come, in some not.
      if (round % 2 == 1) {
        int looks = 50;
        r.Until("messages to come", [&looks] { return --looks == 0; });
      }
      r.DestroyTransport(late);
      r.OpenTransport();
      r.Reserve(2 * kMessages * r.size(), next);
      ReceivedList list;
      for (int n = 0; n < kMessages; ++n) {
        for (const int peer : Partners(r)) StartReceive(r, peer, next, kSmallBytes, &list);
        for (const int peer : Partners(r)) StartSend(r, peer, next, kSmallBytes);
      }
      EndAll(r, list);
      r.DestroyTransport(next);
    }
  });
}

}  // namespace
}  // namespace sluice
