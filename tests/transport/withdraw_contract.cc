// What every transport must do with receives that are taken back.
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr size_t kBytes = size_t{1} << 20;  // rendezvous on every transport
constexpr int kGoTag = 9;

void ExpectWithdrawn(const ContractRank& r, uint64_t cookie, int src) {
  ASSERT_TRUE(r.Ended(cookie));
  EXPECT_EQ(r.Outcome(cookie).code(), absl::StatusCode::kCancelled) << r.Outcome(cookie);
  EXPECT_THAT(std::string(r.Outcome(cookie).message()),
              HasSubstr("from rank " + std::to_string(src)));
}

// Receives that nobody will ever send to.
TEST_P(TransportContract, WithdrawEndsReceivesThatNothingHasMet) {
  Run([](ContractRank& r) {
    auto receives = std::make_shared<std::vector<TransportOp>>();
    r.Do([&r, receives] {
      EXPECT_TRUE(r.transport().Reserve(4 * r.size()).ok());
      for (int tag = 0; tag < 3; ++tag) {
        for (const int src : r.Peers()) {
          receives->push_back(r.Receive(src, tag, r.Buffer(kBytes), kBytes));
        }
      }
      r.Start(*receives);
    });
    r.ExpectSilence(20);
    r.Do([&r] {
      r.transport().Withdraw();
      EXPECT_EQ(static_cast<size_t>(r.transport().outstanding()), r.started())
          << "until their events have been returned";
      r.transport().Withdraw();  // of what is withdrawn changes nothing
    });
    r.UntilAllEnded();
    r.Do([&r, receives] {
      EXPECT_EQ(r.transport().outstanding(), 0);
      for (const TransportOp& op : *receives) ExpectWithdrawn(r, op.cookie, op.peer);
      r.transport().Withdraw();  // of nothing does nothing
    });
  });
}

TEST_P(TransportContract, WithdrawLeavesSendsAndLaterReceivesAlone) {
  Run([](ContractRank& r) {
    if (r.rank() > 1) return;
    const int peer = 1 - r.rank();
    r.Do([&r] { EXPECT_TRUE(r.transport().Reserve(4).ok()); });
    auto received = std::make_shared<std::byte*>(nullptr);
    auto withdrawn = std::make_shared<uint64_t>(0);
    r.Do([&r, peer, withdrawn] {
      r.Start({r.Send(peer, 3, r.FilledBuffer(kBytes, 5), kBytes)});
      const TransportOp receive = r.Receive(peer, 4, r.Buffer(kBytes), kBytes);
      *withdrawn = receive.cookie;
      r.Start({receive});
      r.transport().Withdraw();
      r.transport().Withdraw();
    });
    r.Until("the event of the receive", [&r, withdrawn] { return r.Ended(*withdrawn); });
    r.Do([&r, peer, withdrawn] { ExpectWithdrawn(r, *withdrawn, peer); });
    r.Do([&r, peer, received] {
      *received = r.Buffer(kBytes);
      r.Start({r.Receive(peer, 3, *received, kBytes)});
    });
    r.UntilAllEnded();
    r.Do([&r, received] { EXPECT_TRUE(r.Matches(*received, kBytes, 5)); });
  });
}

// A message that comes after its receive was withdrawn writes nothing, and its sender may wait for
// ever; other tags and ranks go on.
TEST_P(TransportContract, WithdrawnMemoryIsNotWritten) {
  Run([](ContractRank& r) {
    if (r.rank() > 1) return;
    r.Do([&r] { EXPECT_TRUE(r.transport().Reserve(8).ok()); });
    if (r.rank() == 0) {
      r.Do([&r] { r.Start({r.Receive(1, kGoTag, r.Buffer(1), 1)}); });
      r.UntilAllEnded();
      r.Do([&r] {
        const TransportOp late = r.Send(1, 1, r.FilledBuffer(kBytes, 1), kBytes);
        r.MayNeverEnd(late.cookie);
        r.Start({late, r.Send(1, 2, r.FilledBuffer(kBytes, 2), kBytes)});
      });
      r.UntilAllEnded();
      return;
    }
    auto taken_back = std::make_shared<std::byte*>(nullptr);
    auto received = std::make_shared<std::byte*>(nullptr);
    r.Do([&r, taken_back] {
      *taken_back = r.FilledBuffer(kBytes, 7);
      r.Start({r.Receive(0, 1, *taken_back, kBytes)});
      r.transport().Withdraw();
    });
    r.UntilAllEnded();
    r.Do([&r, received] {
      *received = r.Buffer(kBytes);
      r.Start({r.Send(0, kGoTag, r.Buffer(1), 1), r.Receive(0, 2, *received, kBytes)});
    });
    r.UntilAllEnded();
    r.Do([&r, taken_back, received] {
      EXPECT_TRUE(r.Matches(*received, kBytes, 2));
      EXPECT_TRUE(r.Matches(*taken_back, kBytes, 7)) << "written after Withdraw";
    });
  });
}

}  // namespace
}  // namespace sluice
