// Strangers at a rank's port, and a rank of the world that breaks the rules.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <list>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "transport/tcp/tcp_door.h"
#include "transport/tcp/tcp_frame.h"
#include "transport/tcp/tcp_handshake.h"
#include "transport/tcp_ranks.h"
#include "transport/tcp_stranger.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using Links = std::vector<std::shared_ptr<TcpLinks>>;
using Record = std::vector<std::byte>;

void ProgressAll(const Links& links) {
  for (const auto& each : links) each->Progress();
}

TcpIdentity IdentityOf(int rank, int size) {
  const TcpLinksOptions options = TcpTestOptions(rank, size);
  return {rank, size, options.world, options.secret};
}

// Ranks 0 and 1 can talk, for the first time or again.
void ExpectToTalk(const Links& links) {
  const Record record(100, std::byte{5});
  ASSERT_TRUE(links[1]->SendControl(0, 3, record).ok());
  Record came;
  int src = -1;
  EXPECT_TRUE(PollAllUntil([&] { ProgressAll(links); },
                           [&] { return links[0]->PollControl(3, &src, &came); }));
  EXPECT_EQ(src, 1);
  EXPECT_EQ(came, record);
  for (const auto& each : links) EXPECT_TRUE(each->CheckRanks().ok()) << each->CheckRanks();
}

void ExpectToBeSentAway(const Links& links, TcpStranger& stranger) {
  EXPECT_TRUE(PollAllUntil([&] { ProgressAll(links); }, [&] { return stranger.IsClosed(); }));
}

TEST(TcpStrangersTest, SendsAwayWhoSaysSomethingElse) {
  const Links links = MakeTcpLinks(2);
  std::mt19937_64 random(1);
  for (int n = 0; n < 50; ++n) {
    TcpStranger stranger(links[0]->address());
    std::vector<uint64_t> garbage(8 + random() % 10000);
    for (uint64_t& each : garbage) each = random();
    if (n == 0) garbage.assign(8, 0);
    stranger.Send(garbage.data(), garbage.size() * 8);
    if (n % 10 == 5) ExpectToTalk(links);
    ExpectToBeSentAway(links, stranger);
  }
  ExpectToTalk(links);
}

TEST(TcpStrangersTest, SendsAwayWhoIsNotOfThisWorld) {
  const Links links = MakeTcpLinks(2);
  const TcpIdentity right = IdentityOf(1, 2);
  const std::vector<std::function<void(TcpHello*)>> wrongs = {
      [](TcpHello* hello) { hello->world += 1; },
      [](TcpHello* hello) { hello->dst = 1; },
      [](TcpHello* hello) { hello->src = 0; },
      [](TcpHello* hello) { hello->src = 2; },
      [](TcpHello* hello) { hello->src = -1; },
      [](TcpHello* hello) { hello->version = 0; },
      [](TcpHello* hello) { hello->byte_order = 0x04030201; }};
  for (const auto& make_wrong : wrongs) {
    TcpHello hello = *MakeHello(right, 0);
    make_wrong(&hello);
    TcpStranger stranger(links[0]->address());
    EXPECT_TRUE(stranger.Send(&hello, sizeof(hello)));
    ExpectToBeSentAway(links, stranger);
  }
  ExpectToTalk(links);
}

TEST(TcpStrangersTest, SendsAwayWhoDoesNotKnowTheSecret) {
  const Links links = MakeTcpLinks(2);
  TcpIdentity wrong = IdentityOf(1, 2);
  wrong.secret = "a guess";
  TcpStranger stranger(links[0]->address());
  const TcpHello hello = *MakeHello(wrong, 0);
  EXPECT_TRUE(stranger.Send(&hello, sizeof(hello)));
  TcpChallenge challenge;
  EXPECT_TRUE(PollAllUntil(
      [&] { ProgressAll(links); },
      [&] { return stranger.Read(&challenge, sizeof(challenge)) == sizeof(challenge); }));
  EXPECT_TRUE(absl::IsPermissionDenied(CheckChallenge(wrong, hello, challenge)));
  const TcpProof proof = *MakeProof(wrong, hello, challenge);
  EXPECT_TRUE(stranger.Send(&proof, sizeof(proof)));
  ExpectToBeSentAway(links, stranger);
  ExpectToTalk(links);
}

TEST(TcpStrangersTest, HearsWhoEndsInTheMiddle) {
  const Links links = MakeTcpLinks(2);
  const TcpHello hello = *MakeHello(IdentityOf(1, 2), 0);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{63}, sizeof(hello)}) {
    {
      TcpStranger stranger(links[0]->address());
      EXPECT_TRUE(bytes == 0 || stranger.Send(&hello, bytes));
      links[0]->Progress();
    }
    links[0]->Progress();
  }
  ExpectToTalk(links);
}

// Byte by byte, as slow networks may have it.
TEST(TcpStrangersTest, TakesAHelloInPieces) {
  const Links links = MakeTcpLinks(2);
  const TcpIdentity right = IdentityOf(1, 2);
  TcpStranger caller(links[0]->address());
  const TcpHello hello = *MakeHello(right, 0);
  const auto* const bytes = reinterpret_cast<const std::byte*>(&hello);
  for (size_t i = 0; i < sizeof(hello); ++i) {
    EXPECT_TRUE(caller.Send(bytes + i, 1));
    links[0]->Progress();
  }
  TcpChallenge challenge;
  EXPECT_TRUE(PollAllUntil(
      [&] { ProgressAll(links); },
      [&] { return caller.Read(&challenge, sizeof(challenge)) == sizeof(challenge); }));
  EXPECT_TRUE(CheckChallenge(right, hello, challenge).ok());
}

TEST(TcpStrangersTest, ManySilentOnesLeaveRoomForRanks) {
  const Links links = MakeTcpLinks(2);
  std::list<TcpStranger> strangers;
  for (size_t n = 0; n < 3 * TcpDoor::kMaxHalfOpen; ++n) {
    strangers.emplace_back(links[0]->address());
    if (n % 10 == 0) links[0]->Progress();
  }
  ExpectToTalk(links);
  size_t closed = 0;
  for (TcpStranger& stranger : strangers) closed += stranger.IsClosed() ? 1 : 0;
  EXPECT_GE(closed, strangers.size() - TcpDoor::kMaxHalfOpen);
}

// They have heard a rank's hello, and know no secret.
TEST(TcpStrangersTest, ManyThatSayARightHelloLeaveRoomForRanks) {
  const Links links = MakeTcpLinks(
      2, [](TcpLinksOptions* options) { options->handshake_timeout = absl::Hours(1); });
  const TcpHello hello = *MakeHello(IdentityOf(1, 2), 0);
  std::list<TcpStranger> strangers;
  for (size_t n = 0; n < TcpDoor::kMaxHalfOpen; ++n) {
    TcpStranger& stranger = strangers.emplace_back(links[0]->address());
    EXPECT_TRUE(stranger.Send(&hello, sizeof(hello)));
    TcpChallenge challenge;
    EXPECT_TRUE(PollAllUntil(
        [&] { ProgressAll(links); },
        [&] { return stranger.Read(&challenge, sizeof(challenge)) == sizeof(challenge); }));
  }
  ExpectToTalk(links);
}

TEST(TcpStrangersTest, SilenceEndsAfterItsTime) {
  const Links links = MakeTcpLinks(
      2, [](TcpLinksOptions* options) { options->handshake_timeout = absl::Seconds(1); });
  TcpStranger silent(links[0]->address());
  TcpStranger half(links[0]->address());
  const TcpHello hello = *MakeHello(IdentityOf(1, 2), 0);
  EXPECT_TRUE(half.Send(&hello, sizeof(hello) - 1));
  ExpectToBeSentAway(links, silent);
  ExpectToBeSentAway(links, half);
  ExpectToTalk(links);
}

TEST(TcpStrangersTest, RanksWithAnotherSecretAreToldSo) {
  const Links links = MakeTcpLinks(3, [](TcpLinksOptions* options) {
    if (options->rank != 2) return;
    options->connect_timeout = absl::Milliseconds(300);
    options->secret = "another one";
  });
  ASSERT_TRUE(links[2]->SendControl(0, 0, Record(1)).ok());
  EXPECT_TRUE(
      PollAllUntil([&] { ProgressAll(links); }, [&] { return !links[2]->CheckRanks().ok(); }));
  EXPECT_THAT(std::string(links[2]->CheckRanks().message()),
              HasSubstr("does not know this world's secret"));
  EXPECT_TRUE(links[0]->CheckRanks().ok());
  const Links others = {links[0], links[1]};
  ExpectToTalk(others);
}

// A connection by hand that rank 0 takes for rank 1's.
Fd BecomeRankOne(const Links& links) {
  const TcpIdentity right = IdentityOf(1, 3);
  TcpStranger caller(links[0]->address());
  const TcpHello hello = *MakeHello(right, 0);
  EXPECT_TRUE(caller.Send(&hello, sizeof(hello)));
  TcpChallenge challenge;
  EXPECT_TRUE(PollAllUntil(
      [&] { links[0]->Progress(); },
      [&] { return caller.Read(&challenge, sizeof(challenge)) == sizeof(challenge); }));
  const TcpProof proof = *MakeProof(right, hello, challenge);
  EXPECT_TRUE(caller.Send(&proof, sizeof(proof)));
  caller.StartOver();
  TcpWelcome welcome;
  EXPECT_TRUE(
      PollAllUntil([&] { links[0]->Progress(); },
                   [&] { return caller.Read(&welcome, sizeof(welcome)) == sizeof(welcome); }));
  EXPECT_TRUE(CheckWelcome(welcome).ok());
  return caller.Take();
}

void ExpectRankOneLost(const Links& links) {
  EXPECT_TRUE(
      PollAllUntil([&] { links[0]->Progress(); }, [&] { return !links[0]->CheckRanks().ok(); }));
  const std::string message(links[0]->CheckRanks().message());
  EXPECT_THAT(message, HasSubstr("rank 1 is lost"));
  EXPECT_THAT(message, testing::Not(HasSubstr("rank 2")));
  // The others go on.
  const Record record(5, std::byte{1});
  ASSERT_TRUE(links[0]->SendControl(2, 0, record).ok());
  Record came;
  int src = -1;
  EXPECT_TRUE(PollAllUntil([&] { ProgressAll(links); },
                           [&] { return links[2]->PollControl(0, &src, &came); }));
  EXPECT_EQ(came, record);
}

enum class Order : uint8_t { kRecordFirst, kEndFirst, kTooSlowToTell };

// What rank 0 hears first of a rank that says something and ends. Records have a while to be asked
// for, so who asks too slowly cannot tell.
Order WhatComesFirst() {
  const Links links = MakeTcpLinks(3);
  TcpFrame frame;
  frame.kind = TcpFrameKind::kControl;
  frame.channel = 3;
  {
    const Fd fd = BecomeRankOne(links);
    EXPECT_EQ(WriteSocket(fd.get(), &frame, sizeof(frame)), sizeof(frame));
  }
  bool came = false;
  Order order = Order::kRecordFirst;
  EXPECT_TRUE(PollAllUntil([] {},
                           [&] {
                             const auto before = std::chrono::steady_clock::now();
                             links[0]->Progress();
                             const bool lost = !links[0]->CheckRanks().ok();
                             const auto took = std::chrono::steady_clock::now() - before;
                             if (lost && !came) {
                               order = took < std::chrono::milliseconds(50) ? Order::kEndFirst
                                                                            : Order::kTooSlowToTell;
                             }
                             int src = -1;
                             Record record;
                             came = links[0]->PollControl(3, &src, &record) || came;
                             return lost;
                           }));
  EXPECT_TRUE(came);
  return order;
}

// As a rank that says why it fails, and ends.
TEST(TcpStrangersTest, TellsTheLastRecordsOfARankBeforeItsEnd) {
  Order order = Order::kTooSlowToTell;
  while (order == Order::kTooSlowToTell && !HasFailure()) order = WhatComesFirst();
  EXPECT_EQ(order, Order::kRecordFirst);
}

TEST(TcpStrangersTest, EndsTheConnectionOfARankThatBreaksTheRules) {
  const TcpFrame wrongs[] = {
      {.kind = static_cast<TcpFrameKind>(77)},
      // About a transport that nobody has opened, or about no record.
      {.kind = TcpFrameKind::kGrant},
      {.kind = TcpFrameKind::kMet},
      {.kind = TcpFrameKind::kData},
      {.kind = TcpFrameKind::kAbort},
      {.kind = TcpFrameKind::kTaken},
      {.kind = TcpFrameKind::kControl, .length = TcpLinks::kMaxControlBytes + 1},
      {.kind = TcpFrameKind::kControl, .length = ~uint64_t{0}},
      {.kind = TcpFrameKind::kControl, .channel = TcpLinks::kKinds},
      {.kind = TcpFrameKind::kOffer, .length = 5},  // more than it says
      {.kind = TcpFrameKind::kOffer, .bytes = kMaxTransportBytes + 1},
      {.kind = TcpFrameKind::kOffer, .tag = kMaxTransportTag + 1},
      {.kind = TcpFrameKind::kOffer,
       .flags = kEagerFlag,
       .bytes = kEagerBytes + 1,
       .length = kEagerBytes + 1},
      {.kind = TcpFrameKind::kPart, .length = 1}};
  for (const TcpFrame& each : wrongs) {
    const Links links = MakeTcpLinks(3);
    const Fd fd = BecomeRankOne(links);
    EXPECT_EQ(WriteSocket(fd.get(), &each, sizeof(each)), sizeof(each));
    ExpectRankOneLost(links);
  }
}

// More short messages ahead of their receives than there are slots.
TEST(TcpStrangersTest, EndsTheConnectionOfARankThatOverrunsItsRoom) {
  const Links links = MakeTcpLinks(3);
  const auto transport = *links[0]->OpenTransport(0);
  const Fd fd = BecomeRankOne(links);
  for (int n = 0; n < kEagerSlots + 1; ++n) {
    TcpFrame frame;
    frame.kind = TcpFrameKind::kOffer;
    frame.flags = kEagerFlag;
    frame.slot = static_cast<uint32_t>(n);
    EXPECT_EQ(WriteSocket(fd.get(), &frame, sizeof(frame)), sizeof(frame));
    if (n < kEagerSlots) links[0]->Progress();
  }
  ExpectRankOneLost(links);
}

// Pieces of a message that come in another order, or go on beyond its end.
TEST(TcpStrangersTest, EndsTheConnectionOfARankWhosePiecesDoNotFit) {
  constexpr uint64_t kBytes = 2 * kEagerBytes;
  struct Piece {
    uint64_t at;
    uint64_t bytes;
  };
  for (const Piece& wrong : {Piece{100, 10}, Piece{0, kBytes + 1}, Piece{kBytes, 1}}) {
    const Links links = MakeTcpLinks(3);
    const auto transport = *links[0]->OpenTransport(0);
    ASSERT_TRUE(transport->Reserve(1).ok());
    std::vector<std::byte> memory(2 * kBytes, std::byte{0xA5});
    ASSERT_TRUE(
        transport->Start({{TransportOp::Kind::kReceive, 1, 0, memory.data(), kBytes, 1}}).ok());
    const Fd fd = BecomeRankOne(links);
    TcpFrame offer;
    offer.kind = TcpFrameKind::kOffer;
    offer.bytes = kBytes;
    EXPECT_EQ(WriteSocket(fd.get(), &offer, sizeof(offer)), sizeof(offer));
    TcpFrame grant;
    size_t read = 0;
    EXPECT_TRUE(PollAllUntil([&] { links[0]->Progress(); },
                             [&] {
                               const ssize_t count =
                                   ReadSocket(fd.get(), reinterpret_cast<std::byte*>(&grant) + read,
                                              sizeof(grant) - read);
                               if (count > 0) read += static_cast<size_t>(count);
                               return read == sizeof(grant);
                             }));
    ASSERT_EQ(grant.kind, TcpFrameKind::kGrant);
    TcpFrame data;
    data.kind = TcpFrameKind::kData;
    data.slot = grant.tag;
    data.bytes = wrong.at;
    data.length = wrong.bytes;
    std::vector<std::byte> all(sizeof(data) + wrong.bytes, std::byte{7});
    std::memcpy(all.data(), &data, sizeof(data));
    EXPECT_GT(WriteSocket(fd.get(), all.data(), all.size()), 0);
    ExpectRankOneLost(links);
    EXPECT_TRUE(std::all_of(memory.begin(), memory.end(),
                            [](std::byte each) { return each == std::byte{0xA5}; }))
        << wrong.bytes << " bytes at " << wrong.at;
  }
}

// Frames of random kinds and fields, about operations that there are. Whatever they do, nothing is
// written beyond a buffer and the other ranks are well.
TEST(TcpStrangersTest, SurvivesRandomFrames) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const Links links = MakeTcpLinks(3);
    const auto transport = *links[0]->OpenTransport(0);
    ASSERT_TRUE(transport->Reserve(8).ok());
    std::vector<std::byte> memory(3 * 4096, std::byte{0xA5});
    std::vector<TransportOp> ops;
    for (int tag = 0; tag < 4; ++tag) {
      const auto kind = tag < 2 ? TransportOp::Kind::kReceive : TransportOp::Kind::kSend;
      ops.push_back({kind, 1, tag, memory.data() + 4096, 4096, 1});
    }
    const Fd fd = BecomeRankOne(links);
    ASSERT_TRUE(transport->Start(ops).ok());
    for (int n = 0; n < 40; ++n) {
      TcpFrame frame;
      frame.kind = static_cast<TcpFrameKind>(random() % 10);
      frame.channel = static_cast<uint8_t>(random() % 3);
      frame.flags = static_cast<uint8_t>(random() % 4);
      frame.transport = static_cast<uint32_t>(random() % 8 == 0);
      frame.tag = static_cast<uint32_t>(random() % 3);
      frame.slot = static_cast<uint32_t>(random() % 5);
      frame.bytes = random() % 2 == 0 ? 4096 : random() % 5000;
      if (random() % 2 == 0) frame.bytes = 0;
      frame.length = random() % 2 == 0 ? frame.bytes : 0;
      std::vector<std::byte> all(sizeof(frame) + frame.length, std::byte{7});
      std::memcpy(all.data(), &frame, sizeof(frame));
      static_cast<void>(WriteSocket(fd.get(), all.data(), all.size()));
      TransportEvent events[8];
      EXPECT_TRUE(transport->Poll(absl::MakeSpan(events)).ok());
    }
    for (size_t i = 0; i < memory.size(); ++i) {
      if (i >= 4096 && i < 2 * 4096) continue;
      ASSERT_EQ(memory[i], std::byte{0xA5}) << "seed " << seed << ", byte " << i;
    }
  }
}

}  // namespace
}  // namespace sluice
