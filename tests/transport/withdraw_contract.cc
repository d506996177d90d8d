// What every transport must do with receives that are taken back.
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "main/fails.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

constexpr size_t kBytes = size_t{1} << 20;  // rendezvous on every transport
constexpr int kGoTag = 9;

void ExpectWithdrawn(const ContractRank& r, const TransportOp& receive) {
  ASSERT_TRUE(r.Ended(receive.cookie));
  EXPECT_THAT(r.Outcome(receive.cookie),
              Fails(absl::StatusCode::kCancelled, absl::StrCat("from rank ", receive.peer)));
}

// Receives that nobody will ever send to.
TEST_P(TransportContract, WithdrawEndsReceivesThatNothingHasMet) {
  Run([](ContractRank& r) {
    r.Reserve(4 * r.size());
    std::vector<TransportOp> receives;
    for (int tag = 0; tag < 3; ++tag) {
      for (const int src : r.Peers()) {
        receives.push_back(r.Receive(src, tag, r.Buffer(kBytes), kBytes));
      }
    }
    r.Start(receives);
    r.ExpectSilence(20);
    r.transport().Withdraw();
    EXPECT_EQ(static_cast<size_t>(r.transport().outstanding()), r.started())
        << "until their events have been returned";
    r.transport().Withdraw();  // of what is withdrawn changes nothing
    r.UntilAllEnded();
    EXPECT_EQ(r.transport().outstanding(), 0);
    for (const TransportOp& op : receives) ExpectWithdrawn(r, op);
    r.transport().Withdraw();  // of nothing does nothing
  });
}

TEST_P(TransportContract, WithdrawLeavesSendsAndLaterReceivesAlone) {
  Run([](ContractRank& r) {
    if (r.rank() > 1) return;
    const int peer = 1 - r.rank();
    r.Reserve(4);
    r.Start({r.Send(peer, 3, r.FilledBuffer(kBytes, 5), kBytes)});
    const TransportOp withdrawn = r.Receive(peer, 4, r.Buffer(kBytes), kBytes);
    r.Start({withdrawn});
    r.transport().Withdraw();
    r.transport().Withdraw();
    r.UntilEnded(withdrawn.cookie);
    ExpectWithdrawn(r, withdrawn);
    std::byte* const received = r.Buffer(kBytes);
    r.Start({r.Receive(peer, 3, received, kBytes)});
    r.UntilAllEnded();
    EXPECT_TRUE(r.Matches(received, kBytes, 5));
  });
}

// A message that comes after its receive was withdrawn writes nothing, and its sender may wait for
// ever; other tags and ranks go on.
TEST_P(TransportContract, WithdrawnMemoryIsNotWritten) {
  Run([](ContractRank& r) {
    if (r.rank() > 1) return;
    r.Reserve(8);
    if (r.rank() == 0) {
      r.Start({r.Receive(1, kGoTag, r.Buffer(1), 1)});
      r.UntilAllEnded();
      const TransportOp late = r.Send(1, 1, r.FilledBuffer(kBytes, 1), kBytes);
      r.MayNeverEnd(late.cookie);
      r.Start({late, r.Send(1, 2, r.FilledBuffer(kBytes, 2), kBytes)});
      r.UntilAllEnded();
      return;
    }
    std::byte* const taken_back = r.FilledBuffer(kBytes, 7);
    r.Start({r.Receive(0, 1, taken_back, kBytes)});
    r.transport().Withdraw();
    r.UntilAllEnded();
    std::byte* const received = r.Buffer(kBytes);
    r.Start({r.Send(0, kGoTag, r.Buffer(1), 1), r.Receive(0, 2, received, kBytes)});
    r.UntilAllEnded();
    EXPECT_TRUE(r.Matches(received, kBytes, 2));
    EXPECT_TRUE(r.Matches(taken_back, kBytes, 7)) << "written after Withdraw";
  });
}

}  // namespace
}  // namespace sluice
