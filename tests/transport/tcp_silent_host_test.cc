// A host that is gone in the middle of a handshake, with all that is on it.
//
// The hosts are ends of the loopback interface of a network that one thread has for itself. When
// the interface is taken down, nothing arrives any more, and nobody says so.
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "net/socket.h"
#include "transport/tcp/tcp_door.h"
#include "transport/tcp/tcp_handshake.h"
#include "transport/tcp/tcp_links.h"
#include "transport/tcp_ranks.h"

namespace sluice {
namespace {

using testing::HasSubstr;

void SetLoopback(bool up) {
  const Fd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  ASSERT_EQ(ioctl(fd.get(), SIOCGIFFLAGS, &request), 0);
  const int flags = up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP;
  request.ifr_flags = static_cast<short>(flags);
  ASSERT_EQ(ioctl(fd.get(), SIOCSIFFLAGS, &request), 0);
}

// Runs `body` on a thread that has a network for itself. Empty, or why that cannot be.
std::string InNetworkOfItsOwn(const std::function<void()>& body) {
  std::string why;
  std::thread thread([&] {
    if (unshare(CLONE_NEWNET) != 0) {
      why = std::string("no network of its own: ") + std::strerror(errno);
      return;
    }
    SetLoopback(true);
    body();
  });
  thread.join();
  return why;
}

// Who answers rank 0's call as far as a test wants, in place of rank 1.
class SlowDoor {
 public:
  SlowDoor() {
    auto listener = ListenTcp("127.0.0.1", 0);
    EXPECT_TRUE(listener.ok()) << listener.status();
    listener_ = std::move(listener->fd);
    address_ = listener->address;
  }
  const std::string& address() const { return address_; }
  bool TakesCall() {
    if (!call_.is_open()) call_ = Fd(accept(listener_.get(), nullptr, nullptr));
    return call_.is_open() && recv(call_.get(), &hello_, sizeof(hello_), MSG_DONTWAIT) ==
                                  static_cast<ssize_t>(sizeof(hello_));
  }
  void Challenge() {
    const TcpLinksOptions options = TcpTestOptions(1, 2);
    const auto challenge = MakeChallenge({1, 2, options.world, options.secret}, hello_);
    ASSERT_TRUE(challenge.ok()) << challenge.status();
    EXPECT_EQ(WriteSocket(call_.get(), &*challenge, sizeof(*challenge)),
              static_cast<ssize_t>(sizeof(*challenge)));
  }

 private:
  Fd listener_;
  Fd call_;
  TcpHello hello_ = {};
  std::string address_;
};

// `proof_is_under_way`: the caller has sent something that nobody takes. Otherwise it waits.
void CallAHostThatIsGone(bool proof_is_under_way) {
  SlowDoor door;
  TcpLinksOptions options = TcpTestOptions(0, 2);
  options.connect_timeout = absl::Seconds(3);
  options.silence = absl::Seconds(6);
  const auto links = TcpLinks::Listen(options);
  ASSERT_TRUE(links.ok()) << links.status();
  ASSERT_TRUE((*links)->SetPeers({(*links)->address(), door.address()}).ok());
  (*links)->Connect(1);
  ASSERT_TRUE(PollAllUntil([&] { (*links)->Progress(); }, [&] { return door.TakesCall(); }));
  if (proof_is_under_way) door.Challenge();
  SetLoopback(false);
  EXPECT_TRUE((*links)->CheckRanks().ok());
  EXPECT_TRUE(
      PollAllUntil([&] { (*links)->Progress(); }, [&] { return !(*links)->CheckRanks().ok(); }))
      << "the call waits for ever";
  const std::string message((*links)->CheckRanks().message());
  EXPECT_THAT(message, HasSubstr("rank 1 is lost"));
  EXPECT_THAT(message, HasSubstr("it cannot be reached"));
}

TEST(TcpSilentHostTest, ACallThatWaitsForAnAnswerEnds) {
  const std::string why = InNetworkOfItsOwn([] { CallAHostThatIsGone(false); });
  if (!why.empty()) GTEST_SKIP() << why;
}

TEST(TcpSilentHostTest, ACallWhoseProofIsNotTakenEnds) {
  const std::string why = InNetworkOfItsOwn([] { CallAHostThatIsGone(true); });
  if (!why.empty()) GTEST_SKIP() << why;
}

}  // namespace
}  // namespace sluice
