// TCP transports whose other end is slow, or ends early.
#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "session/heap_bytes.h"
#include "transport/tcp/tcp_frame.h"
#include "transport/tcp/tcp_link.h"
#include "transport/tcp_end.h"
#include "transport/tcp_ranks.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr size_t kLarge = size_t{16} << 20;

// Two ranks, and a long message from the first one of which some bytes have come.
struct HalfSent {
  explicit HalfSent(size_t bytes = kLarge)
      : sent(std::make_shared<std::vector<std::byte>>(Pattern(bytes, 1))), received(bytes) {
    b->Start({ReceiveFrom(0, received, 1)});
    a->Start({SendTo(1, *sent, 1)});
    EXPECT_TRUE(PollUntil({a.get(), b.get()}, [&] { return received[100] == (*sent)[100]; }));
  }
  // The first rank says something by control.
  void Say() const { EXPECT_TRUE(links[0]->SendControl(1, 0, {std::byte{3}}).ok()); }
  bool IsHeard() const {
    int src = -1;
    std::vector<std::byte> record;
    return links[1]->PollControl(0, &src, &record);
  }

  const std::vector<std::shared_ptr<TcpLinks>> links = MakeTcpLinks(2);
  std::shared_ptr<std::vector<std::byte>> sent;
  std::vector<std::byte> received;
  std::unique_ptr<TcpEnd> a = std::make_unique<TcpEnd>(links[0]);
  std::unique_ptr<TcpEnd> b = std::make_unique<TcpEnd>(links[1]);
};

// The receiver looks away while the sender pushes; nothing is lost, and others are served.
TEST(TcpEndsTest, ASlowReceiverHoldsNobodyElse) {
  const auto links = MakeTcpLinks(3);
  TcpEnd a(links[0]), b(links[1]), c(links[2]);
  std::vector<std::byte> sent = Pattern(kLarge, 1), received(kLarge);
  std::vector<std::byte> small = Pattern(3000, 2), other(3000);
  b.Start({ReceiveFrom(0, received, 1)});
  a.Start({SendTo(1, sent, 1)});
  // Until the system takes no more.
  for (int n = 0; n < 2000; ++n) a.Poll();
  EXPECT_TRUE(a.events.empty());
  a.Start({SendTo(2, small, 2)});
  c.Start({ReceiveFrom(0, other, 1)});
  EXPECT_TRUE(PollUntil({&a, &c}, [&] { return !a.events.empty() && !c.events.empty(); }));
  EXPECT_EQ(a.events[0].cookie, 2u);
  EXPECT_EQ(other, small);
  EXPECT_TRUE(PollUntil({&a, &b}, [&] { return a.events.size() == 2 && !b.events.empty(); }));
  EXPECT_TRUE(received == sent);
}

// Control passes while a long message goes.
TEST(TcpEndsTest, ControlPassesLongMessages) {
  const auto links = MakeTcpLinks(2);
  TcpEnd a(links[0]), b(links[1]);
  std::vector<std::byte> sent = Pattern(kLarge * 4, 1), received(kLarge * 4);
  b.Start({ReceiveFrom(0, received, 1)});
  a.Start({SendTo(1, sent, 1)});
  bool told = false;
  bool came_before = false;
  EXPECT_TRUE(PollUntil({&a, &b}, [&] {
    if (!told && received[kLarge] == sent[kLarge] && sent[kLarge] != std::byte{0}) {
      EXPECT_TRUE(links[0]->SendControl(1, 0, {std::byte{1}}).ok());
      told = true;
    }
    int src = -1;
    std::vector<std::byte> record;
    if (links[1]->PollControl(0, &src, &record)) came_before = b.events.empty();
    return !a.events.empty() && !b.events.empty();
  }));
  EXPECT_TRUE(!told || came_before);
  EXPECT_TRUE(received == sent);
}

TEST(TcpEndsTest, TheSendersEndFailsWhatHasBeenMet) {
  HalfSent half;
  TcpEnd& b = *half.b;
  const std::weak_ptr<std::vector<std::byte>> watched = half.sent;
  half.a->transport->KeepUntilOver(std::move(half.sent));
  if (half.a->events.empty()) {
    half.a = nullptr;
    EXPECT_TRUE(watched.expired()) << "nothing reads it any more";
    EXPECT_TRUE(PollAllUntil(
        [&] {
          half.links[0]->Progress();
          b.Poll();
        },
        [&] { return !b.events.empty(); }));
    EXPECT_TRUE(absl::IsUnavailable(b.events[0].status)) << b.events[0].status;
    EXPECT_THAT(std::string(b.events[0].status.message()), HasSubstr("from rank 0 to rank 1"));
  }
  // The connection is well.
  TcpEnd next_a(half.links[0], 1), next_b(half.links[1], 1);
  std::vector<std::byte> small = Pattern(50000, 3), other(50000);
  next_a.Start({SendTo(1, small, 1)});
  next_b.Start({ReceiveFrom(0, other, 1)});
  EXPECT_TRUE(PollUntil({&next_a, &next_b},
                        [&] { return !next_a.events.empty() && !next_b.events.empty(); }));
  EXPECT_EQ(other, small);
}

TEST(TcpEndsTest, TheReceiversEndLeavesItsMemoryAlone) {
  HalfSent half;
  half.b = nullptr;
  const std::vector<std::byte> before = half.received;
  EXPECT_TRUE(PollAllUntil(
      [&] {
        half.a->Poll();
        half.links[1]->Progress();
      },
      [&] { return !half.a->events.empty(); }));
  EXPECT_TRUE(half.received == before);
}

// Who failed first is said by control, which comes before the news that the sender's end has cut
// off a message. So it is asked for after each Poll here, not before.
TEST(TcpEndsTest, ControlIsHeardBeforeWhatTheSendersEndHasCutOff) {
  HalfSent half(size_t{64} << 20);
  TcpEnd& b = *half.b;
  ASSERT_TRUE(half.a->events.empty());
  half.Say();
  half.a = nullptr;
  bool heard = false;
  EXPECT_TRUE(PollAllUntil(
      [&] {
        half.links[0]->Progress();
        b.Poll();
        EXPECT_TRUE(heard || b.events.empty()) << b.events[0].status;
        heard = half.IsHeard() || heard;
      },
      [&] { return !b.events.empty(); }));
  EXPECT_TRUE(absl::IsUnavailable(b.StatusOf(1))) << b.StatusOf(1);
}

// Whoever parts has heard enough.
TEST(TcpEndsTest, WhoPartsIsToldAtOnceOfWhatHasBeenCutOff) {
  HalfSent half(size_t{64} << 20);
  half.a = nullptr;
  half.Say();  // comes after the word that the rest of the message does not come
  EXPECT_TRUE(PollAllUntil([&] { half.links[0]->Progress(); }, [&] { return half.IsHeard(); }));
  half.b->transport->Part();
  half.b->Poll();
  EXPECT_TRUE(absl::IsUnavailable(half.b->StatusOf(1))) << half.b->StatusOf(1);
}

// Short and long messages that nobody has met go with their transport, at either end.
TEST(TcpEndsTest, UnmetMessagesEndWithTheirTransport) {
  for (const bool sender_first : {true, false}) {
    const auto links = MakeTcpLinks(2);
    for (int number = 0; number < 40; number += 2) {
      auto a = std::make_unique<TcpEnd>(links[0], number);
      auto b = std::make_unique<TcpEnd>(links[1], number);
      std::vector<std::byte> small = Pattern(1000, 1), large = Pattern(200000, 2);
      std::vector<TransportOp> ops;
      for (int n = 0; n < 20; ++n) ops.push_back(SendTo(1, n % 3 == 0 ? large : small, 1, n));
      a->Start(ops);
      for (int n = 0; n < number; ++n) {
        a->Poll();
        b->Poll();
      }
      (sender_first ? a : b) = nullptr;
      links[0]->Progress();
      (sender_first ? b : a) = nullptr;
      // The room is free again for the next one.
      TcpEnd next_a(links[0], number + 1), next_b(links[1], number + 1);
      std::vector<std::byte> received(1000);
      for (uint64_t n = 1; n <= 40; ++n) {
        next_a.Start({SendTo(1, small, n)});
        next_b.Start({ReceiveFrom(0, received, n)});
        ASSERT_TRUE(PollUntil({&next_a, &next_b}, [&] {
          return next_a.events.size() == n && next_b.events.size() == n;
        }));
      }
      EXPECT_EQ(received, small);
    }
  }
}

// A transport that its peer opens much later.
TEST(TcpEndsTest, OffersWaitForTheirTransport) {
  const auto links = MakeTcpLinks(2);
  TcpEnd a(links[0], 7);
  std::vector<std::byte> small = Pattern(1000, 1), large = Pattern(200000, 2);
  a.Start({SendTo(1, small, 1), SendTo(1, large, 2, 5)});
  for (int n = 0; n < 200; ++n) {
    a.Poll();
    links[1]->Progress();
  }
  EXPECT_TRUE(a.events.empty());
  TcpEnd b(links[1], 7);
  std::vector<std::byte> one(1000), other(200000);
  b.Start({ReceiveFrom(0, other, 2, 5), ReceiveFrom(0, one, 1)});
  EXPECT_TRUE(PollUntil({&a, &b}, [&] { return a.events.size() == 2 && b.events.size() == 2; }));
  EXPECT_EQ(one, small);
  EXPECT_EQ(other, large);
}

// The word that a rank has parted is lost on a peer that has not opened the transport by then.
TEST(TcpEndsTest, WhoOpensItsTransportAfterItsPeerHasPartedCanPart) {
  const auto links = MakeTcpLinks(2);
  ConnectAll(links);
  TcpEnd a(links[0], 7);
  EXPECT_TRUE(PollUntil({&a}, [&] { return a.transport->Part(); }));
  // Comes after that word.
  EXPECT_TRUE(links[0]->SendControl(1, 0, {std::byte{3}}).ok());
  int src = -1;
  std::vector<std::byte> record;
  EXPECT_TRUE(PollAllUntil([&] { links[0]->Progress(); },
                           [&] { return links[1]->PollControl(0, &src, &record); }));
  TcpEnd b(links[1], 7);
  std::vector<std::byte> small = Pattern(1000, 1), large = Pattern(200000, 2);
  b.Start({SendTo(0, small, 1), SendTo(0, large, 2, 5)});
  EXPECT_TRUE(PollUntil({&a, &b}, [&] { return b.transport->Part(); }));
  for (const uint64_t cookie : {1, 2}) {
    EXPECT_TRUE(absl::IsCancelled(b.StatusOf(cookie))) << b.StatusOf(cookie);
  }
}

TEST(TcpEndsTest, ALeftRankDoesNotHoldWhoParts) {
  auto links = MakeTcpLinks(2);
  std::vector<std::byte> small = Pattern(1000, 1), large = Pattern(200000, 2), received(10);
  TcpEnd a(links[0]);
  {
    TcpEnd b(links[1]);
    a.Start({SendTo(1, small, 1), SendTo(1, large, 2, 5), ReceiveFrom(1, received, 3)});
    for (int n = 0; n < 50; ++n) {
      a.Poll();
      b.Poll();
    }
    links[1] = nullptr;
  }
  EXPECT_TRUE(PollUntil({&a}, [&] { return links[0]->HasLeft(1); }));
  EXPECT_TRUE(links[0]->CheckRanks().ok());
  EXPECT_TRUE(a.events.empty()) << a.events[0].status;
  EXPECT_TRUE(PollUntil({&a}, [&] { return a.transport->Part(); }));
  for (const uint64_t cookie : {1, 2, 3}) {
    EXPECT_TRUE(absl::IsCancelled(a.StatusOf(cookie))) << a.StatusOf(cookie);
  }
}

// Short messages that it never met took all the room that it had for this rank's.
TEST(TcpEndsTest, WhoPartsGivesItsRoomToLaterTransports) {
  const auto links = MakeTcpLinks(2);
  ConnectAll(links);
  std::vector<std::byte> small = Pattern(1000, 1);
  const auto heard = [&](int by) {
    const int other = 1 - by;
    EXPECT_TRUE(links[static_cast<size_t>(other)]->SendControl(by, 0, {std::byte{3}}).ok());
    int src = -1;
    std::vector<std::byte> record;
    return PollAllUntil(
        [&] { links[static_cast<size_t>(other)]->Progress(); },
        [&] { return links[static_cast<size_t>(by)]->PollControl(0, &src, &record); });
  };
  TcpEnd first(links[0], 1);
  {
    const TcpEnd unmet(links[1], 1);
    for (int n = 0; n < kEagerSlots; ++n) first.Start({SendTo(1, small, 1, n)});
    EXPECT_TRUE(heard(1));
  }
  EXPECT_TRUE(heard(0));  // after the word that it has parted
  TcpEnd a(links[0], 2), b(links[1], 2);
  a.Start({SendTo(1, small, 1)});
  EXPECT_TRUE(heard(1));
  std::vector<std::byte> received(small.size());
  b.Start({ReceiveFrom(0, received, 1)});
  EXPECT_TRUE(PollUntil({&b}, [&] { return !b.events.empty(); })) << "its bytes are not here yet";
  EXPECT_EQ(received, small);
}

TEST(TcpEndsTest, AllocatesNothingPerOperation) {
  const auto links = MakeTcpLinks(2);
  TcpEnd a(links[0]), b(links[1]);
  a.events.reserve(100000);
  b.events.reserve(100000);
  std::vector<std::byte> small = Pattern(1000, 1), large = Pattern(600000, 2);
  std::vector<std::byte> one(1000), other(600000);
  const std::vector<TransportOp> sends = {SendTo(1, small, 1), SendTo(1, large, 2, 1),
                                          SendTo(1, small, 3)};
  const std::vector<TransportOp> receives = {ReceiveFrom(0, one, 1), ReceiveFrom(0, other, 2, 1),
                                             ReceiveFrom(0, one, 3)};
  int64_t before = 0;
  for (size_t round = 1; round <= 60; ++round) {
    if (round == 21) before = session_test::AllocationCount();
    if (round % 2 == 0) b.Start(receives);
    a.Start(sends);
    if (round % 2 == 1) b.Start(receives);
    while (a.events.size() < 3 * round || b.events.size() < 3 * round) {
      a.Poll();
      b.Poll();
    }
  }
  EXPECT_EQ(session_test::AllocationCount() - before, 0);
}

// Takes all frames, and keeps the bytes of the last one.
struct LinkEnd final : TcpLinkUser {
  absl::Status OnFrame(TcpLink& /*link*/, const TcpFrame& frame, TcpRows* rows) override {
    bytes.resize(frame.length);
    rows->data = bytes.data();
    return absl::OkStatus();
  }
  absl::Status OnPayload(TcpLink& /*link*/, const TcpFrame& /*frame*/) override {
    ++frames;
    return absl::OkStatus();
  }
  void OnSent(TcpLink& /*link*/, const TcpFrame& /*frame*/, uint32_t /*owner*/) override {}
  void Refill(TcpLink& /*link*/) override {}

  std::vector<std::byte> bytes;
  int frames = 0;
};

// The owner of its memory may use the memory for something else from then on.
TEST(TcpEndsTest, WhatIsHalfWrittenWhenItIsRecalledComesAsItWas) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
  LinkEnd sender, receiver;
  TcpLink from(1, &sender), to(0, &receiver);
  from.Open(Fd(sockets[0]));
  to.Open(Fd(sockets[1]));
  std::vector<std::byte> sent = Pattern(kLarge, 1);
  TcpFrame frame;
  frame.kind = TcpFrameKind::kData;
  frame.transport = 7;
  frame.length = kLarge;
  TcpRows rows;
  rows.data = sent.data();
  rows.bytes = kLarge;
  from.QueueBorrowed(frame, rows, 3);
  from.Write();
  ASSERT_TRUE(from.has_output()) << "the system has taken all of it";
  from.Recall(7, -1);
  const std::vector<std::byte> wanted = std::exchange(sent, std::vector<std::byte>(kLarge));
  EXPECT_TRUE(PollAllUntil(
      [&] {
        from.Notify(false, true, false);
        from.Write();
        to.Notify(true, false, false);
        to.Read();
      },
      [&] { return receiver.frames == 1; }));
  EXPECT_TRUE(receiver.bytes == wanted);
}

}  // namespace
}  // namespace sluice
