// What fabrics must do when several transports are opened: each matches its own messages alone.
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
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
  return {(r.rank() + 1) % r.size(), (r.rank() + r.size() - 1) % r.size()};
}

// Opens all but the first, which is there.
void OpenAll(ContractRank& r) {
  r.Do([&r] {
    while (r.transports() < kTransports) r.OpenTransport();
    for (size_t n = 0; n < kTransports; ++n) {
      EXPECT_TRUE(r.transport(n).Reserve(4 * r.size()).ok());
    }
  });
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
using ReceivedList = std::shared_ptr<std::vector<Received>>;

void StartReceive(ContractRank& r, int src, size_t n, size_t bytes, const ReceivedList& list) {
  std::byte* const data = r.Buffer(bytes);
  const TransportOp op = r.Receive(src, kTag, data, bytes);
  list->push_back({data, bytes, Seed(src, r.rank(), n), op.cookie});
  r.Start({op}, n);
}

void StartSend(ContractRank& r, int dst, size_t n, size_t bytes) {
  r.Start({r.Send(dst, kTag, r.FilledBuffer(bytes, Seed(r.rank(), dst, n)), bytes)}, n);
}

void CheckAll(ContractRank& r, const ReceivedList& list) {
  r.Do([&r, list] {
    for (const Received& received : *list) {
      EXPECT_TRUE(r.Outcome(received.cookie).ok()) << r.Outcome(received.cookie);
      EXPECT_TRUE(r.Matches(received.data, received.bytes, received.seed))
          << "a message of another transport or rank";
    }
  });
}

// All ranks to their partners on the transports `numbers`, on which each rank starts its sends and
// its receives in orders of its own.
void ExchangeOn(ContractRank& r, std::vector<size_t> numbers, size_t bytes) {
  auto list = std::make_shared<std::vector<Received>>();
  r.Do([&r, numbers = std::move(numbers), bytes, list] {
    const size_t count = numbers.size();
    const size_t shift = static_cast<size_t>(r.rank());
    for (size_t i = 0; i < count; ++i) {
      const size_t in = numbers[(i + shift) % count];
      for (const int peer : Partners(r)) StartReceive(r, peer, in, bytes, list);
    }
    for (size_t i = count; i-- > 0;) {
      const size_t out = numbers[(i + 2 * shift) % count];
      for (const int peer : Partners(r)) StartSend(r, peer, out, bytes);
    }
  });
  r.UntilAllEnded();
  CheckAll(r, list);
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
      r.Do([&r] { StartSend(r, 1, 2, kSmallBytes); });
      r.Do([&r] { r.Start({r.Receive(1, kTag, r.Buffer(1), 1)}, 3); });
      r.UntilAllEnded();
      // The other has met the one message, and nothing else.
      r.Do([&r] {
        StartSend(r, 1, 1, kSmallBytes);
        StartSend(r, 1, 0, kSmallBytes);
      });
      r.UntilAllEnded();
      return;
    }
    auto list = std::make_shared<std::vector<Received>>();
    r.Do([&r, list] {
      for (const size_t n : {0, 1, 2}) StartReceive(r, 0, n, kSmallBytes, list);
    });
    r.Until("the message on transport 2", [&r, list] { return r.Ended(list->back().cookie); });
    r.ExpectSilence(50);
    r.Do([&r] { r.Start({r.Send(0, kTag, r.Buffer(1), 1)}, 3); });
    r.UntilAllEnded();
    CheckAll(r, list);
  });
}

TEST_P(FabricContract, WithdrawConcernsOneTransport) {
  Run([](ContractRank& r) {
    OpenAll(r);
    auto list = std::make_shared<std::vector<Received>>();
    auto withdrawn = std::make_shared<std::vector<uint64_t>>();
    r.Do([&r, list, withdrawn] {
      for (const int peer : Partners(r)) {
        const TransportOp op = r.Receive(peer, kTag, r.Buffer(kSmallBytes), kSmallBytes);
        withdrawn->push_back(op.cookie);
        r.Start({op}, 1);
        for (const size_t n : {0, 2}) StartReceive(r, peer, n, kSmallBytes, list);
      }
      r.transport(1).Withdraw();
      for (const int peer : Partners(r)) {
        for (const size_t n : {0, 2}) StartSend(r, peer, n, kSmallBytes);
      }
    });
    r.UntilAllEnded();
    CheckAll(r, list);
    r.Do([&r, withdrawn] {
      for (const uint64_t cookie : *withdrawn) {
        EXPECT_EQ(r.Outcome(cookie).code(), absl::StatusCode::kCancelled);
      }
    });
  });
}

TEST_P(FabricContract, OpensTransportsAfterOthersWereDestroyed) {
  Run([](ContractRank& r) {
    OpenAll(r);
    ExchangeOn(r, {0, 1, 2, 3}, kSmallBytes);
    r.Do([&r] {
      r.DestroyTransport(2);
      r.DestroyTransport(0);
    });
    ExchangeOn(r, {1, 3}, kLargeBytes);
    r.Do([&r] {
      r.OpenTransport();
      EXPECT_TRUE(r.transport(kTransports).Reserve(4 * r.size()).ok());
    });
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
      r.Do([&r, late] {
        r.OpenTransport();
        EXPECT_TRUE(r.transport(late).Reserve(kMessages).ok());
        if (r.rank() != 0) return;
        auto memory = std::make_shared<std::vector<std::byte>>(kSmallBytes, std::byte{77});
        for (int n = 0; n < kMessages; ++n) {
          const TransportOp op = r.Send(1, kTag, memory->data(), kSmallBytes);
          r.Start({op}, late);
          r.Forget(op);
        }
        r.transport(late).KeepUntilOver(std::move(memory));
      });
      // In some rounds they have time to come, in some not.
      if (round % 2 == 1) {
        auto looks = std::make_shared<int>(50);
        r.Until("messages to come", [looks] { return --*looks == 0; });
      }
      r.Do([&r, late, next] {
        r.DestroyTransport(late);
        r.OpenTransport();
        EXPECT_TRUE(r.transport(next).Reserve(2 * kMessages * r.size()).ok());
      });
      auto list = std::make_shared<std::vector<Received>>();
      r.Do([&r, next, list] {
        for (int n = 0; n < kMessages; ++n) {
          for (const int peer : Partners(r)) StartReceive(r, peer, next, kSmallBytes, list);
          for (const int peer : Partners(r)) StartSend(r, peer, next, kSmallBytes);
        }
      });
      r.UntilAllEnded();
      CheckAll(r, list);
      r.Do([&r, next] { r.DestroyTransport(next); });
    }
  });
}

}  // namespace
}  // namespace sluice
