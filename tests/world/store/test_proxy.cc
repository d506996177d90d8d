// One thread that passes on what comes.
#include "world/store/test_proxy.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "net/socket.h"

namespace sluice {
namespace {

Fd Listen() {
  const char* call = nullptr;
  return ListenAt(*MakeAddress("127.0.0.1", 0), 100, /*again=*/false, &call);
}

}  // namespace

TestProxy::TestProxy(int to_port) : to_port_(to_port), listener_(Listen()) {
  EXPECT_TRUE(listener_.is_open());
  thread_ = std::thread([this] { Run(); });
}

TestProxy::~TestProxy() {
  stopped_ = true;
  thread_.join();
}

std::string TestProxy::address() const {
  return absl::StrCat("tcp://", AddressOfSocket(listener_.get()).Text());
}

void TestProxy::CutAsTold() {
  if (cut_.exchange(false)) pairs_.clear();
  const bool clients = cut_clients_.exchange(false);
  const bool servers = cut_servers_.exchange(false);
  if (!clients && !servers) return;
  for (auto& [client, server] : pairs_) halves_.push_back(std::move(clients ? server : client));
  pairs_.clear();
}

void TestProxy::Accept() {
  Fd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  Fd server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress to = *MakeAddress("127.0.0.1", to_port_);
  if (connect(server.get(), to.get(), to.length) != 0) return;
  pairs_.emplace_back(std::move(client), std::move(server));
}

bool TestProxy::Pass(int from, int to) {
  std::array<char, 65536> room;
  const ssize_t got = recv(from, room.data(), room.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN;
  return got > 0 && send(to, room.data(), static_cast<size_t>(got), MSG_NOSIGNAL) == got;
}

void TestProxy::Run() {
  while (!stopped_) {
    CutAsTold();
    std::vector<pollfd> fds = {{listener_.get(), POLLIN, 0}};
    for (const auto& [client, server] : pairs_) {
      fds.push_back({client.get(), POLLIN, 0});
      fds.push_back({server.get(), POLLIN, 0});
    }
    // Short, so that it notices what it is told.
    poll(fds.data(), frozen_ ? 0 : fds.size(), 10);
    if (frozen_) continue;
    std::erase_if(pairs_, [](const Pair& pair) {
      const int client = pair.first.get();
      const int server = pair.second.get();
      return !Pass(client, server) || !Pass(server, client);
    });
    if ((fds[0].revents & POLLIN) != 0) Accept();
  }
}

}  // namespace sluice
