// One thread that passes on what comes.
#include "world/store/test_proxy.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

}  // namespace

TestProxy::TestProxy(int to_port)
    : to_port_(to_port), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in at = Loopback(0);
  EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&at), sizeof(at)), 0);
  EXPECT_EQ(listen(listener_, 100), 0);
  socklen_t bytes = sizeof(at);
  EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &bytes), 0);
  port_ = ntohs(at.sin_port);
  thread_ = std::thread([this] { Run(); });
}

TestProxy::~TestProxy() {
  stopped_ = true;
  thread_.join();
  EndAll();
  for (const int half : halves_) close(half);
  close(listener_);
}

std::string TestProxy::address() const { return absl::StrCat("tcp://127.0.0.1:", port_); }

void TestProxy::EndAll() {
  for (const auto& [client, server] : pairs_) {
    close(client);
    close(server);
  }
  pairs_.clear();
}

void TestProxy::CutAsTold() {
  if (cut_.exchange(false)) EndAll();
  const bool clients = cut_clients_.exchange(false);
  const bool servers = cut_servers_.exchange(false);
  if (!clients && !servers) return;
  for (const auto& [client, server] : pairs_) {
    close(clients ? client : server);
    halves_.push_back(clients ? server : client);
  }
  pairs_.clear();
}

void TestProxy::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in to = Loopback(to_port_);
  if (connect(server, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) {
    close(client);
    close(server);
    return;
  }
  pairs_.emplace_back(client, server);
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
    std::vector<pollfd> fds = {{listener_, POLLIN, 0}};
    for (const auto& [client, server] : pairs_) {
      fds.push_back({client, POLLIN, 0});
      fds.push_back({server, POLLIN, 0});
    }
    // Short, so that it notices what it is told.
    poll(fds.data(), frozen_ ? 0 : fds.size(), 10);
    if (frozen_) continue;
    for (size_t i = 0; i < pairs_.size();) {
      const auto [client, server] = pairs_[i];
      if (Pass(client, server) && Pass(server, client)) {
        ++i;
        continue;
      }
      close(client);
      close(server);
      pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if ((fds[0].revents & POLLIN) != 0) Accept();
  }
}

}  // namespace sluice
