// Greetings: who proves what to whom, and what each side says when it does not work.
#include "world/store/store_greeting.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/hmac.h"
#include "world/store/store_wire.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kInstance(kStoreInstanceBytes, 'i');

// What both sides come to.
struct Outcome {
  absl::StatusOr<bool> client = false;
  absl::StatusOr<bool> server = false;
  std::string instance;
  std::string sent_by_client;
  std::string sent_by_server;
};

std::string_view NextFrame(StoreInbox* inbox, std::string* bytes) {
  inbox->Append(*bytes);
  bytes->clear();
  const auto frame = inbox->Next();
  return frame.ok() ? std::string_view(frame->data(), frame->size()) : std::string_view();
}

Outcome Greet(const StoreSide& client_side, const StoreSide& server_side) {
  Outcome outcome;
  ClientGreeting client(&client_side);
  ServerGreeting server(&server_side, kInstance);
  std::string to_server = *client.Hello();
  std::string to_client;
  StoreInbox server_inbox(kMaxGreetingBytes);
  StoreInbox client_inbox(kMaxGreetingBytes + 1024);
  while (!to_server.empty() || !to_client.empty()) {
    outcome.sent_by_client += to_server;
    const auto at_server = NextFrame(&server_inbox, &to_server);
    if (!at_server.empty() && outcome.server.ok()) {
      outcome.server = server.Take({at_server.data(), at_server.size()}, &to_client);
      if (!outcome.server.ok()) to_client = EncodeError(outcome.server.status());
    }
    outcome.sent_by_server += to_client;
    const auto at_client = NextFrame(&client_inbox, &to_client);
    if (!at_client.empty() && outcome.client.ok()) {
      outcome.client = client.Take({at_client.data(), at_client.size()}, &to_server);
    }
  }
  outcome.instance = client.instance();
  return outcome;
}

StoreSide WithToken(const std::string& token) {
  StoreSide side;
  side.token = token;
  return side;
}

TEST(StoreGreetingTest, OneTokenOrNoneIsWelcome) {
  for (const std::string token : {"", "secret"}) {
    const Outcome outcome = Greet(WithToken(token), WithToken(token));
    EXPECT_TRUE(outcome.client.ok() && *outcome.client) << outcome.client.status();
    EXPECT_TRUE(outcome.server.ok() && *outcome.server) << outcome.server.status();
    EXPECT_EQ(outcome.instance, kInstance);
  }
}

TEST(StoreGreetingTest, TheTokenIsNotSent) {
  const Outcome outcome = Greet(WithToken("secret"), WithToken("secret"));
  EXPECT_THAT(outcome.sent_by_client, Not(HasSubstr("secret")));
  EXPECT_THAT(outcome.sent_by_server, Not(HasSubstr("secret")));
}

TEST(StoreGreetingTest, NoGreetingIsLikeAnother) {
  const Outcome one = Greet(WithToken("secret"), WithToken("secret"));
  const Outcome other = Greet(WithToken("secret"), WithToken("secret"));
  EXPECT_NE(one.sent_by_client, other.sent_by_client);
  EXPECT_NE(one.sent_by_server, other.sent_by_server);
}

TEST(StoreGreetingTest, DifferentTokensAreRefusedAtBothEnds) {
  const StoreSide sides[] = {WithToken(""), WithToken("one"), WithToken("two"), WithToken("one ")};
  for (const StoreSide& client : sides) {
    for (const StoreSide& server : sides) {
      if (client.token == server.token) continue;
      const Outcome outcome = Greet(client, server);
      EXPECT_TRUE(absl::IsPermissionDenied(outcome.client.status())) << outcome.client.status();
      EXPECT_TRUE(absl::IsPermissionDenied(outcome.server.status())) << outcome.server.status();
    }
  }
}

TEST(StoreGreetingTest, AWrongTokenGetsNoProofToTryOthersAgainst) {
  const Outcome right = Greet(WithToken("one"), WithToken("one"));
  const Outcome wrong = Greet(WithToken("two"), WithToken("one"));
  // An answer and an error, but no welcome.
  StoreInbox inbox(kMaxGreetingBytes + 1024);
  inbox.Append(wrong.sent_by_server);
  EXPECT_EQ((*inbox.Next())[0], static_cast<char>(StoreFrame::kAnswer));
  EXPECT_EQ((*inbox.Next())[0], static_cast<char>(StoreFrame::kError));
  EXPECT_TRUE(inbox.Next()->empty());
}

TEST(StoreGreetingTest, OtherVersionsAndByteOrdersAreNamed) {
  StoreSide newer = WithToken("secret");
  newer.version = kStoreVersion + 1;
  StoreSide swapped = WithToken("secret");
  swapped.byte_order = 2;
  StoreSide plain = WithToken("secret");
  plain.byte_order = 1;
  const auto names = [&](const StoreSide& client, const StoreSide& server, const char* text) {
    const Outcome outcome = Greet(client, server);
    for (const absl::Status& status : {outcome.client.status(), outcome.server.status()}) {
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    }
  };
  names(newer, plain, "the store has version 1 of the store's protocol, and the client version 2");
  names(plain, newer, "the store has version 2 of the store's protocol, and the client version 1");
  names(swapped, plain, "different byte orders");
  names(plain, swapped, "different byte orders");
}

// What a server answers to a client of its own kind.
std::string AnswerOf(const StoreSide& side) {
  ServerGreeting server(&side, kInstance);
  ClientGreeting helper(&side);
  StoreInbox inbox(kMaxGreetingBytes);
  inbox.Append(*helper.Hello());
  std::string out;
  EXPECT_TRUE(server.Take(*inbox.Next(), &out).ok());
  return out.substr(4);
}

// What a client does with an answer that a server of another kind gives.
TEST(StoreGreetingTest, AClientChecksTheServerToo) {
  const StoreSide side = WithToken("secret");
  const auto take = [&](const StoreSide& server) {
    ClientGreeting client(&side);
    EXPECT_TRUE(client.Hello().ok());
    std::string out;
    const auto done = client.Take(AnswerOf(server), &out);
    EXPECT_TRUE(out.empty());
    return done.status();
  };
  StoreSide newer = WithToken("secret");
  newer.version = kStoreVersion + 1;
  EXPECT_TRUE(absl::IsFailedPrecondition(take(newer)));
  EXPECT_TRUE(absl::IsPermissionDenied(take(WithToken(""))));
  StoreSide swapped = WithToken("secret");
  swapped.byte_order = 2;
  EXPECT_TRUE(absl::IsFailedPrecondition(take(swapped)));
}

TEST(StoreGreetingTest, AServerWithoutTheTokenIsNotBelieved) {
  const StoreSide side = WithToken("secret");
  ClientGreeting client(&side);
  ASSERT_TRUE(client.Hello().ok());
  // It answers as if it knew.
  std::string proof;
  ASSERT_TRUE(client.Take(AnswerOf(WithToken("guess")), &proof).ok());
  // Neither any bytes nor the client's own proof are a welcome.
  for (const std::string& bytes :
       {std::string(), std::string(sizeof(HmacDigest), 'x'), proof.substr(5)}) {
    ClientGreeting again = client;
    std::string out;
    const std::string welcome = EncodeFrame(StoreFrame::kWelcome, bytes);
    const auto done = again.Take(absl::string_view(welcome).substr(4), &out);
    EXPECT_TRUE(absl::IsPermissionDenied(done.status())) << done.status();
  }
}

TEST(StoreGreetingTest, NonsenseIsRefused) {
  const StoreSide side;
  std::string hello;
  {
    ClientGreeting client(&side);
    hello = client.Hello()->substr(4);
  }
  for (size_t length = 0; length < hello.size(); ++length) {
    ServerGreeting server(&side, kInstance);
    std::string out;
    EXPECT_FALSE(server.Take(absl::string_view(hello).substr(0, length), &out).ok()) << length;
    EXPECT_TRUE(out.empty());
  }
  for (const std::string& frame : {hello + "x", "\x06" + hello.substr(1), std::string("\x03")}) {
    ServerGreeting server(&side, kInstance);
    std::string out;
    EXPECT_FALSE(server.Take(frame, &out).ok());
    ClientGreeting client(&side);
    EXPECT_TRUE(client.Hello().ok());
    EXPECT_FALSE(client.Take(frame, &out).ok());
  }
}

TEST(StoreProofTest, DependsOnAllThatItIsOf) {
  const std::string proof = *MakeStoreProof("token", "client", "said");
  EXPECT_EQ(proof.size(), sizeof(HmacDigest));
  EXPECT_TRUE(EqualDigests(proof, *MakeStoreProof("token", "client", "said")));
  EXPECT_FALSE(EqualDigests(proof, *MakeStoreProof("token2", "client", "said")));
  EXPECT_FALSE(EqualDigests(proof, *MakeStoreProof("token", "server", "said")));
  EXPECT_FALSE(EqualDigests(proof, *MakeStoreProof("token", "client", "said2")));
  EXPECT_FALSE(EqualDigests(proof, proof.substr(1)));
}

}  // namespace
}  // namespace sluice
