// A rank's record of another one that it has a TCP connection with, or may have.
#ifndef SLUICE_SRC_TRANSPORT_TCP_TCP_PEER_H_
#define SLUICE_SRC_TRANSPORT_TCP_TCP_PEER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/address.h"
#include "transport/tcp/tcp_call.h"
#include "transport/tcp/tcp_frame.h"
#include "transport/tcp/tcp_link.h"

namespace sluice {

// Messages whose bytes go, one after the other. Allocates for the longest it has been.
class TcpSendQueue {
 public:
  struct Message {
    uint32_t transport;
    uint32_t owner;
  };

  bool empty() const { return count_ == 0; }
  const Message& front() const { return ring_[first_]; }
  void Pop() {
    first_ = (first_ + 1) & (ring_.size() - 1);
    --count_;
  }
  void Push(const Message& message) {
    if (count_ == ring_.size()) {
      std::vector<Message> larger(ring_.empty() ? 16 : 2 * ring_.size());
      for (size_t n = 0; n < count_; ++n) larger[n] = ring_[(first_ + n) & (ring_.size() - 1)];
      ring_ = std::move(larger);
      first_ = 0;
    }
    ring_[(first_ + count_++) & (ring_.size() - 1)] = message;
  }
  void Clear() { first_ = count_ = 0; }

 private:
  std::vector<Message> ring_;  // its size is a power of two
  size_t first_ = 0;
  size_t count_ = 0;
};

struct TcpPeer {
  enum class State : uint8_t {
    kApart,    // neither has asked for the other
    kCalling,  // this rank calls
    kUp,
    kBroken,
    kLeft,  // it has said farewell
  };
  struct Control {
    size_t bytes = 0;
    int records = 0;
  };

  TcpPeer(int peer_rank, TcpLinkUser* user, int kinds)
      : rank(peer_rank), link(peer_rank, user), untaken(static_cast<size_t>(kinds)) {}

  // The room for messages that come before their receives, by slots of kEagerBytes.
  void MakeRoom() {
    room.reset(new std::byte[kEagerSlots * kEagerBytes]);
    for (int slot = kEagerSlots - 1; slot >= 0; --slot) free_rooms[free_count++] = slot;
  }
  int TakeRoom() { return free_count == 0 ? -1 : free_rooms[--free_count]; }
  std::byte* Room(int slot) { return room.get() + static_cast<size_t>(slot) * kEagerBytes; }
  void FreeRoom(int slot) { free_rooms[free_count++] = slot; }

  const int rank;
  State state = State::kApart;
  TcpLink link;
  std::vector<SocketAddress> addresses;
  std::unique_ptr<TcpCall> call;
  Fd arrival;          // of the other one's call, while it is open whose call counts
  bool ready = false;  // it is in the list of those to be served
  bool said_farewell = false;
  absl::Status why;  // it broke
  int64_t broken_ns = 0;

  TcpSendQueue sends;
  int credits = kEagerSlots;
  std::unique_ptr<std::byte[]> room;
  std::array<int, kEagerSlots> free_rooms = {};
  size_t free_count = 0;

  std::vector<Control> untaken;   // by kind: sent to it
  std::vector<std::byte> record;  // that comes in
  int in_inboxes = 0;             // records of it that nobody has taken here
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_TCP_TCP_PEER_H_
