// What transports over memory and messages do for ranks that part: sends that nobody meets end.
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
    r.Reserve(8 * r.size());
    std::vector<uint64_t> sends;
    for (int tag = 0; tag < 2; ++tag) {
      for (const int dst : r.Peers()) {
        for (const size_t bytes : {kBytes, kSmallBytes, kBytes}) {
          const TransportOp send = r.Send(dst, tag, r.FilledBuffer(bytes, 1), bytes);
          sends.push_back(send.cookie);
          r.Start({send});
        }
      }
    }
    UntilParted(r);
    EXPECT_EQ(r.transport().outstanding(), 0);
    ExpectSendsEnded(r, sends);
  });
}

// Receives that wait are taken back; what has met its receive ends as it would have.
TEST_P(PartContract, PartingEndsReceivesAndLeavesWhatHasMet) {
  Run([](ContractRank& r) {
    if (r.rank() > 1) return UntilParted(r);
    const int peer = 1 - r.rank();
    r.Reserve(8);
    std::byte* const received = r.Buffer(kBytes);
    const TransportOp send = r.Send(peer, 1, r.FilledBuffer(kBytes, 5), kBytes);
    const TransportOp receive = r.Receive(peer, 1, received, kBytes);
    const TransportOp unmet = r.Receive(peer, 2, r.Buffer(kBytes), kBytes);
    const TransportOp lost = r.Send(peer, 3, r.FilledBuffer(kBytes, 6), kBytes);
    r.Start({receive, unmet, send, lost});
    r.UntilEnded(receive.cookie);
    UntilParted(r);
    EXPECT_TRUE(r.Outcome(receive.cookie).ok());
    EXPECT_TRUE(r.Matches(received, kBytes, 5));
    EXPECT_EQ(r.Outcome(unmet.cookie).code(), absl::StatusCode::kCancelled);
    ExpectSendsEnded(r, {send.cookie, lost.cookie});
  });
}

// A send does not fail because its receiver has parted: what both have to say of the failure comes
// first.
TEST_P(PartContract, SendsWaitUntilBothHaveParted) {
  Run([](ContractRank& r) {
    if (r.rank() > 1) return UntilParted(r);
    const int peer = 1 - r.rank();
    r.Reserve(8);
    if (r.rank() == 0) {
      const TransportOp late = r.Send(peer, 1, r.FilledBuffer(kBytes, 5), kBytes);
      r.Start({late, r.Send(peer, kGoTag, r.FilledBuffer(1, 1), 1)});
      int polls = 0;
      r.Until("many polls", [&polls] { return ++polls > 300; });
      EXPECT_FALSE(r.Ended(late.cookie));
      UntilParted(r);
      return ExpectSendsEnded(r, {late.cookie});
    }
    r.Start({r.Receive(peer, kGoTag, r.Buffer(1), 1)});
    r.UntilAllEnded();
    UntilParted(r);
  });
}

}  // namespace
}  // namespace sluice
