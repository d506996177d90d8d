// The life of a server's thread: what it waits for, who comes, and who goes.
#include "world/store/store_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "net/hmac.h"
#include "tensor/error_text.h"
#include "world/store/store_check.h"
#include "world/store/store_clock.h"
#include "world/store/store_connect.h"

namespace sluice {
namespace {

constexpr uint64_t kListenerId = 0;
constexpr uint64_t kWakeId = 1;
// So many may be here that have not proved themselves: descriptors are the whole process's.
constexpr size_t kWaitingRoom = 64;
// Far fewer than that, so that those who are quick have proved themselves before their turn to go.
constexpr int kAcceptsAtOnce = 16;
constexpr int64_t kAcceptAgainNs = 100'000'000;

bool WatchFd(int epoll_fd, int fd, uint64_t id, uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ||
         (errno == EEXIST && epoll_ctl(epoll_fd, EPOLL_CTL_MOD, fd, &event) == 0);
}

}  // namespace

StoreLoop::StoreLoop(Fd listener, const std::string& token, const StoreLimits& limits,
                     std::string instance)
    : limits_(limits),
      side_{token},
      instance_(std::move(instance)),
      listener_(std::move(listener)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      desk_(limits),
      last_id_(kWakeId),
      expire_ns_(kStoreNever),
      accept_again_ns_(kStoreNever) {}

absl::StatusOr<std::unique_ptr<StoreLoop>> StoreLoop::Make(Fd listener, const std::string& token,
                                                           const StoreLimits& limits) {
  SLUICE_ASSIGN_OR_RETURN(auto instance, MakeRandom(kStoreInstanceBytes));
  std::unique_ptr<StoreLoop> loop(
      new StoreLoop(std::move(listener), token, limits, std::move(instance)));
  if (!loop->wake_.is_open() || !loop->epoll_.is_open() ||
      !WatchFd(loop->epoll_.get(), loop->wake_.get(), kWakeId, EPOLLIN) ||
      !WatchFd(loop->epoll_.get(), loop->listener_.get(), kListenerId, EPOLLIN)) {
    return absl::ErrnoToStatus(errno, "the store gets no epoll from the system");
  }
  return loop;
}

void StoreLoop::Stop() { static_cast<void>(eventfd_write(wake_.get(), 1)); }

void StoreLoop::Run() {
  std::array<epoll_event, 256> events;
  while (true) {
    const int64_t looked_ns = MonotonicNs();
    const int64_t next_ns = std::min({expire_ns_, desk_.next_ns(), accept_again_ns_});
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                 StoreWaitMs(looked_ns, next_ns));
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.u64 == kWakeId) return;
      if (event.data.u64 == kListenerId) {
        Accept();
      } else {
        Attend(event.data.u64, event.events);
      }
    }
    // If there were that many, some may not have been looked at.
    if (count < static_cast<int>(events.size())) Expire(looked_ns);
    AnswerDue();
    if (MonotonicNs() >= accept_again_ns_) {
      accept_again_ns_ = kStoreNever;
      WatchFd(epoll_.get(), listener_.get(), kListenerId, EPOLLIN);
    }
  }
}

void StoreLoop::Accept() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    Fd accepted(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!accepted.is_open()) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      if (errno == EINTR || errno == ECONNABORTED) continue;
      const bool full = errno == EMFILE || errno == ENFILE;
      if (full && RemoveUnproven()) continue;
      // Nothing can be done now, and the listener would wake this thread again at once.
      WatchFd(epoll_.get(), listener_.get(), kListenerId, 0);
      accept_again_ns_ = MonotonicNs() + kAcceptAgainNs;
      return;
    }
    if (clients_.size() >= static_cast<size_t>(members_) + kWaitingRoom) RemoveUnproven();
    PrepareStoreConnection(accepted.get());
    const uint64_t id = ++last_id_;
    const auto [at, made] =
        clients_.emplace(std::piecewise_construct, std::forward_as_tuple(id),
                         std::forward_as_tuple(std::move(accepted), &side_, instance_));
    StoreClient& client = at->second;
    client.heard_ns = client.wrote_ns = MonotonicNs();
    client.end_ns = client.heard_ns + StoreWaitNs(limits_.hello);
    ExpectAt(client.end_ns);
    WatchFor(id, &client);
  }
}

bool StoreLoop::RemoveUnproven() {
  const auto at = std::find_if(clients_.begin(), clients_.end(), [](const auto& client) {
    return client.second.stage != StoreClient::Stage::kMember;
  });
  if (at == clients_.end()) return false;
  Remove(at->first);
  return true;
}

void StoreLoop::WatchFor(uint64_t id, StoreClient* client) {
  uint32_t wanted = EPOLLRDHUP;
  if (HasRoom(*client)) wanted |= EPOLLIN;
  if (client->unsent() > 0) wanted |= EPOLLOUT;
  if (client->watched == wanted) return;
  client->watched = wanted;
  WatchFd(epoll_.get(), client->socket.get(), id, wanted);
}

void StoreLoop::PartFrom(uint64_t id, StoreClient* client, const absl::Status& why) {
  if (client->stage == StoreClient::Stage::kLeaving) return;
  if (client->stage == StoreClient::Stage::kMember) {
    --members_;
    desk_.Forget(id);
  }
  client->stage = StoreClient::Stage::kLeaving;
  client->inbox = StoreInbox(kMaxGreetingBytes);
  queued_ -= client->outbox.DropUnbegun();
  client->wrote_ns = MonotonicNs();
  client->end_ns = client->wrote_ns + StoreWaitNs(limits_.hello);
  ExpectAt(client->end_ns);
  Queue(client, EncodeError(why));
  static_cast<void>(Flush(id, client));
}

void StoreLoop::Remove(uint64_t id) {
  const auto at = clients_.find(id);
  if (at == clients_.end()) return;
  StoreClient& client = at->second;
  if (client.stage == StoreClient::Stage::kMember) {
    --members_;
    desk_.Forget(id);
  }
  queued_ -= client.unsent();
  // A child that was forked just now may have a copy, which would stay in the set.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, client.socket.get(), nullptr);
  clients_.erase(at);
}

int64_t StoreLoop::EndOf(uint64_t id, const StoreClient& client) const {
  int64_t end_ns = client.end_ns;
  if (client.stage == StoreClient::Stage::kMember) {
    const int64_t lease_ms = desk_.ShortestLeaseMs(id);
    end_ns =
        client.heard_ns + (lease_ms > 0 ? lease_ms * kStoreNsPerMs : StoreWaitNs(limits_.silence));
  }
  // Answers that it does not take must not pile up.
  if (client.unsent() > 0) end_ns = std::min(end_ns, client.wrote_ns + StoreWaitNs(limits_.hello));
  return end_ns;
}

void StoreLoop::ExpectAt(int64_t time_ns) { expire_ns_ = std::min(expire_ns_, time_ns); }

void StoreLoop::Expire(int64_t looked_ns) {
  if (looked_ns < expire_ns_) return;
  expire_ns_ = kStoreNever;
  std::vector<uint64_t> over;
  for (const auto& [id, client] : clients_) {
    const int64_t end_ns = EndOf(id, client);
    if (end_ns < looked_ns) {
      over.push_back(id);
    } else {
      ExpectAt(end_ns + 1);
    }
  }
  for (const uint64_t id : over) {
    StoreClient& client = clients_.at(id);
    if (client.stage != StoreClient::Stage::kMember) {
      Remove(id);
      continue;
    }
    if (client.unsent() > 0) {
      PartFrom(id, &client,
               absl::ResourceExhaustedError(
                   absl::StrCat("this client has taken nothing of its answers for ",
                                DurationText(limits_.hello), ", and ", client.unsent(),
                                " bytes lie here: its keys are removed, and others see it gone")));
      continue;
    }
    const int64_t silent_ns = EndOf(id, client) - client.heard_ns;
    PartFrom(
        id, &client,
        absl::AbortedError(absl::StrCat(
            "this client was silent for longer than ", DurationText(absl::Nanoseconds(silent_ns)),
            ", the time of its lease: its keys are removed, and others see it gone")));
  }
}

}  // namespace sluice
