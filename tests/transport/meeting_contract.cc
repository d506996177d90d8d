// What every transport must do with sends whose receives have not been started: they do not end,
// however short they are.
#include <cstddef>
#include <functional>
#include <iterator>
#include <set>
#include <vector>

#include "transport/transport_contract.h"

namespace sluice {
namespace {

constexpr int kTag = 5;
// Nothing, what MPIs send along with a header, up to and past the eager limits of shared memory and
// TCP, and what is always a rendezvous.
constexpr size_t kSizes[] = {0, 1, 100, 4000, 4096, 20000, 65000, 65536, 70000, size_t{1} << 20};
// Of rows, the sizes that are multiples of them.
constexpr size_t kRowBytes = 50;
constexpr size_t kStrideBytes = 64;

// One send of each size. Each meets its receive before the next one starts, so that every length is
// seen by itself. None ends before rank 1 asks for it.
void MeetOneByOne(ContractRank& r, bool rows) {
  r.Reserve(8);
  for (const size_t bytes : kSizes) {
    if (rows && (bytes == 0 || bytes % kRowBytes != 0)) continue;
    if (r.rank() == 0) {
      const size_t extent = rows ? bytes / kRowBytes * kStrideBytes : bytes;
      TransportOp send = r.Send(1, kTag, r.FilledBuffer(extent, bytes), bytes);
      send.row_bytes = rows ? kRowBytes : 0;
      send.stride_bytes = rows ? kStrideBytes : 0;
      r.Start({send});
      r.ExpectSilence(100);
      Tell(r, 1);
      r.UntilAllEnded();
    } else if (r.rank() == 1) {
      UntilTold(r, 0);
      std::byte* const data = r.Buffer(bytes);
      r.Start({r.Receive(0, kTag, data, bytes)});
      r.UntilAllEnded();
      if (rows) continue;
      EXPECT_TRUE(r.Matches(data, bytes, bytes));
    }
  }
}

TEST_P(TransportContract, SendsEndOnlyWhenTheirReceivesStart) {
  Run([](ContractRank& r) { MeetOneByOne(r, false); });
}

TEST_P(TransportContract, SendsOfRowsEndOnlyWhenTheirReceivesStart) {
  Run([](ContractRank& r) { MeetOneByOne(r, true); });
}

// Each rank passes on what it has received, and cannot get rid of it before the next one asks.
TEST_P(TransportContract, RelaysHoldWhatTheNextHasNotAskedFor) {
  Run([](ContractRank& r) {
    constexpr size_t kBytes = 3000;
    r.Reserve(8);
    std::byte* data = nullptr;
    if (r.rank() == 0) {
      data = r.FilledBuffer(kBytes, 3);
    } else {
      UntilTold(r, r.previous());
      data = r.Buffer(kBytes);
      TransportOp receive = r.Receive(r.previous(), kTag, data, kBytes);
      receive.hop = r.previous();
      r.Start({receive});
      r.UntilAllEnded();
      EXPECT_TRUE(r.Matches(data, kBytes, 3));
    }
    if (r.next() == 0) return;
    TransportOp send = r.Send(r.next(), kTag, data, kBytes);
    send.hop = r.rank();
    r.Start({send});
    r.ExpectSilence(100);
    Tell(r, r.next());
    r.UntilAllEnded();
  });
}

struct Message {
  int tag;
  size_t bytes;
};

// Rank 0 starts these sends to rank 1 in order. None ends before rank 1 asks for them, which it
// does tag by tag, and for the last tag first.
void ExpectToWaitTogether(ContractRank& r, const std::vector<Message>& messages) {
  r.Reserve(static_cast<int>(messages.size()) + 8);
  if (r.rank() == 0) {
    std::vector<TransportOp> ops;
    for (size_t n = 0; n < messages.size(); ++n) {
      const auto [tag, bytes] = messages[n];
      ops.push_back(r.Send(1, tag, r.FilledBuffer(bytes, n), bytes));
    }
    r.Start(ops);
    r.ExpectSilence(200);
    Tell(r, 1);
    r.UntilAllEnded();
  } else if (r.rank() == 1) {
    UntilTold(r, 0);
    std::set<int, std::greater<>> tags;
    for (const Message& message : messages) tags.insert(message.tag);
    std::vector<std::byte*> received(messages.size());
    for (const int tag : tags) {
      std::vector<TransportOp> ops;
      for (size_t n = 0; n < messages.size(); ++n) {
        if (messages[n].tag != tag) continue;
        received[n] = r.Buffer(messages[n].bytes);
        ops.push_back(r.Receive(0, tag, received[n], messages[n].bytes));
      }
      r.Start(ops);
      r.UntilAllEnded();
    }
    for (size_t n = 0; n < messages.size(); ++n) {
      EXPECT_TRUE(r.Matches(received[n], messages[n].bytes, n)) << "message " << n;
    }
  }
}

// Those that nobody has asked for stay at their sender, however many there are.
TEST_P(TransportContract, ManySmallSendsWaitTogether) {
  Run([](ContractRank& r) { ExpectToWaitTogether(r, std::vector<Message>(300, {kTag, 2000})); });
}

// More than a transport may have at the receiver before it is asked for, of all lengths in turn.
TEST_P(TransportContract, ManySendsOfSeveralLengthsWaitTogether) {
  Run([](ContractRank& r) {
    constexpr size_t kLengths[] = {20000, 65536, 0, 100000, 1, 3000, 65537};
    std::vector<Message> messages;
    for (size_t n = 0; n < 300; ++n) {
      messages.push_back({kTag + static_cast<int>(n % 3), kLengths[n % std::size(kLengths)]});
    }
    ExpectToWaitTogether(r, messages);
  });
}

// Beyond what a transport may have at the receiver before it is asked for. Neither message is
// written into the receive of the other's length, and the channel goes on.
TEST_P(TransportContract, LengthsInAnotherOrderPassForNoOthers) {
  constexpr size_t kLongBytes = size_t{1} << 20;
  constexpr size_t kShortBytes = 20000;
  constexpr int kWaiting = 24;
  constexpr size_t kWaitingBytes = size_t{1} << 16;
  Run([&](ContractRank& r) {
    if (r.rank() > 1) return;
    r.Reserve(kWaiting + 8);
    if (r.rank() == 0) {
      for (int n = 0; n < kWaiting; ++n) {
        r.Start({r.Send(1, kTag + 1, r.FilledBuffer(kWaitingBytes, 1), kWaitingBytes)});
      }
      for (const size_t bytes : {kLongBytes, kShortBytes}) {
        const TransportOp send = r.Send(1, kTag, r.FilledBuffer(bytes, bytes), bytes);
        r.MayNeverEnd(send.cookie);
        r.Start({send});
      }
      r.Start({r.Send(1, kTag, r.FilledBuffer(4096, 3), 4096)});
      Tell(r, 1);
      r.UntilAllEnded();
      return;
    }
    std::vector<TransportOp> received;
    UntilTold(r, 0);
    for (const size_t bytes : {kShortBytes, kLongBytes}) {
      received.push_back(r.Receive(0, kTag, r.Buffer(bytes), bytes));
      r.MayNeverEnd(received.back().cookie);
    }
    received.push_back(r.Receive(0, kTag, r.Buffer(4096), 4096));
    for (const TransportOp& receive : received) r.Start({receive});
    r.UntilAllEnded();
    for (int n = 0; n < kWaiting; ++n) {
      r.Start({r.Receive(0, kTag + 1, r.Buffer(kWaitingBytes), kWaitingBytes)});
    }
    r.UntilAllEnded();
    for (const TransportOp& receive : received) {
      if (!r.Ended(receive.cookie)) continue;
      const absl::Status& outcome = r.Outcome(receive.cookie);
      if (outcome.ok()) {
        EXPECT_TRUE(
            r.Matches(receive.data, receive.bytes, receive.bytes == 4096 ? 3 : receive.bytes))
            << receive.bytes;
      } else {
        EXPECT_EQ(outcome.code(), absl::StatusCode::kDataLoss) << outcome;
      }
    }
    EXPECT_TRUE(r.Outcome(received.back().cookie).ok());
  });
}

// In stream order the host may hear of a send at once, but the device does not come past it. In
// groups, this is so from some length on, which bounds what lies between two ranks. The word that
// lets the receiver go on is a post: a transport in groups does not tell tags apart.
TEST_P(GroupContract, LargeSendsHoldTheirRankUntilTheirReceivesStart) {
  Run([](ContractRank& r) {
    constexpr size_t kBytes = size_t{1} << 20;
    if (r.size() == 1) return;
    r.Reserve(1);
    if (r.rank() == 0) {
      const TransportOp send = r.Send(1, kTag, r.FilledBuffer(kBytes, 4), kBytes);
      r.Start({send});
      int looks = 200;
      r.Until("the send to wait", [&] {
        EXPECT_FALSE(r.Ended(send.cookie) && !r.DeviceIsBusy()) << "a send ended too early";
        return --looks == 0;
      });
      EXPECT_TRUE(r.fabric().Post(1, {std::byte{1}}).ok());
      r.UntilAllEnded();
    } else if (r.rank() == 1) {
      r.Until("a word from the sender", [&] {
        int src = -1;
        std::vector<std::byte> word;
        return r.fabric().PollPost(&src, &word);
      });
      std::byte* const data = r.Buffer(kBytes);
      r.Start({r.Receive(0, kTag, data, kBytes)});
      r.UntilAllEnded();
      EXPECT_TRUE(r.Matches(data, kBytes, 4));
    }
  });
}

}  // namespace
}  // namespace sluice
