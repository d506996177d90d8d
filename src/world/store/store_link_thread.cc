// The thread of a link: it connects anew, sends, reads, and says that it is alive.
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "net/socket.h"
#include "tensor/error_text.h"
#include "world/store/store_check.h"
#include "world/store/store_clock.h"
#include "world/store/store_link.h"

namespace sluice {
namespace {

constexpr int64_t kReconnectNs = 5'000'000'000;
constexpr int64_t kLeastSilenceNs = 1'000'000'000;
constexpr int64_t kPingNs = 1'000'000'000;
// So often does a server hear of its client within the shortest lease.
constexpr int64_t kPingsPerLease = 5;

int64_t PingEveryNs(int64_t silence_ns) { return std::min(kPingNs, silence_ns / kPingsPerLease); }

}  // namespace

StoreLink::Silence StoreLink::AllowedSilence() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (leases_ms_.empty()) return {std::max(StoreWaitNs(timeout_), kLeastSilenceNs), heard_ns_};
  return {*leases_ms_.begin() * kStoreNsPerMs, std::max(heard_ns_, tightened_ns_)};
}

void StoreLink::Run() {
  while (!Stopped()) {
    if (connection_.socket.is_open()) {
      Attend();
      continue;
    }
    bool wanted = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      wanted = !requests_.empty();
    }
    if (wanted) {
      Reconnect();
      continue;
    }
    pollfd woken = {wake_.get(), POLLIN, 0};
    static_cast<void>(poll(&woken, 1, -1));
    eventfd_t count = 0;
    static_cast<void>(eventfd_read(wake_.get(), &count));
  }
  Break(absl::UnavailableError("the store was closed here"));
}

void StoreLink::Reconnect() {
  const int64_t end_ns = MonotonicNs() + std::min(StoreWaitNs(timeout_), kReconnectNs);
  auto connection = ConnectOnce(address_, side_, end_ns, stop_.get());
  if (!connection.ok()) {
    Break(connection.status());
    return;
  }
  if (connection->instance != connection_.instance) {
    const std::string why =
        absl::StrCat("the store at ", address_.Text(),
                     " is another one than before: it was started anew, and its keys are lost");
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      lost_ = absl::FailedPreconditionError(why);
    }
    Break(absl::FailedPreconditionError(why));
    return;
  }
  connection_ = *std::move(connection);
  heard_ns_ = MonotonicNs();
  const std::lock_guard<std::mutex> lock(mutex_);
  fate_ = std::make_shared<StoreFate>();
}

void StoreLink::Attend() {
  const Silence silence = AllowedSilence();
  const int64_t every_ns = PingEveryNs(silence.limit_ns);
  SendRequests(MonotonicNs());
  if (!connection_.socket.is_open()) return;
  const short writes = sent_ < unsent_.size() ? POLLOUT : 0;
  pollfd fds[] = {{connection_.socket.get(), static_cast<short>(POLLIN | writes), 0},
                  {wake_.get(), POLLIN, 0}};
  // A ping goes out after what is being sent.
  const int64_t ping_ns = writes != 0 ? kStoreNever : pinged_ns_ + every_ns;
  const int64_t next_ns = std::min(ping_ns, silence.since_ns + silence.limit_ns + kStoreNsPerMs);
  static_cast<void>(poll(fds, 2, StoreWaitMs(MonotonicNs(), next_ns)));
  if ((fds[1].revents & POLLIN) != 0) {
    eventfd_t count = 0;
    static_cast<void>(eventfd_read(wake_.get(), &count));
  }
  // Before it reads: a process that was stopped for long finds what has come meanwhile.
  const int64_t asked_ns = MonotonicNs();
  if (absl::Status status = ReadReplies(); !status.ok()) {
    Break(status);
    return;
  }
  if (asked_ns - std::max(heard_ns_, silence.since_ns) > silence.limit_ns) {
    const std::string limit = DurationText(absl::Nanoseconds(silence.limit_ns));
    Break(absl::UnavailableError(
        absl::StrCat("the store at ", address_.Text(), " was silent for ", limit)));
  }
}

absl::Status StoreLink::ReadReplies() {
  std::string bytes;
  const SocketIo io = ReadSome(connection_.socket.get(), &bytes);
  if (io.bytes > 0) heard_ns_ = MonotonicNs();
  inbox_.Append(bytes);
  while (true) {
    const auto frame = inbox_.Next();
    absl::Status status = frame.status();
    if (status.ok()) {
      if (frame->empty()) break;
      status = TakeFrame(*frame);
    }
    if (!status.ok()) {
      return Annotate(status, "the store at ", address_.Text());
    }
  }
  if (!io.ended) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the store at ", address_.Text(), " has closed the connection"));
}

absl::Status StoreLink::TakeFrame(absl::string_view frame) {
  if (frame[0] == static_cast<char>(StoreFrame::kError)) return ParseError(frame);
  SLUICE_ASSIGN_OR_RETURN(auto reply, ParseReply(frame));
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = calls_.find(reply.id);
  if (at == calls_.end()) return absl::OkStatus();  // nobody waits for it any more
  at->second->answer = {std::move(reply), fate_};
  at->second->done = true;
  calls_.erase(at);
  changed_.notify_all();
  return absl::OkStatus();
}

void StoreLink::SendRequests(int64_t now_ns) {
  const int64_t every_ns = PingEveryNs(AllowedSilence().limit_ns);
  if (sent_ == unsent_.size()) {
    unsent_.clear();
    sent_ = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      unsent_.swap(requests_);
    }
    if (now_ns - pinged_ns_ >= every_ns) {
      StoreRequest ping;
      unsent_ += EncodeRequest(ping);
      pinged_ns_ = now_ns;
    }
  }
  if (sent_ == unsent_.size()) return;
  const SocketIo io = WriteSome(connection_.socket.get(), absl::string_view(unsent_).substr(sent_));
  sent_ += io.bytes;
  if (!io.ended) return;
  // The server's last words are worth more than the news that the server is gone.
  absl::Status status = ReadReplies();
  if (status.ok()) {
    status = absl::UnavailableError(
        absl::StrCat("the store at ", address_.Text(), " has closed the connection"));
  }
  Break(status);
}

}  // namespace sluice
