// Strangers at the port of a rank that nobody polls.
#include "world/door_keeper.h"

#include <list>

#include "gtest/gtest.h"
#include "transport/tcp/tcp_handshake.h"
#include "transport/tcp_ranks.h"
#include "transport/tcp_stranger.h"

namespace sluice {
namespace {

constexpr absl::Duration kIdle = absl::Milliseconds(20);

class DoorKeeperTest : public testing::Test {
 protected:
  void Open(absl::Duration handshake_timeout) {
    links_ = MakeTcpLinks(2, [handshake_timeout](TcpLinksOptions* options) {
      options->handshake_timeout = handshake_timeout;
    });
    auto keeper = DoorKeeper::Make(links_[0], kIdle);
    EXPECT_TRUE(keeper.ok()) << keeper.status();
    keeper_ = *std::move(keeper);
  }

  std::vector<std::shared_ptr<TcpLinks>> links_;
  std::unique_ptr<DoorKeeper> keeper_;
};

TEST_F(DoorKeeperTest, ClosesConnectionsOfStrangers) {
  Open(absl::Milliseconds(100));
  std::list<TcpStranger> strangers;
  for (int i = 0; i < 3; ++i) strangers.emplace_back(links_[0]->address());
  strangers.back().Send("GET / HTTP/1.1", 14);
  const TcpHello half = {};
  strangers.front().Send(&half, sizeof(half) - 1);
  for (TcpStranger& stranger : strangers) {
    EXPECT_TRUE(PollAllUntil([] {}, [&] { return stranger.IsClosed(); }));
  }
  // And so again, after it has slept.
  TcpStranger another(links_[0]->address());
  EXPECT_TRUE(PollAllUntil([] {}, [&] { return another.IsClosed(); }));
}

TEST_F(DoorKeeperTest, LetsRanksIn) {
  Open(absl::Seconds(60));
  links_[1]->Connect(0);
  EXPECT_TRUE(
      PollAllUntil([&] { links_[1]->Progress(); }, [&] { return links_[1]->IsConnected(0); }));
  ConnectAll(links_);
  EXPECT_TRUE(links_[0]->IsConnected(1));
}

}  // namespace
}  // namespace sluice
