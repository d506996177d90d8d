// A world whose network has IPv6 alone, in a network namespace of its own.
#include <linux/ipv6.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "net/address.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "world/members.h"
#include "world/store/token_store.h"

namespace sluice::world_test {
namespace {

constexpr int kNoNamespace = 77;
constexpr char kHost[] = "fd00::1";
constexpr char kOther[] = "fd00::2";

bool AddAddress(const char* host) {
  const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const SocketAddress address = *MakeAddress(host, 0);
  in6_ifreq request = {};
  request.ifr6_addr = reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr;
  request.ifr6_prefixlen = 128;
  request.ifr6_ifindex = static_cast<int>(if_nametoindex("lo"));
  const bool added = ioctl(fd, SIOCSIFADDR, &request) == 0;
  // The kernel lets nobody have the address before a worker of its own has looked at it.
  while (added && bind(fd, address.get(), address.length) != 0 && errno == EADDRNOTAVAIL) {
    std::this_thread::yield();
  }
  close(fd);
  return added;
}

// The loopback interface has two addresses of IPv6 and none of IPv4.
bool MakeNetwork() {
  if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");  // NOLINT: it fits
  request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK;
  bool made = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  request = {};
  std::strcpy(request.ifr_name, "lo");   // NOLINT: it fits
  request.ifr_addr.sa_family = AF_INET;  // 0.0.0.0
  made = ioctl(fd, SIOCSIFADDR, &request) == 0 && made;
  close(fd);
  return made && AddAddress(kHost) && AddAddress(kOther);
}

// Runs `body` in a child that has such a network.
void WithIpv6Alone(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    if (!MakeNetwork()) _exit(kNoNamespace);
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoNamespace) {
    GTEST_SKIP() << "no network namespace with IPv6 can be made";
  }
  EXPECT_EQ(status, 0);
}

std::vector<WorldOptions> MeetAt(const std::string& store, const std::string& bind) {
  std::vector<WorldOptions> options = AllOptions(nullptr, {{"member", 2}});
  for (WorldOptions& each : options) {
    each.store = store;
    each.token = "token";
    each.bind = bind;
    each.store_timeout = absl::Seconds(10);
  }
  return options;
}

TEST(WorldIpv6Test, MeetsAtAnAddress) {
  WithIpv6Alone([] { ExpectGathers(MakeFabrics(JoinAll(MeetAt("tcp://[fd00::1]:29600", "")))); });
}

TEST(WorldIpv6Test, ListensAtTheAddressesOfTheOptionsAlone) {
  WithIpv6Alone([] {
    const auto worlds = JoinAll(MeetAt("tcp://[fd00::1]:29600", "[fd00::2]"));
    ExpectGathers(MakeFabrics(worlds));
    StoreOptions options;
    options.token = "token";
    options.timeout = absl::Milliseconds(200);
    EXPECT_TRUE(ConnectStore("tcp://[fd00::1]:29600", options).ok());
    EXPECT_FALSE(ConnectStore("tcp://[fd00::2]:29600", options).ok());
    EXPECT_FALSE(ConnectStore("tcp://[::1]:29600", options).ok());
  });
}

// A connection to each of them knows this host's address.
TEST(WorldIpv6Test, AllInterfacesAreThoseOfIpv6Too) {
  WithIpv6Alone([] {
    StoreServerOptions server;
    server.bind = "";
    server.token = "token";
    const auto serving = StoreServer::Listen(server);
    ASSERT_TRUE(serving.ok()) << serving.status();
    StoreOptions options;
    options.token = "token";
    for (const std::string host : {"::1", kHost, kOther}) {
      const auto store =
          ConnectStore("tcp://[" + host + "]:" + std::to_string((*serving)->port()), options);
      ASSERT_TRUE(store.ok()) << store.status();
      const auto* const known = dynamic_cast<const TokenStore*>(store->get());
      ASSERT_NE(known, nullptr);
      EXPECT_EQ(known->own_host(), host == "::1" ? "" : host);
    }
    EXPECT_TRUE(ConnectStore((*serving)->address(), options).ok()) << (*serving)->address();
  });
}

}  // namespace
}  // namespace sluice::world_test
