// Reading what clients send, and sending what they get.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "net/socket.h"
#include "tensor/error_text.h"
#include "world/store/socket_owner.h"
#include "world/store/store_clock.h"
#include "world/store/store_loop.h"

namespace sluice {
namespace {

// So much may lie unsent for all clients together. Then long answers wait, and whoever has answers
// to take is not listened to.
constexpr size_t kMaxQueuedBytes = size_t{64} << 20;

}  // namespace

bool StoreLoop::HasRoom(const StoreClient& client) const {
  if (client.outbox.empty()) return true;
  return client.unsent() < StoreClient::kRoomBytes && queued_ < kMaxQueuedBytes;
}

void StoreLoop::Attend(uint64_t id, uint32_t events) {
  const auto at = clients_.find(id);
  if (at == clients_.end()) return;
  StoreClient* const client = &at->second;
  if ((events & EPOLLOUT) != 0 && !Flush(id, client)) return;
  // Replies have left: there may be room for what came before.
  if (!TakeFrames(id, client)) return;
  if ((events & EPOLLIN) != 0 && HasRoom(*client)) {
    Read(id, client);
    return;
  }
  // It is gone, and nobody reads what it said last: it does not take replies.
  if ((events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0 && (events & EPOLLIN) == 0) {
    Remove(id);
    return;
  }
  WatchFor(id, client);
}

void StoreLoop::Read(uint64_t id, StoreClient* client) {
  std::string bytes;
  const bool is_stranger = client->stage == StoreClient::Stage::kGreeting;
  const SocketIo io = is_stranger
                          ? ReadSome(client->socket.get(), &bytes, StoreClient::kStrangerBytes)
                          : ReadSome(client->socket.get(), &bytes);
  if (client->stage != StoreClient::Stage::kLeaving) {
    client->inbox.Append(bytes);
    if (!TakeFrames(id, client)) return;
  }
  if (io.ended) {
    Remove(id);
    return;
  }
  WatchFor(id, client);
}

bool StoreLoop::TakeFrames(uint64_t id, StoreClient* client) {
  while (client->stage != StoreClient::Stage::kLeaving && HasRoom(*client)) {
    const auto frame = client->inbox.Next();
    if (frame.ok() && frame->empty()) return true;
    const absl::Status status = frame.ok() ? TakeFrame(id, client, *frame) : frame.status();
    if (!status.ok()) {
      PartFrom(id, client, status);
    } else if (!Flush(id, client)) {
      return false;
    }
    if (clients_.count(id) == 0) return false;
  }
  return true;
}

absl::Status StoreLoop::TakeFrame(uint64_t id, StoreClient* client, absl::string_view frame) {
  if (client->stage == StoreClient::Stage::kGreeting) {
    std::string out;
    SLUICE_ASSIGN_OR_RETURN(const auto done, client->greeting.Take(frame, &out));
    if (done) {
      if (side_.token.empty()) {
        SLUICE_RETURN_IF_ERROR(CheckPeerUser(client->socket.get(), "client"));
      }
      if (members_ >= limits_.connections) {
        return absl::ResourceExhaustedError(
            absl::StrCat("the store has ", members_, " clients, and takes no more"));
      }
      ++members_;
      client->stage = StoreClient::Stage::kMember;
      client->inbox.set_max_frame_bytes(kMaxRequestBytes);
      client->heard_ns = MonotonicNs();
      ExpectAt(EndOf(id, *client));
    }
    Queue(client, out);
    return absl::OkStatus();
  }
  SLUICE_ASSIGN_OR_RETURN(const auto request, ParseRequest(frame));
  client->heard_ns = MonotonicNs();
  const auto reply = desk_.Take(id, request, client->heard_ns);
  // A lease may be shorter than the time so far.
  if (request.call == StoreCall::kHold) ExpectAt(EndOf(id, *client));
  if (reply.has_value()) Queue(client, EncodeReply(*reply));
  return absl::OkStatus();
}

void StoreLoop::Queue(StoreClient* client, absl::string_view frames) {
  if (client->unsent() == 0) {
    client->wrote_ns = MonotonicNs();
    ExpectAt(client->wrote_ns + StoreWaitNs(limits_.hello));
  }
  client->outbox.Append(frames);
  queued_ += frames.size();
}

bool StoreLoop::Flush(uint64_t id, StoreClient* client) {
  while (client->unsent() > 0) {
    const SocketIo io = WriteSome(client->socket.get(), client->outbox.unsent());
    if (io.ended) {
      Remove(id);
      return false;
    }
    if (io.bytes == 0) break;
    client->outbox.NoteSent(io.bytes);
    queued_ -= io.bytes;
    client->wrote_ns = MonotonicNs();
  }
  // Further bytes of the client are read and dropped: with bytes unread, the system would take back
  // the error that was sent to the client.
  const bool is_told = client->stage == StoreClient::Stage::kLeaving && client->outbox.empty();
  if (is_told && !client->shut) {
    client->shut = true;
    shutdown(client->socket.get(), SHUT_WR);
  }
  WatchFor(id, client);
  return true;
}

void StoreLoop::AnswerDue() {
  const auto can_take = [&](uint64_t id) {
    const auto at = clients_.find(id);
    return at != clients_.end() && HasRoom(at->second) && queued_ < kMaxQueuedBytes;
  };
  std::vector<uint64_t> answered;
  desk_.AnswerDue(MonotonicNs(), can_take, [&](uint64_t id, const StoreReply& reply) {
    Queue(&clients_.at(id), EncodeReply(reply));
    answered.push_back(id);
  });
  for (const uint64_t id : answered) {
    const auto at = clients_.find(id);
    if (at != clients_.end()) Flush(id, &at->second);
  }
}

}  // namespace sluice
