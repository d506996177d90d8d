// What transports over memory and messages do for ranks that part: sends that nobody meets end.
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

constexpr size_t kBytes = size_t{1} << 20;  // rendezvous on each of them
constexpr size_t kSmallBytes = 48;
constexpr int kGoTag = 9;

void UntilParted(ContractRank& r) {
  r.Until("parting", [&r] {
    r.Poll(2);
    return r.transport().Part();
  });
}

void ExpectSendsEnded(const ContractRank& r, const std::vector<uint64_t>& sends) {
  for (const uint64_t cookie : sends) {
    ASSERT_TRUE(r.Ended(cookie));
    const absl::Status& outcome = r.Outcome(cookie);
    EXPECT_TRUE(outcome.ok() || outcome.code() == absl::StatusCode::kCancelled) << outcome;
  }
}

TEST_P(PartContract, PartingEndsSendsThatNobodyMeets) {
  Run([](ContractRank& r) {
    auto sends = std::make_shared<std::vector<uint64_t>>();
    r.Do([&r, sends] {
      EXPECT_TRUE(r.transport().Reserve(8 * r.size()).ok());
      for (int tag = 0; tag < 2; ++tag) {
        for (const int dst : r.Peers()) {
          for (const size_t bytes : {kBytes, kSmallBytes, kBytes}) {
            const TransportOp send = r.Send(dst, tag, r.FilledBuffer(bytes, 1), bytes);
            sends->push_back(send.cookie);
            r.Start({send});
          }
        }
      }
    });
    UntilParted(r);
    r.Do([&r, sends] {
      EXPECT_EQ(r.transport().outstanding(), 0);
      ExpectSendsEnded(r, *sends);
    });
  });
}

// Receives that wait are taken back; what has met its receive ends as it would have.
TEST_P(PartContract, PartingEndsReceivesAndLeavesWhatHasMet) {
  Run([](ContractRank& r) {
    if (r.rank() > 1) {
      UntilParted(r);
      return;
    }
    const int peer = 1 - r.rank();
    auto received = std::make_shared<std::byte*>(nullptr);
    auto met = std::make_shared<std::vector<uint64_t>>();
    auto alone = std::make_shared<std::vector<uint64_t>>();
    r.Do([&r, peer, received, met, alone] {
      EXPECT_TRUE(r.transport().Reserve(8).ok());
      *received = r.Buffer(kBytes);
      const TransportOp send = r.Send(peer, 1, r.FilledBuffer(kBytes, 5), kBytes);
      const TransportOp receive = r.Receive(peer, 1, *received, kBytes);
      *met = {send.cookie, receive.cookie};
      const TransportOp unmet = r.Receive(peer, 2, r.Buffer(kBytes), kBytes);
      const TransportOp lost = r.Send(peer, 3, r.FilledBuffer(kBytes, 6), kBytes);
      *alone = {unmet.cookie, lost.cookie};
      r.Start({receive, unmet, send, lost});
    });
    r.Until("what has been met", [&r, met] { return r.Ended((*met)[1]); });
    UntilParted(r);
    r.Do([&r, received, met, alone] {
      EXPECT_TRUE(r.Outcome((*met)[1]).ok());
      EXPECT_TRUE(r.Matches(*received, kBytes, 5));
      EXPECT_EQ(r.Outcome((*alone)[0]).code(), absl::StatusCode::kCancelled);
      ExpectSendsEnded(r, {(*met)[0], (*alone)[1]});
    });
  });
}

// A send does not fail because its receiver has parted: what both have to say of the failure comes
// first.
TEST_P(PartContract, SendsWaitUntilBothHaveParted) {
  Run([](ContractRank& r) {
    if (r.rank() > 1) {
      UntilParted(r);
      return;
    }
    const int peer = 1 - r.rank();
    r.Do([&r] { EXPECT_TRUE(r.transport().Reserve(8).ok()); });
    if (r.rank() == 0) {
      auto late = std::make_shared<uint64_t>(0);
      r.Do([&r, peer, late] {
        const TransportOp send = r.Send(peer, 1, r.FilledBuffer(kBytes, 5), kBytes);
        *late = send.cookie;
        r.Start({send, r.Send(peer, kGoTag, r.FilledBuffer(1, 1), 1)});
      });
      auto polls = std::make_shared<int>(0);
      r.Until("many polls", [polls] { return ++*polls > 300; });
      r.Do([&r, late] { EXPECT_FALSE(r.Ended(*late)); });
      UntilParted(r);
      r.Do([&r, late] { ExpectSendsEnded(r, {*late}); });
      return;
    }
    r.Do([&r, peer] { r.Start({r.Receive(peer, kGoTag, r.Buffer(1), 1)}); });
    r.UntilAllEnded();
    UntilParted(r);
  });
}

}  // namespace
}  // namespace sluice
