// Another user of the host at a store without a token: neither a client nor a server.
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/socket.h"
#include "sluice/store.h"
#include "world/store/raw_client.h"
#include "world/store/socket_owner.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uid_t kOther = 65534;

// Runs `body` as another user, in a child that ends with it, on what `serve` has returned. The
// child is there before `serve` starts threads: it would have their locks for ever.
void AsAnotherUser(const std::function<std::string()>& serve,
                   const std::function<void(const std::string&)>& body) {
  int pipes[2] = {};
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::string served(100, '\0');
    close(pipes[1]);
    const ssize_t bytes = read(pipes[0], served.data(), served.size());
    served.resize(static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
    EXPECT_EQ(setuid(kOther), 0);
    body(served);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  close(pipes[0]);
  const std::string served = serve();
  EXPECT_EQ(write(pipes[1], served.data(), served.size()), static_cast<ssize_t>(served.size()));
  close(pipes[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

absl::Status ConnectTo(const std::string& address, const std::string& token = "") {
  return ConnectStore(address, Limit(absl::Minutes(2), token)).status();
}

class OtherUserTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "another user takes root";
  }
};

TEST_P(OtherUserTest, IsNoClient) {
  std::unique_ptr<StoreServer> server;
  const auto serve = [&] {
    server = ServeAt(GetParam());
    return server->address();
  };
  AsAnotherUser(serve, [](const std::string& address) {
    const absl::Status status = ConnectTo(address);
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("the client is of user 65534"), HasSubstr("a token")));
  });
  EXPECT_TRUE(ConnectTo(server->address()).ok());
}

TEST_P(OtherUserTest, IsNoServer) {
  int pipes[2] = {};
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close(pipes[0]);
    if (setuid(kOther) != 0) _exit(1);
    const auto server = ServeAt(GetParam());
    const int port = server->port();
    static_cast<void>(write(pipes[1], &port, sizeof(port)));
    while (true) pause();
  }
  close(pipes[1]);
  int port = 0;
  EXPECT_EQ(read(pipes[0], &port, sizeof(port)), static_cast<ssize_t>(sizeof(port)));
  close(pipes[0]);
  const bool is_ipv6 = std::string(GetParam()).find(':') != std::string::npos;
  const absl::Status status = ConnectTo(is_ipv6 ? absl::StrCat("tcp://[::1]:", port)
                                                : absl::StrCat("tcp://127.0.0.1:", port));
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the store is of user 65534"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_P(OtherUserTest, ComesWithTheToken) {
  std::unique_ptr<StoreServer> server;
  const auto serve = [&] {
    server = ServeAt(GetParam(), 0, "token");
    return server->address();
  };
  AsAnotherUser(serve, [](const std::string& address) {
    const absl::Status status = ConnectTo(address, "token");
    EXPECT_TRUE(status.ok()) << status;
  });
}

TEST_P(OtherUserTest, HasStoresOfItsOwn) {
  AsAnotherUser([] { return std::string(); },
                [](const std::string&) {
                  const auto server = ServeAt(GetParam());
                  const absl::Status status = ConnectTo(server->address());
                  EXPECT_TRUE(status.ok()) << status;
                });
}

INSTANTIATE_TEST_SUITE_P(Addresses, OtherUserTest, testing::Values("127.0.0.1", "::1"),
                         [](const auto& test) {
                           return std::string(test.param) == "::1" ? "Ipv6" : "Ipv4";
                         });

TEST(OwnListenersTest, HaveTheStoresOfThisProcess) {
  for (const std::string bind : {"127.0.0.1", "::1"}) {
    const auto server = ServeAt(bind);
    bool is_there = false;
    for (const SocketAddress& at : OwnListeners()) {
      is_there = is_there || (at.Host() == bind && at.port() == server->port());
    }
    EXPECT_TRUE(is_there) << server->address();
  }
}

TEST(PeerUserTest, ASocketThatNobodyHasIsNobodys) {
  const char* call = nullptr;
  const Fd listener = ListenAt(*MakeAddress("127.0.0.1", 0), 1, /*again=*/false, &call);
  ASSERT_TRUE(listener.is_open());
  const SocketAddress bound = AddressOfSocket(listener.get());
  const Fd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(client.get(), bound.get(), bound.length), 0);
  absl::Status status = CheckPeerUser(client.get(), "store");
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("there is no token"));
  Fd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  status = CheckPeerUser(client.get(), "store");
  EXPECT_TRUE(status.ok()) << status;
  // The system shows it as root's then, whoever has closed it.
  accepted.Close();
  status = CheckPeerUser(client.get(), "store");
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

}  // namespace
}  // namespace sluice
