// What every transport must do.
#include "transport/transport_contract.h"

#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr size_t kLargeBytes = size_t{1} << 20;   // rendezvous on every transport
constexpr size_t kMediumBytes = size_t{1} << 16;  // past the eager limit of shared memory
constexpr int kTag = 5;
constexpr int kOtherTag = 6;

// Tells messages apart by their content.
uint64_t Seed(int src, int dst, int tag, int n) {
  return ((static_cast<uint64_t>(src) * 1000 + static_cast<uint64_t>(dst)) << 32) +
         (static_cast<uint64_t>(tag) << 16) + static_cast<uint64_t>(n);
}

void Reserve(ContractRank& r, int capacity) {
  r.Do([&r, capacity] { EXPECT_TRUE(r.transport().Reserve(capacity).ok()); });
}

// Adds the two ends of message n from `src` to `dst` to `ops`, as far as they are this rank's;
// afterwards the receiver checks it with CheckMessage.
struct Message {
  int src;
  int dst;
  int tag;
  int n;
  size_t bytes;
  std::byte* received = nullptr;
  uint64_t cookie = 0;
};

TransportOp MakeOp(ContractRank& r, Message& message) {
  const uint64_t seed = Seed(message.src, message.dst, message.tag, message.n);
  TransportOp op;
  if (message.src == r.rank()) {
    op = r.Send(message.dst, message.tag, r.FilledBuffer(message.bytes, seed), message.bytes);
  } else {
    message.received = r.Buffer(message.bytes);
    op = r.Receive(message.src, message.tag, message.received, message.bytes);
  }
  message.cookie = op.cookie;
  return op;
}

void Check(const ContractRank& r, const Message& message) {
  ASSERT_TRUE(r.Ended(message.cookie));
  EXPECT_TRUE(r.Outcome(message.cookie).ok()) << r.Outcome(message.cookie);
  if (message.received == nullptr) return;
  EXPECT_TRUE(r.Matches(message.received, message.bytes,
                        Seed(message.src, message.dst, message.tag, message.n)))
      << "message " << message.n << " from rank " << message.src << " to rank " << message.dst
      << ", tag " << message.tag << ", " << message.bytes << " bytes";
}

// Starts all of `messages` in one batch, waits and checks them.
void Exchange(ContractRank& r, std::vector<Message> messages) {
  auto shared = std::make_shared<std::vector<Message>>(std::move(messages));
  r.Do([&r, shared] {
    std::vector<TransportOp> ops;
    for (Message& message : *shared) ops.push_back(MakeOp(r, message));
    r.Start(ops);
  });
  r.UntilAllEnded();
  r.Do([&r, shared] {
    for (const Message& message : *shared) Check(r, message);
  });
}

TEST_P(TransportContract, KeepsOrderPerPeerAndTag) {
  Run([](ContractRank& r) {
    constexpr int kMessages = 6;
    Reserve(r, 4 * kMessages * r.size());
    for (const size_t bytes : {size_t{1}, size_t{100}, kMediumBytes}) {
      std::vector<Message> messages;
      for (int n = 0; n < kMessages; ++n) {
        for (const int peer : r.Peers()) {
          for (const int tag : {kTag, kOtherTag}) {
            messages.push_back({peer, r.rank(), tag, n, bytes});
            messages.push_back({r.rank(), peer, tag, n, bytes});
          }
        }
      }
      Exchange(r, std::move(messages));
    }
  });
}

TEST_P(TransportContract, TagsDoNotWaitForEachOther) {
  Run([](ContractRank& r) {
    Reserve(r, 8);
    if (r.rank() == 0) {
      r.Do([&r] {
        // The first one meets its receive last.
        Message first = {0, 1, kTag, 0, kLargeBytes};
        Message second = {0, 1, kOtherTag, 0, kLargeBytes};
        const std::vector<TransportOp> ops = {MakeOp(r, first), MakeOp(r, second)};
        r.Start(ops);
      });
      r.UntilAllEnded();
    } else if (r.rank() == 1) {
      Exchange(r, {{0, 1, kOtherTag, 0, kLargeBytes}});
      Exchange(r, {{0, 1, kTag, 0, kLargeBytes}});
    }
  });
}

// Receives are posted from rank 0 upwards, but messages come from the highest rank downwards.
TEST_P(TransportContract, PeersDoNotWaitForEachOther) {
  Run([](ContractRank& r) {
    Reserve(r, 2 * r.size());
    auto messages = std::make_shared<std::vector<Message>>();
    for (const int peer : r.Peers()) {
      messages->push_back({peer, r.rank(), kTag, 0, kMediumBytes});
    }
    r.Do([&r, messages] {
      std::vector<TransportOp> ops;
      for (Message& message : *messages) ops.push_back(MakeOp(r, message));
      r.Start(ops);
    });
    r.Until("messages from all higher ranks", [&r, messages] {
      for (const Message& message : *messages) {
        if (message.src > r.rank() && !r.Ended(message.cookie)) return false;
      }
      return true;
    });
    r.Do([&r] {
      std::vector<TransportOp> ops;
      for (const int peer : r.Peers()) {
        Message message = {r.rank(), peer, kTag, 0, kMediumBytes};
        ops.push_back(MakeOp(r, message));
      }
      r.Start(ops);
    });
    r.UntilAllEnded();
    r.Do([&r, messages] {
      for (const Message& message : *messages) Check(r, message);
    });
  });
}

TEST_P(TransportContract, LargeSendWaitsForItsReceive) {
  Run([](ContractRank& r) {
    Reserve(r, 4);
    if (r.rank() == 0) {
      r.Do([&r] {
        Message message = {0, 1, kTag, 0, kLargeBytes};
        r.Start({MakeOp(r, message)});
      });
      r.ExpectSilence(200);
      Tell(r, 1);
      r.UntilAllEnded();
    } else if (r.rank() == 1) {
      UntilTold(r, 0);
      Exchange(r, {{0, 1, kTag, 0, kLargeBytes}});
    }
  });
}

TEST_P(TransportContract, CarriesAllSizes) {
  Run([](ContractRank& r) {
    Reserve(r, 16 * r.size());
    std::vector<Message> messages;
    int n = 0;
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097},
                               kMediumBytes + 3, kLargeBytes}) {
      for (const int peer : {(r.rank() + 1) % r.size(), (r.rank() + r.size() - 1) % r.size()}) {
        messages.push_back({peer, r.rank(), kTag, n, bytes});
        messages.push_back({r.rank(), peer, kTag, n, bytes});
      }
      ++n;
      if (r.size() == 2) {  // both neighbours are the same rank: two messages each way
        messages[messages.size() - 2].n = n;
        messages[messages.size() - 1].n = n;
        ++n;
      }
    }
    Exchange(r, std::move(messages));
  });
}

TEST_P(TransportContract, RefusesWhatDoesNotFitAndStartsNothing) {
  Run([](ContractRank& r) {
    if (r.rank() > 1) return;
    const int peer = 1 - r.rank();
    Reserve(r, 2);
    Reserve(r, 1);  // never less than before
    r.Do([&r, peer] {
      std::vector<TransportOp> ops(3);
      for (TransportOp& op : ops) op = r.Send(peer, kTag, r.FilledBuffer(8, 99), 8);
      const absl::Status status = r.transport().Start(ops);
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("room for 2"));
      EXPECT_EQ(r.transport().outstanding(), 0);
      for (const TransportOp& op : ops) r.Forget(op);
    });
    // Had one of the refused messages been sent, the receive would meet it.
    Exchange(r, {{peer, r.rank(), kTag, 0, 8}, {r.rank(), peer, kTag, 0, 8}});
    // Full again, and after the events have been returned not.
    auto receive = std::make_shared<Message>(Message{peer, r.rank(), kTag, 1, 8});
    r.Do([&r, peer, receive] {
      r.Start({MakeOp(r, *receive)});
      const std::vector<TransportOp> ops = {r.Send(peer, kTag, r.FilledBuffer(8, 99), 8),
                                            r.Send(peer, kTag, r.FilledBuffer(8, 99), 8)};
      EXPECT_EQ(r.transport().Start(ops).code(), absl::StatusCode::kResourceExhausted);
      EXPECT_EQ(r.transport().outstanding(), 1);
      for (const TransportOp& op : ops) r.Forget(op);
    });
    Exchange(r, {{r.rank(), peer, kTag, 1, 8}});
    r.Do([&r, receive] { Check(r, *receive); });
  });
}

struct Mismatch {
  size_t sent_bytes;
  size_t received_bytes;
};

TEST_P(TransportContract, DoesNotTakeAMessageOfAnotherLength) {
  constexpr Mismatch kMismatches[] = {
      {100, 64}, {64, 100}, {kLargeBytes, kMediumBytes}, {kMediumBytes, kLargeBytes},
      {0, 8},    {8, 0},    {kLargeBytes, 16},           {16, kLargeBytes}};
  Run([&](ContractRank& r) {
    if (r.rank() > 1) return;
    Reserve(r, 3 * static_cast<int>(std::size(kMismatches)));
    int tag = 0;  // one for each case, so that none meets another's left-overs
    for (const Mismatch& mismatch : kMismatches) {
      ++tag;
      auto cookie = std::make_shared<uint64_t>(0);
      auto others = std::make_shared<std::vector<Message>>(
          std::vector<Message>{{0, 1, tag, 1, 4096}, {0, 1, 100 + tag, 2, kMediumBytes + 1}});
      r.Do([&r, mismatch, tag, cookie, others] {
        const TransportOp op =
            r.rank() == 0
                ? r.Send(1, tag, r.FilledBuffer(mismatch.sent_bytes, 1), mismatch.sent_bytes)
                : r.Receive(0, tag, r.Buffer(mismatch.received_bytes), mismatch.received_bytes);
        *cookie = op.cookie;
        r.MayNeverEnd(op.cookie);
        const TransportOp same_tag = MakeOp(r, (*others)[0]);
        const TransportOp other_tag = MakeOp(r, (*others)[1]);
        r.Start({op, same_tag, other_tag});
      });
      r.UntilAllEnded();
      r.Do([&r, cookie, others] {
        for (const Message& message : *others) Check(r, message);
        if (r.rank() == 0 || !r.Ended(*cookie)) return;
        const absl::Status& outcome = r.Outcome(*cookie);
        EXPECT_EQ(outcome.code(), absl::StatusCode::kDataLoss) << outcome;
        EXPECT_THAT(std::string(outcome.message()), HasSubstr("from rank 0 to rank 1, tag "));
      });
    }
  });
}

TEST_P(TransportContract, HoldsManyOperationsAtOnce) {
  Run([](ContractRank& r) {
    constexpr int kMessages = 500;
    const int next = (r.rank() + 1) % r.size();
    const int previous = (r.rank() + r.size() - 1) % r.size();
    Reserve(r, 2 * kMessages);
    std::vector<Message> messages;
    for (int n = 0; n < kMessages; ++n) {
      messages.push_back({previous, r.rank(), n % 7, n, 5000});
      messages.push_back({r.rank(), next, n % 7, n, 5000});
    }
    Exchange(r, std::move(messages));
  });
}

TEST_P(TransportContract, ExchangesAllToAll) {
  Run([](ContractRank& r) {
    Reserve(r, 2 * r.size());
    for (int round = 0; round < 3; ++round) {
      std::vector<Message> messages;
      for (const int peer : r.Peers()) {
        // Sends first: nobody's receive is there yet.
        messages.push_back({r.rank(), peer, kTag, round, kMediumBytes});
      }
      for (const int peer : r.Peers()) {
        messages.push_back({peer, r.rank(), kTag, round, kMediumBytes});
      }
      Exchange(r, std::move(messages));
    }
  });
}

// Everything that rank 0 is to meet is under way before it starts anything.
TEST_P(TransportContract, ServesARankThatStartsLate) {
  Run([](ContractRank& r) {
    Reserve(r, 4 * r.size());
    if (r.rank() == 0) {
      for (const int peer : r.Peers()) UntilTold(r, peer);
      std::vector<Message> messages;
      for (const int peer : r.Peers()) {
        messages.push_back({0, peer, kTag, 0, kLargeBytes});
        messages.push_back({peer, 0, kTag, 0, kLargeBytes});
      }
      Exchange(r, std::move(messages));
      return;
    }
    auto messages = std::make_shared<std::vector<Message>>(std::vector<Message>{
        {r.rank(), 0, kTag, 0, kLargeBytes}, {0, r.rank(), kTag, 0, kLargeBytes}});
    r.Do([&r, messages] {
      const TransportOp send = MakeOp(r, (*messages)[0]);
      const TransportOp receive = MakeOp(r, (*messages)[1]);
      r.Start({send, receive});
    });
    r.ExpectSilence(50);
    Tell(r, 0);
    r.UntilAllEnded();
    r.Do([&r, messages] {
      for (const Message& message : *messages) Check(r, message);
    });
  });
}

TEST_P(TransportContract, CountsWhatIsOutstanding) {
  Run([](ContractRank& r) {
    constexpr int kMessages = 20;
    const int next = (r.rank() + 1) % r.size();
    const int previous = (r.rank() + r.size() - 1) % r.size();
    Reserve(r, 2 * kMessages);
    r.Do([&r, next, previous] {
      EXPECT_EQ(r.transport().outstanding(), 0);
      for (int n = 0; n < kMessages; ++n) {
        Message receive = {previous, r.rank(), kTag, n, 100};
        Message send = {r.rank(), next, kTag, n, 100};
        const TransportOp ops[] = {MakeOp(r, receive), MakeOp(r, send)};
        r.Start(ops);
        EXPECT_EQ(r.transport().outstanding(), 2 * n + 2);
      }
    });
    // Room for no event, one, or several: none is lost and none comes twice.
    auto room = std::make_shared<size_t>(0);
    r.Until("the end of all operations", [&r, room] {
      r.Poll((*room)++ % 4);
      EXPECT_EQ(static_cast<size_t>(r.transport().outstanding()), r.started() - r.ended());
      return r.ended() == r.started();
    });
    r.Do([&r] { EXPECT_EQ(r.transport().outstanding(), 0); });
  });
}

TEST_P(TransportContract, NamesItself) {
  Run([](ContractRank& r) { r.Do([&r] { EXPECT_FALSE(r.transport().name().empty()); }); });
}

}  // namespace
}  // namespace sluice
