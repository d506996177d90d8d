// Connecting within a time, and retrying.
#include "world/store/store_connect.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "net/socket.h"
#include "tensor/error_text.h"
#include "world/store/socket_owner.h"
#include "world/store/store_clock.h"
#include "world/store/store_wire.h"

namespace sluice {
namespace {

constexpr int64_t kTryAgainNs = 50'000'000;
// A host that does not answer at all must not use up the time of the others.
constexpr int64_t kOneTryNs = 5'000'000'000;

constexpr absl::string_view kSilent =
    "something listens there, and does not speak as a store does. If it is another program, end it "
    "or give the store another port";
constexpr absl::string_view kNoStore =
    "something listens there, and has closed the connection before it spoke as a store does. If it "
    "is another program, end it or give the store another port";

constexpr absl::string_view kTimeIsOver = "the time is over";

absl::Status NoAnswer(const StoreAddress& address, absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("the store at ", address.Text(), " does not answer: ", why));
}

// Waits for `events` of the socket; `late`: why they have not come in time.
absl::Status AwaitSocket(const StoreAddress& address, int fd, short events, int64_t end_ns,
                         int stop_fd, absl::string_view late) {
  while (true) {
    const int64_t now_ns = MonotonicNs();
    if (now_ns >= end_ns) return NoAnswer(address, late);
    pollfd fds[] = {{fd, events, 0}, {stop_fd, POLLIN, 0}};
    const int ready = poll(fds, stop_fd < 0 ? 1 : 2, StoreWaitMs(now_ns, end_ns));
    if (stop_fd >= 0 && (fds[1].revents & POLLIN) != 0) return NoAnswer(address, "given up");
    if (ready > 0 && fds[0].revents != 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return NoAnswer(address, "poll fails");
  }
}

absl::StatusOr<Fd> ConnectSocket(const StoreAddress& address, const SocketAddress& to,
                                 int64_t end_ns, int stop_fd) {
  const char* call = nullptr;
  Fd made = ConnectTo(to, &call);
  int error = made.is_open() ? 0 : errno;
  if (error == 0) {
    SLUICE_RETURN_IF_ERROR(AwaitSocket(address, made.get(), POLLOUT, end_ns, stop_fd, kTimeIsOver));
    error = ConnectOutcome(made.get());
    call = "connect";
  }
  if (error != 0) {
    const std::string what = call == absl::string_view("connect") ? to.Text() : call;
    return NoAnswer(address, absl::ErrnoToStatus(error, what).message());
  }
  // A port that nobody listens at may be chosen for this very end, and the kernel connects it to
  // itself.
  const SocketAddress own = AddressOfSocket(made.get());
  if (own.length == 0 || own.Text() == to.Text()) return NoAnswer(address, "nobody listens there");
  PrepareStoreConnection(made.get());
  return made;
}

absl::Status SendAll(const StoreAddress& address, int fd, absl::string_view rest, int64_t end_ns,
                     int stop_fd) {
  while (!rest.empty()) {
    const SocketIo io = WriteSome(fd, rest);
    // The server's last words are read afterwards.
    if (io.ended) return absl::OkStatus();
    rest.remove_prefix(io.bytes);
    if (rest.empty()) break;
    SLUICE_RETURN_IF_ERROR(AwaitSocket(address, fd, POLLOUT, end_ns, stop_fd, kSilent));
  }
  return absl::OkStatus();
}

absl::StatusOr<StoreConnection> Greet(const StoreAddress& address, const StoreSide& side,
                                      Fd connected, int64_t end_ns, int stop_fd) {
  ClientGreeting greeting(&side);
  SLUICE_ASSIGN_OR_RETURN(auto hello, greeting.Hello());
  std::string out = std::move(hello);
  StoreInbox inbox(kMaxGreetingBytes);
  // An error's text may be longer than a greeting.
  inbox.set_max_frame_bytes(kMaxGreetingBytes + 1024);
  const std::string store = absl::StrCat("the store at ", address.Text());
  bool ended = false;
  bool has_spoken = false;
  while (true) {
    SLUICE_RETURN_IF_ERROR(
        SendAll(address, connected.get(), std::exchange(out, {}), end_ns, stop_fd));
    while (true) {
      SLUICE_ASSIGN_OR_RETURN(const auto frame, Annotate(inbox.Next(), store));
      if (frame.empty()) break;
      SLUICE_ASSIGN_OR_RETURN(const bool done, Annotate(greeting.Take(frame, &out), store));
      if (!done) continue;
      if (side.token.empty()) {
        SLUICE_RETURN_IF_ERROR(Annotate(CheckPeerUser(connected.get(), "store"), store));
      }
      return StoreConnection{std::move(connected), greeting.instance()};
    }
    if (!out.empty()) continue;
    if (ended) return NoAnswer(address, has_spoken ? "it has closed the connection" : kNoStore);
    SLUICE_RETURN_IF_ERROR(AwaitSocket(address, connected.get(), POLLIN, end_ns, stop_fd, kSilent));
    std::string bytes;
    ended = ReadSome(connected.get(), &bytes).ended;
    has_spoken = has_spoken || !bytes.empty();
    inbox.Append(bytes);
  }
}

}  // namespace

void PrepareStoreConnection(int fd) {
  constexpr int kSystemBytes = 256 << 10;
  PrepareConnection(fd, absl::Minutes(1));
  SetSocketOption(fd, SOL_SOCKET, SO_SNDBUF, kSystemBytes);
  SetSocketOption(fd, SOL_SOCKET, SO_RCVBUF, kSystemBytes);
}

absl::StatusOr<StoreConnection> ConnectOnce(const StoreAddress& address, const StoreSide& side,
                                            int64_t end_ns, int stop_fd) {
  SLUICE_ASSIGN_OR_RETURN(const auto resolved, ResolveStoreHost(address.host, address.port));
  absl::Status last = NoAnswer(address, "its host has no address");
  for (const SocketAddress& to : resolved) {
    if (side.token.empty() && !to.IsLoopback()) {
      last = absl::FailedPreconditionError(
          absl::StrCat("the store at ", address.Text(),
                       " is beyond this host's loopback interface, which takes a token"));
      continue;
    }
    const int64_t try_end_ns = std::min(end_ns, MonotonicNs() + kOneTryNs);
    auto connected = ConnectSocket(address, to, try_end_ns, stop_fd);
    if (!connected.ok()) {
      last = connected.status();
      continue;
    }
    auto greeted = Greet(address, side, *std::move(connected), try_end_ns, stop_fd);
    if (greeted.ok() || !absl::IsUnavailable(greeted.status())) return greeted;
    last = greeted.status();
  }
  return last;
}

absl::StatusOr<StoreConnection> ConnectInTime(const StoreAddress& address, const StoreSide& side,
                                              int64_t end_ns) {
  absl::Status reason;  // of a try that did not end for want of time alone
  while (true) {
    auto connection = ConnectOnce(address, side, end_ns, -1);
    const bool may_come =
        absl::IsUnavailable(connection.status()) || absl::IsResourceExhausted(connection.status());
    if (!may_come) return connection;
    if (!absl::StrContains(connection.status().message(), kTimeIsOver)) {
      reason = connection.status();
    } else if (!reason.ok()) {
      connection = reason;
    }
    if (end_ns - MonotonicNs() <= kTryAgainNs) return connection;
    std::this_thread::sleep_for(std::chrono::nanoseconds(kTryAgainNs));
  }
}

}  // namespace sluice
