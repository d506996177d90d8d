// The contract of transports: order, sizes, and rows, of which each end may have its own; what lies
// between them is not touched.
#include "transport/transport_contract.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "main/fails.h"
#include "oracle/sampled.h"
#include "transport/contract_content.h"

namespace sluice {
namespace {

constexpr size_t kLargeBytes = size_t{1} << 20;   // rendezvous on every transport
constexpr size_t kMediumBytes = size_t{1} << 16;  // past the eager limit of shared memory
constexpr int kTag = 5;
constexpr int kOtherTag = 6;

// Tells messages apart by their content.
uint64_t Seed(int src, int dst, int tag, int n) {
  return ((static_cast<uint64_t>(src) * 1000 + static_cast<uint64_t>(dst)) << 32) +
         (static_cast<uint64_t>(tag) << 16) + static_cast<uint64_t>(n);
}

// One end of message n from `src` to `dst`; its receiver checks it with Check.
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

// Starts all of `messages` in one batch.
void Start(ContractRank& r, std::vector<Message>& messages) {
  std::vector<TransportOp> ops;
  for (Message& message : messages) ops.push_back(MakeOp(r, message));
  r.Start(ops);
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

void EndAll(ContractRank& r, const std::vector<Message>& messages) {
  r.UntilAllEnded();
  for (const Message& message : messages) Check(r, message);
}

void Exchange(ContractRank& r, std::vector<Message> messages) {
  Start(r, messages);
  EndAll(r, messages);
}

TEST_P(TransportContract, KeepsOrderPerPeerAndTag) {
  Run([](ContractRank& r) {
    constexpr int kMessages = 6;
    r.Reserve(4 * kMessages * r.size());
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

// The first one meets its receive last.
TEST_P(TransportContract, TagsDoNotWaitForEachOther) {
  Run([](ContractRank& r) {
    r.Reserve(8);
    const Message first = {0, 1, kTag, 0, kLargeBytes};
    const Message second = {0, 1, kOtherTag, 0, kLargeBytes};
    if (r.rank() == 0) Exchange(r, {first, second});
    if (r.rank() == 1) {
      Exchange(r, {second});
      Exchange(r, {first});
    }
  });
}

// Receives are posted from rank 0 upwards, but messages come from the highest rank downwards.
TEST_P(TransportContract, PeersDoNotWaitForEachOther) {
  Run([](ContractRank& r) {
    r.Reserve(2 * r.size());
    std::vector<Message> receives, sends;
    for (const int peer : r.Peers()) {
      receives.push_back({peer, r.rank(), kTag, 0, kMediumBytes});
      sends.push_back({r.rank(), peer, kTag, 0, kMediumBytes});
    }
    Start(r, receives);
    for (const Message& message : receives) {
      if (message.src > r.rank()) r.UntilEnded(message.cookie);
    }
    Start(r, sends);
    EndAll(r, receives);
  });
}

TEST_P(TransportContract, CarriesAllSizes) {
  Run([](ContractRank& r) {
    r.Reserve(16 * r.size());
    std::vector<Message> messages;
    int n = 0;
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097},
                               kMediumBytes + 3, kLargeBytes}) {
      for (const int peer : {r.next(), r.previous()}) {
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

// GroupContract has what is refused at first. This is full again, and after its events not.
TEST_P(TransportContract, HasRoomAgainOnceEventsWereReturned) {
  Run([](ContractRank& r) {
    if (r.rank() > 1) return;
    const int peer = 1 - r.rank();
    r.Reserve(2);
    Exchange(r, {{peer, r.rank(), kTag, 0, 8}, {r.rank(), peer, kTag, 0, 8}});
    std::vector<Message> receive = {{peer, r.rank(), kTag, 1, 8}};
    Start(r, receive);
    const std::vector<TransportOp> ops = {r.Send(peer, kTag, r.FilledBuffer(8, 99), 8),
                                          r.Send(peer, kTag, r.FilledBuffer(8, 99), 8)};
    EXPECT_EQ(r.transport().Start(ops).code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(r.transport().outstanding(), 1);
    for (const TransportOp& op : ops) r.Forget(op);
    // Had one of the refused messages been sent, the receive would meet it.
    Exchange(r, {{r.rank(), peer, kTag, 1, 8}});
    Check(r, receive[0]);
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
    r.Reserve(3 * static_cast<int>(std::size(kMismatches)));
    int tag = 0;  // one for each case, so that none meets another's left-overs
    for (const auto& [sent_bytes, received_bytes] : kMismatches) {
      ++tag;
      Message same_tag = {0, 1, tag, 1, 4096};
      Message other_tag = {0, 1, 100 + tag, 2, kMediumBytes + 1};
      const TransportOp op = r.rank() == 0
                                 ? r.Send(1, tag, r.FilledBuffer(sent_bytes, 1), sent_bytes)
                                 : r.Receive(0, tag, r.Buffer(received_bytes), received_bytes);
      r.MayNeverEnd(op.cookie);
      r.Start({op, MakeOp(r, same_tag), MakeOp(r, other_tag)});
      r.UntilAllEnded();
      Check(r, same_tag);
      Check(r, other_tag);
      if (r.rank() == 0 || !r.Ended(op.cookie)) continue;
      EXPECT_THAT(r.Outcome(op.cookie),
                  Fails(absl::StatusCode::kDataLoss, "from rank 0 to rank 1, tag "));
    }
  });
}

TEST_P(TransportContract, HoldsManyOperationsAtOnce) {
  Run([](ContractRank& r) {
    constexpr int kMessages = 500;
    r.Reserve(2 * kMessages);
    std::vector<Message> messages;
    for (int n = 0; n < kMessages; ++n) {
      messages.push_back({r.previous(), r.rank(), n % 7, n, 5000});
      messages.push_back({r.rank(), r.next(), n % 7, n, 5000});
    }
    Exchange(r, std::move(messages));
  });
}

// Sends first: nobody's receive is there yet.
TEST_P(TransportContract, ExchangesAllToAll) {
  Run([](ContractRank& r) {
    r.Reserve(2 * r.size());
    for (int round = 0; round < 3; ++round) {
      std::vector<Message> messages;
      for (const int peer : r.Peers()) {
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
    r.Reserve(4 * r.size());
    std::vector<Message> messages;
    if (r.rank() == 0) {
      for (const int peer : r.Peers()) UntilTold(r, peer);
      for (const int peer : r.Peers()) {
        messages.push_back({0, peer, kTag, 0, kLargeBytes});
        messages.push_back({peer, 0, kTag, 0, kLargeBytes});
      }
      Exchange(r, std::move(messages));
      return;
    }
    messages = {{r.rank(), 0, kTag, 0, kLargeBytes}, {0, r.rank(), kTag, 0, kLargeBytes}};
    Start(r, messages);
    r.ExpectSilence(50);
    Tell(r, 0);
    EndAll(r, messages);
  });
}

TEST_P(TransportContract, NamesItself) {
  Run([](ContractRank& r) { EXPECT_FALSE(r.transport().name().empty()); });
}

struct Shipment {
  size_t bytes;
  RowLay sender;
  RowLay receiver;
};

// Everyone sends `shipment` to the next rank, `rounds` times.
void Ship(const Shipment& shipment, uint64_t rounds, ContractRank& r) {
  const auto& [bytes, sender, receiver] = shipment;
  r.Reserve(2);
  if (r.size() == 1) return;
  for (uint64_t round = 0; round < rounds; ++round) {
    const size_t extent = receiver.Extent(bytes);
    std::byte* const received = r.Buffer(extent);
    r.Write(received, std::vector<std::byte>(extent, kContractGap));
    const std::vector<std::byte> content = SpreadContent(sender, PatternContent(bytes, round));
    std::byte* const out = r.Buffer(content.size());
    r.Write(out, content);
    TransportOp send = r.Send(r.next(), 5, out, bytes);
    send.row_bytes = sender.row_bytes;
    send.stride_bytes = sender.stride_bytes;
    TransportOp receive = r.Receive(r.previous(), 5, received, bytes);
    receive.row_bytes = receiver.row_bytes;
    receive.stride_bytes = receiver.stride_bytes;
    r.Start({receive, send});
    r.UntilAllEnded();
    const auto expected = SpreadContent(receiver, PatternContent(bytes, round));
    EXPECT_TRUE(AreSame(r.Read(received, expected.size()), expected));
  }
}

TEST_P(TransportContract, CarriesRowsAsTheyLie) {
  constexpr size_t kRow = 768, kBytes = 512 * kRow;  // long enough for a rendezvous
  // 512 bytes meet rows of 768 only after 1536.
  std::vector<RowLay> lays = {{}, {kRow, 1000}, {512, 520}};
  if (!oracle::kSanitized) lays.insert(lays.end(), {{kRow / 3, 300}, {kRow * 4, kRow * 4}});
  for (const RowLay& sender : lays) {
    for (const RowLay& receiver : lays) {
      Run([&](ContractRank& r) {
        Ship({kBytes, sender, receiver}, static_cast<uint64_t>(oracle::Thinned(3)), r);
      });
    }
  }
}

TEST_P(TransportContract, CarriesManyKindsOfRows) {
  Run([](ContractRank& r) {
    for (size_t rows = 1; rows < 40; ++rows) {
      Ship({rows * 16, {16, 16 + rows}, {8, 8 + rows}}, uint64_t{oracle::Sampled(3)}, r);
    }
  });
}

}  // namespace
}  // namespace sluice
