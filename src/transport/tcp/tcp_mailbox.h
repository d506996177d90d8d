// The operations of one TcpTransport, and what other ranks have offered to it: who meets whom.
#ifndef SLUICE_SRC_TRANSPORT_TCP_TCP_MAILBOX_H_
#define SLUICE_SRC_TRANSPORT_TCP_TCP_MAILBOX_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "sluice/transport.h"
#include "transport/last_words.h"
#include "transport/tag_lines.h"
#include "transport/tcp/tcp_frame.h"
#include "transport/tcp/tcp_rows.h"

namespace sluice {

// The calls of a mailbox on the links. Each concerns the link to one rank.
class TcpOutlet {
 public:
  virtual ~TcpOutlet() = default;
  // Sends a frame. Memory that it borrows is of the operation `owner`.
  virtual void Send(int dst, const TcpFrame& frame) = 0;
  virtual void SendBorrowed(int dst, const TcpFrame& frame, const TcpRows& rows,
                            uint32_t owner) = 0;
  // Sends the bytes of a message, by NextPiece, when there is room.
  virtual void SendMessage(int dst, uint32_t transport, uint32_t owner) = 0;
  // Memory of this operation's is not read any more, or of all of the transport's if -1.
  virtual void Recall(int dst, uint32_t transport, int64_t owner) = 0;
  // Slots at the receiver for messages that go with their offers; false: none is free.
  virtual bool TakeCredit(int dst) = 0;
  virtual void GiveCredit(int dst) = 0;
  // The same slots at this end; -1: the sender has more under way than it may.
  virtual int TakeRoom(int src) = 0;
  virtual std::byte* Room(int src, int slot) = 0;
  virtual void FreeRoom(int src, int slot) = 0;
  // Throws away the frame that comes in from there just now, if it is of this transport.
  virtual void DropIncoming(int src, uint32_t transport) = 0;
  // Why nothing goes to that rank any more; OK: it does. A rank that has left is no error.
  virtual absl::Status Broken(int dst) = 0;
  virtual bool IsGone(int dst) = 0;
  // Whether there is a connection, or one is being made.
  virtual bool IsLinked(int dst) = 0;
};

// A mailbox is there before its transport if others are earlier: then it keeps their offers.
// Thread: one.
class TcpMailbox {
 public:
  TcpMailbox(int rank, int size, uint32_t number, TcpOutlet* outlet);

  // Each as in Transport.
  void Reserve(int capacity);
  absl::Status Start(absl::Span<const TransportOp> ops);
  // Events of operations that another rank's orderly end has cut off come late, or once this rank
  // has parted: see LastWords.
  int Poll(absl::Span<TransportEvent> events);
  void Withdraw();
  int outstanding() const { return outstanding_; }

  // Withdraws, and ends sends to ranks that have parted too, from now on.
  void Part();
  bool parted() const { return parted_; }
  // Nobody reads or writes memory of operations any more, and others are told.
  void Leave();

  // --- Frames that have come. An error: the sender breaks the rules.
  absl::Status OnFrame(int src, const TcpFrame& frame, TcpRows* rows);
  absl::Status OnPayload(int src, const TcpFrame& frame);
  // A frame that borrowed memory of `owner` has left.
  void OnSent(const TcpFrame& frame, uint32_t owner);
  // The next piece of a message; true: the last one.
  bool NextPiece(uint32_t owner, TcpFrame* frame, TcpRows* rows);
  // That rank's connection broke, or it has left.
  void OnBroken(int peer, const absl::Status& why);
  void OnLeft(int peer);

 private:
  enum class State : uint8_t {
    kFree,
    kOffered,  // a send that nobody has met
    kGranted,  // a send whose bytes go
    kWaits,    // a receive that nothing has met
    kMet,      // a receive whose bytes come
    kCutOff,   // of which Poll does not tell yet
    kEnded,
  };
  struct Op {
    TransportOp op;
    absl::Status status;
    size_t at = 0;        // bytes that have gone or come
    uint32_t remote = 0;  // the receiver's slot
    int next = -1;
    State state = State::kFree;
    bool eager = false;  // a send whose bytes go with its offer, or a receive of such
    bool has_credit = false;
    bool offer_sent = false;
  };
  struct Offer {
    uint64_t bytes = 0;
    int src = -1;
    uint32_t slot = 0;  // the sender's
    int room = -1;      // where its bytes lie; -1: at the sender
    bool arrived = false;
    int receive = -1;  // that has met it before its bytes were there
    int next = -1;     // of those that are free
  };
  // The kind of the bytes that come in from a rank.
  struct Incoming {
    enum class What : uint8_t { kNothing, kOffer, kReceive, kLost } what = What::kNothing;
    int index = -1;
  };
  enum class Peer : uint8_t { kThere, kParted, kGone };

  Op& At(int slot) { return ops_[static_cast<size_t>(slot)]; }
  TcpFrame FrameOf(TcpFrameKind kind, uint32_t slot) const;
  static TcpRows RowsOf(const TransportOp& op);
  static size_t IndexOf(int peer) { return static_cast<size_t>(peer); }

  int TakeSlot(const TransportOp& op, State state);
  void End(int slot, absl::Status status);
  // Ends the operation later: another rank has ended in the middle of it.
  void CutOff(int slot, absl::Status status);
  void StartSend(int slot);
  void StartReceive(int slot);
  void TakeFromRoom(int slot, int offer);
  void SendMet(int src, uint32_t slot) { outlet_->Send(src, FrameOf(TcpFrameKind::kMet, slot)); }
  // A receive and an offer whose bytes lie at the sender.
  void MeetAtSender(int slot, int src, uint32_t send_slot, uint64_t bytes);

  absl::Status OnOffer(int src, const TcpFrame& frame, TcpRows* rows);
  absl::Status OnEagerOffer(int src, const TcpFrame& frame, TcpRows* rows);
  absl::Status OnGrant(int src, const TcpFrame& frame);
  absl::Status OnMet(int src, const TcpFrame& frame);
  absl::Status OnData(int src, const TcpFrame& frame, TcpRows* rows);
  absl::Status OnAbort(int src, const TcpFrame& frame);
  void OnPart(int src, bool gone);
  void TellParted(int dst, bool gone);

  // The operation of this slot if it is of this rank and in this state.
  Op* Find(int src, uint32_t slot, State state);
  int AddOffer(uint32_t tag, const Offer& offer);
  void FreeOffer(int index);
  // Drops offers that no receive has met, or all.
  void DropOffers(int src, bool all);
  void ReturnCredits(int dst);
  void EndSends(int dst);

  const int rank_;
  const int size_;
  const uint32_t number_;
  TcpOutlet* const outlet_;
  std::vector<Op> ops_;
  int first_free_ = -1;
  int first_ended_ = -1;
  int last_ended_ = -1;
  LastWords<int> cut_off_;  // slots in state kCutOff
  int outstanding_ = 0;
  TagLines<int> lines_;  // of offers_, and slots in state kWaits
  std::vector<Offer> offers_;
  int first_free_offer_ = -1;
  std::vector<Incoming> incoming_;  // by rank
  std::vector<Peer> peers_;         // by rank
  std::vector<uint8_t> told_;       // by rank: 1 that this one has parted, 2 that it is no more
  bool parted_ = false;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_TCP_TCP_MAILBOX_H_
