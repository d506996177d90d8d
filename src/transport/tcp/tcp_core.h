// The state that all of a rank's TCP connections share: who is connected, and where frames go.
#ifndef SLUICE_SRC_TRANSPORT_TCP_TCP_CORE_H_
#define SLUICE_SRC_TRANSPORT_TCP_TCP_CORE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "net/address.h"
#include "tensor/error_text.h"
#include "transport/tcp/tcp_call.h"
#include "transport/tcp/tcp_door.h"
#include "transport/tcp/tcp_frame.h"
#include "transport/tcp/tcp_link.h"
#include "transport/tcp/tcp_links.h"
#include "transport/tcp/tcp_mailbox.h"

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

// Another rank that this one has a connection with, or may have.
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

class TcpCore final : public TcpLinks,
                      public std::enable_shared_from_this<TcpCore>,
                      private TcpLinkUser,
                      private TcpOutlet {
 public:
  TcpCore(const TcpLinksOptions& options, TcpListener listener);
  ~TcpCore() override;
  absl::Status Open();

  int rank() const override { return identity_.rank; }
  int size() const override { return identity_.size; }
  const std::string& address() const override { return address_; }
  absl::Status SetPeers(const std::vector<std::string>& addresses) override;
  void Connect(int dst) override;
  bool IsConnected(int dst) const override;
  absl::Status SendControl(int dst, uint8_t kind, absl::Span<const std::byte> record) override;
  bool PollControl(uint8_t kind, int* src, std::vector<std::byte>* record) override;
  int UntakenRecords(int dst, uint8_t kind) const override;
  uint64_t Mark(int dst) const override;
  bool IsSent(int dst, uint64_t mark) const override;
  absl::Status CheckRanks() override;
  bool HasLeft(int rank) const override;
  bool HasEnded(int rank) const override;
  absl::StatusOr<std::unique_ptr<Transport>> OpenTransport(int number) override;
  void Progress() override;
  int door_fd() const override { return door_.fd(); }
  bool ServeDoor(absl::Duration idle) override;

  // --- For transports, which hold the lock while they use their mailbox.
  std::mutex& mutex() { return mutex_; }
  // Writes what has been queued.
  void Flush();
  void ProgressLocked();
  // Unless it has been done just now.
  void ProgressUnlessFresh(int64_t fresh_ns);
  void CloseMailbox(uint32_t number);
  // By rank: what has been queued by now, and whether that has left, for all ranks that can be
  // written to.
  void TakeMarks(std::vector<uint64_t>* marks) const;
  bool HasPassed(const std::vector<uint64_t>& marks) const;

 private:
  struct Record {
    int src;
    std::vector<std::byte> bytes;
  };

  TcpPeer& At(int rank) { return *peers_[static_cast<size_t>(rank)]; }
  const TcpPeer& At(int rank) const { return *peers_[static_cast<size_t>(rank)]; }
  TcpMailbox* Find(uint32_t number);

  // Connections.
  void StartCall(TcpPeer& peer);
  void ProgressCalls(int64_t now_ns);
  void LetIn(int64_t now_ns);
  void TakeArrival(TcpArrival arrival);
  void Welcome(TcpPeer& peer, Fd fd);
  void Join(TcpPeer& peer, Fd fd);
  void EndLink(TcpPeer& peer, bool left, const std::string& why);
  void TellOfBroken(int64_t now_ns);
  void LookForSilence();
  void WaitForEvents(int timeout_ms);
  void ServeReady();
  void Serve(TcpPeer& peer);
  void MarkReady(TcpPeer& peer);
  void SayFarewell();
  bool HasOutput() const;

  // TcpLinkUser.
  absl::Status OnFrame(TcpLink& link, const TcpFrame& frame, TcpRows* rows) override;
  absl::Status OnPayload(TcpLink& link, const TcpFrame& frame) override;
  void OnSent(TcpLink& link, const TcpFrame& frame, uint32_t owner) override;
  void Refill(TcpLink& link) override;
  absl::Status OnControl(TcpPeer& peer, const TcpFrame& frame, TcpRows* rows);
  absl::Status OnTaken(TcpPeer& peer, const TcpFrame& frame);
  absl::Status OnMessage(TcpPeer& peer, const TcpFrame& frame, TcpRows* rows);

  // TcpOutlet.
  void Send(int dst, const TcpFrame& frame) override;
  void SendBorrowed(int dst, const TcpFrame& frame, const TcpRows& rows, uint32_t owner) override;
  void SendMessage(int dst, uint32_t transport, uint32_t owner) override;
  void Recall(int dst, uint32_t transport, int64_t owner) override;
  bool TakeCredit(int dst) override;
  void GiveCredit(int dst) override { ++At(dst).credits; }
  int TakeRoom(int src) override { return At(src).TakeRoom(); }
  std::byte* Room(int src, int slot) override { return At(src).Room(slot); }
  void FreeRoom(int src, int slot) override { At(src).FreeRoom(slot); }
  void DropIncoming(int src, uint32_t transport) override;
  absl::Status Broken(int dst) override;
  bool IsGone(int dst) override { return At(dst).state == TcpPeer::State::kLeft; }
  bool IsLinked(int dst) override;

  const TcpLinksOptions options_;
  const TcpIdentity identity_;
  const std::string address_;
  const int pid_;
  mutable std::mutex mutex_;
  TcpDoor door_;
  Fd epoll_;
  bool knows_peers_ = false;
  std::vector<std::unique_ptr<TcpPeer>> peers_;  // by rank
  std::vector<int> ready_;                       // ranks whose links have something to do
  std::vector<int> serving_;                     // scratch
  std::vector<int> calling_;
  std::vector<int> broken_;  // ranks whose end has not been told
  std::vector<TcpArrival> arrivals_;
  bool knocked_ = false;
  int64_t progressed_ns_ = 0;
  int64_t looked_ns_ = 0;
  int64_t looked_for_silence_ns_ = 0;
  ErrorText broken_text_;  // of those that have been told
  std::array<std::deque<Record>, kKinds> inboxes_;
  std::map<uint32_t, std::unique_ptr<TcpMailbox>> mailboxes_;
  // Transports that have been opened here; those that have ended are in it, and in no mailbox.
  std::set<uint32_t> opened_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_TCP_TCP_CORE_H_
