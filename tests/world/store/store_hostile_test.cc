// A server among strangers and clients that send nonsense, or nothing: others do not notice.
#include <malloc.h>
#include <sys/resource.h>

#include <chrono>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "sluice/store.h"
#include "world/store/raw_client.h"
#include "world/store/store_tools.h"
#include "world/store/store_wire.h"

namespace sluice {
namespace {

TEST(StoreHostileTest, GarbageEndsItsConnectionOnly) {
  const auto server = Serve(Patient());
  const auto member = Reach(*server);
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\nHost: store\r\n\r\n"), std::string(100, '\0'),
        std::string(100, '\xff'), EncodeFrame(StoreFrame::kProof, ""),
        Request(StoreCall::kSet, "a", "stranger"), EncodeFrame(StoreFrame::kHello, "SLUICE")}) {
    RawClient stranger(server->port());
    EXPECT_TRUE(stranger.Send(garbage));
    const absl::Status error = stranger.AwaitError();
    EXPECT_FALSE(error.ok());
    EXPECT_TRUE(stranger.AwaitEnd());
    EXPECT_TRUE(member->Set("b", "member").ok());
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(member->Get("a", absl::ZeroDuration()).status()));
}

TEST(StoreHostileTest, GarbageOfAMemberEndsItsConnectionOnly) {
  const auto server = Serve(Patient());
  const auto member = Reach(*server);
  const std::string right = Request(StoreCall::kHold, "m/1", "here", 3'600'000);
  std::string unknown = Request(StoreCall::kPing, "");
  unknown[9] = 77;  // the call
  for (const std::string& garbage :
       {unknown, EncodeFrame(StoreFrame::kRequest, "short"), EncodeFrame(StoreFrame::kHello, "x"),
        right.substr(0, 4) + std::string(right.size() - 4, '\xff'),
        std::string("\xff\xff\xff\x7f") + "x", std::string("\x01\x00\x03\x00", 4)}) {
    RawClient broken(server->port());
    ASSERT_TRUE(broken.Greet());
    EXPECT_TRUE(broken.Send(right));
    EXPECT_TRUE(ParseReply(broken.NextFrame())->status.ok());
    EXPECT_EQ(*member->Get("m/1", absl::ZeroDuration()), "here");
    EXPECT_TRUE(broken.Send(garbage));
    EXPECT_TRUE(absl::IsInvalidArgument(broken.AwaitError()));
    EXPECT_TRUE(broken.AwaitEnd());
    EXPECT_TRUE(IsGone(*member, "m/1"));
  }
}

TEST(StoreHostileTest, AFrameThatIsTooLongIsNotAwaited) {
  const auto server = Serve(Patient());
  RawClient stranger(server->port());
  EXPECT_TRUE(stranger.Send(std::string("\x01\x01\x00\x00", 4)));  // 257 bytes
  EXPECT_TRUE(absl::IsInvalidArgument(stranger.AwaitError()));
  RawClient member(server->port());
  ASSERT_TRUE(member.Greet());
  const std::string longest(kMaxStoreValueBytes, 'v');
  StoreRequest most;
  most.id = 1;
  most.call = StoreCall::kCompareSet;
  const std::string key(kMaxStoreKeyBytes, 'k');
  most.key = key;
  most.value = most.expected = longest;
  EXPECT_TRUE(member.Send(EncodeRequest(most)));
  EXPECT_TRUE(ParseReply(member.NextFrame())->status.ok());
  EXPECT_TRUE(member.Send(std::string("\x00\x00\x00\x01", 4)));  // 16 MiB
  EXPECT_TRUE(absl::IsInvalidArgument(member.AwaitError()));
  EXPECT_TRUE(Serves(*server));
}

TEST(StoreHostileTest, BadRequestsOfARightFormGetErrors) {
  const auto server = Serve(Patient());
  RawClient client(server->port());
  ASSERT_TRUE(client.Greet());
  for (const std::string& request :
       {Request(StoreCall::kSet, "", "v"), Request(StoreCall::kGet, ""),
        Request(StoreCall::kAdd, "", "", 1), Request(StoreCall::kCompareSet, ""),
        Request(StoreCall::kHold, "", "v", 1000), Request(StoreCall::kHold, "k", "", 1000),
        Request(StoreCall::kHold, "k", "v", 99), Request(StoreCall::kHold, "k", "v", 3'600'001),
        Request(StoreCall::kHold, "k", "v", -1),
        Request(StoreCall::kSet, std::string(kMaxStoreKeyBytes + 1, 'k'), "v"),
        Request(StoreCall::kSet, "k", std::string(kMaxStoreValueBytes + 1, 'v')),
        Request(StoreCall::kList, std::string(kMaxStoreKeyBytes + 1, 'k')),
        Request(StoreCall::kWatch, std::string(kMaxStoreKeyBytes + 1, 'k'))}) {
    EXPECT_TRUE(client.Send(request));
    EXPECT_TRUE(absl::IsInvalidArgument(ParseReply(client.NextFrame())->status));
  }
  // Releases of what nobody holds, and waits of less than nothing.
  EXPECT_TRUE(client.Send(Request(StoreCall::kRelease, "k", "", 12345)));
  EXPECT_TRUE(ParseReply(client.NextFrame())->status.ok());
  EXPECT_TRUE(client.Send(Request(StoreCall::kGet, "k", "", std::numeric_limits<int64_t>::min())));
  EXPECT_TRUE(absl::IsDeadlineExceeded(ParseReply(client.NextFrame())->status));
  EXPECT_TRUE(client.Send(Request(StoreCall::kGet, "k", "", std::numeric_limits<int64_t>::max()) +
                          Request(StoreCall::kSet, "k", "v", 0, 2)));
  EXPECT_FALSE(client.NextFrame().empty());
  EXPECT_FALSE(client.NextFrame().empty());
}

TEST(StoreHostileTest, RandomFramesHarmNobodyElse) {
  const auto server = Serve();
  const auto member = Reach(*server);
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    RawClient client(server->port());
    ASSERT_TRUE(client.connected());
    if (i % 4 != 0) {
      ASSERT_TRUE(client.Greet());
    }
    std::string bytes;
    for (int k = 0; k < 20; ++k) {
      bytes += Request(static_cast<StoreCall>(1 + random() % 9), absl::StrCat("k", random() % 5),
                       std::string(random() % 50, 'v'), static_cast<int64_t>(random() % 5000),
                       static_cast<uint32_t>(k + 1));
    }
    for (unsigned k = random() % 4; k > 0; --k) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    bytes.resize(random() % bytes.size());
    client.SendSome(bytes);
    if (i % 20 == 0) {
      EXPECT_TRUE(member->Set("mine", absl::StrCat(i)).ok());
    }
  }
  EXPECT_EQ(*member->Get("mine", absl::ZeroDuration()), "180");
  EXPECT_TRUE(Serves(*server));
}

TEST(StoreHostileTest, SlowStrangersAreDropped) {
  StoreServerOptions options = Patient();
  options.limits.hello = absl::Milliseconds(300);
  const auto server = Serve(options);
  RawClient silent(server->port());
  RawClient half(server->port());
  EXPECT_TRUE(half.Send(std::string("\x2d\x00\x00\x00\x01SLU", 8)));
  // One that always has a byte more to send.
  RawClient slow(server->port());
  EXPECT_TRUE(slow.Send(std::string("\xff\x00\x00\x00", 4)));
  std::thread dribble([&] {
    while (slow.Send("x")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  EXPECT_TRUE(silent.AwaitEnd());
  EXPECT_TRUE(half.AwaitEnd());
  EXPECT_TRUE(slow.AwaitEnd());
  dribble.join();
  EXPECT_TRUE(Serves(*server));
}

// As many descriptors as this process may have, while it lives.
class ManyDescriptors {
 public:
  ManyDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit most = before_;
    most.rlim_cur = most.rlim_max;
    setrlimit(RLIMIT_NOFILE, &most);
  }
  ~ManyDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

// Connections that say nothing, as many as this process may have.
std::vector<std::unique_ptr<RawClient>> ManySilent(const StoreServer& server, size_t wanted) {
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  std::vector<std::unique_ptr<RawClient>> silent;
  // Both ends are in this process.
  if (limit.rlim_cur < 2 * wanted + 300) return silent;
  for (size_t i = 0; i < wanted; ++i) {
    silent.push_back(std::make_unique<RawClient>(server.port()));
    EXPECT_TRUE(silent.back()->connected());
  }
  return silent;
}

// What they send before they have proved themselves is not kept.
TEST(StoreHostileTest, StrangersTakeLittleMemory) {
  constexpr size_t kStrangers = 60;
  const ManyDescriptors many;
  const auto server = Serve(Patient());
  const auto member = Reach(*server);
  const auto strangers = ManySilent(*server, kStrangers);
  if (strangers.empty()) GTEST_SKIP() << "this process may not have so many descriptors";
  EXPECT_TRUE(member->Set("a", "1").ok());
  const auto in_use = [] {
    const auto memory = mallinfo2();
    return memory.uordblks + memory.hblkhd;
  };
  const size_t before = in_use();
  // A frame that is too long, and much behind it.
  std::string garbage = std::string("\x01\x01\x00\x00", 4) + std::string(60'000, 'x');
  for (const auto& stranger : strangers) EXPECT_TRUE(stranger->Send(garbage));
  for (const auto& stranger : strangers) EXPECT_FALSE(stranger->AwaitError().ok());
  const size_t after = in_use();
  // 64 KiB of each had been kept for as long as its connection stood.
  EXPECT_LE(after, before + kStrangers * 16'000);
}

TEST(StoreHostileTest, AThousandSilentConnectionsHinderNobody) {
  StoreServerOptions options = Patient();
  options.token = "secret";
  const ManyDescriptors many;
  const auto server = Serve(options);
  const auto early = Reach(*server, "secret");
  const auto silent = ManySilent(*server, 1000);
  if (silent.empty()) GTEST_SKIP() << "this process may not have so many descriptors";
  EXPECT_TRUE(early->Set("a", "1").ok());
  std::vector<std::unique_ptr<Store>> members;
  for (int i = 0; i < 110; ++i) {
    members.push_back(Reach(*server, "secret"));
    ASSERT_NE(members.back(), nullptr);
  }
  for (const auto& member : members) EXPECT_EQ(*member->Get("a", absl::ZeroDuration()), "1");
  // Nor the process that serves: all but 64 had to go, the oldest first.
  for (size_t i = 0; i < silent.size() - 64; ++i) EXPECT_TRUE(silent[i]->AwaitEnd());
}

TEST(StoreHostileTest, MoreSilentConnectionsThanThereIsRoomForHinderNobody) {
  StoreServerOptions options = Patient();
  options.limits.connections = 20;
  const ManyDescriptors many;
  const auto server = Serve(options);
  const auto early = Reach(*server);
  const auto silent = ManySilent(*server, 300);
  if (silent.empty()) GTEST_SKIP() << "this process may not have so many descriptors";
  std::vector<std::unique_ptr<Store>> members;
  for (int i = 0; i < 19; ++i) members.push_back(Reach(*server));
  EXPECT_TRUE(early->Set("a", "1").ok());
  for (const auto& member : members) EXPECT_EQ(*member->Get("a", absl::ZeroDuration()), "1");
  EXPECT_TRUE(silent.front()->AwaitEnd());  // the oldest had to go
}

}  // namespace
}  // namespace sluice
