// Plain system calls, which wait.
#include "world/store/raw_client.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "net/socket.h"
#include "world/store/store_greeting.h"

namespace sluice {

RawClient::RawClient(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const SocketAddress to = *MakeAddress("127.0.0.1", port);
  // A test that waits for longer has failed.
  const timeval limit = {120, 0};
  setsockopt(fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(fd(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  connected_ = connect(fd(), to.get(), to.length) == 0;
}

bool RawClient::Send(absl::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

size_t RawClient::SendSome(absl::string_view bytes) const {
  const ssize_t sent = send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent > 0 ? static_cast<size_t>(sent) : 0;
}

std::string RawClient::NextFrame() {
  while (true) {
    const auto frame = inbox_.Next();
    if (!frame.ok()) {
      ADD_FAILURE() << frame.status();
      return {};
    }
    if (!frame->empty()) return std::string(*frame);
    std::array<char, 65536> room;
    const ssize_t got = recv(fd(), room.data(), room.size(), 0);
    if (got <= 0) return {};
    inbox_.Append({room.data(), static_cast<size_t>(got)});
  }
}

absl::Status RawClient::AwaitError() {
  while (true) {
    const std::string frame = NextFrame();
    if (frame.empty()) return absl::OkStatus();
    if (frame[0] == static_cast<char>(StoreFrame::kError)) return ParseError(frame);
  }
}

bool RawClient::AwaitEnd() {
  std::array<char, 65536> room;
  ssize_t got = 0;
  do {
    got = recv(fd(), room.data(), room.size(), 0);
  } while (got > 0);
  return got == 0 || errno == ECONNRESET;
}

bool RawClient::Greet(const std::string& token) {
  StoreSide side;
  side.token = token;
  ClientGreeting greeting(&side);
  std::string out = *greeting.Hello();
  while (true) {
    if (!Send(std::exchange(out, {}))) return false;
    const auto done = greeting.Take(NextFrame(), &out);
    if (!done.ok()) return false;
    if (*done) return true;
  }
}

std::string Request(StoreCall call, absl::string_view key, absl::string_view value, int64_t number,
                    uint32_t id) {
  StoreRequest request;
  request.id = id;
  request.call = call;
  request.key = key;
  request.value = value;
  request.number = number;
  return EncodeRequest(request);
}

StoreServerOptions Patient() {
  StoreServerOptions options;
  options.limits.hello = absl::Hours(1);
  options.limits.silence = absl::Hours(1);
  return options;
}

StoreOptions Limit(absl::Duration timeout, const std::string& token) {
  StoreOptions options;
  options.timeout = timeout;
  options.token = token;
  return options;
}

std::unique_ptr<StoreServer> Serve(const StoreServerOptions& options) {
  auto server = StoreServer::Listen(options);
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

std::unique_ptr<StoreServer> ServeAt(const std::string& bind, int port, const std::string& token) {
  StoreServerOptions options;
  options.bind = bind;
  options.port = port;
  options.token = token;
  return Serve(options);
}

std::unique_ptr<Store> Reach(const StoreServer& server, const std::string& token,
                             absl::Duration timeout) {
  auto store = ConnectStore(absl::StrCat("tcp://127.0.0.1:", server.port()), Limit(timeout, token));
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

bool Serves(const StoreServer& server, const std::string& token) {
  const auto store = Reach(server, token);
  return store != nullptr && store->Add("served", 1).ok();
}

}  // namespace sluice
