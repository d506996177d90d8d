// Buckets between processes of one node: straight from source to destination memory, in one copy
// that both ends take part in.
#ifndef SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_TRANSPORT_H_
#define SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_TRANSPORT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "sluice/transport.h"
#include "transport/direct/direct_channel.h"
#include "transport/direct/direct_folder.h"
#include "transport/direct/direct_node.h"
#include "transport/direct/direct_place.h"
#include "transport/last_words.h"
#include "transport/node_transport.h"
#include "transport/tag_lines.h"

namespace sluice {

// A send offers its bytes to the receiver, by a word in shared memory. When the receive begins, the
// receiver says where the bytes go. Before, nobody writes there. From then on each end copies the
// pieces that it claims first, as far as it polls. Small messages the receiver copies alone.
//
// The kernel looks up each stretch of the other process's memory, and not those of this one's. So
// the end whose own rows are short copies for less than the end that would have to look them up.
// The latter leaves the claims of a copy to the former, until it has polled in vain for a while.
//
// A sender packs the pieces that it claims into slots of its own, if the kernel is slow. The
// receiver copies them out. It leaves the claims to the sender, until it has polled in vain for a
// while. Then it copies pieces by the kernel. So no piece waits for a slot, and slots wait only for
// a receiver that has begun.
//
// If the kernel does not copy between two processes, each of them copies memory that the other one
// shares. The receiver, which knows both places, says who copies: it alone, the sender alone, both,
// or neither. Bytes that neither can copy are handed over to messages, by both. Then nothing folds.
//
// To take back its receives (Withdraw), a transport closes the claims of those under way and copies
// the rest alone. It waits for a piece that the sender has claimed already, and for all that only
// the sender can copy. A peer whose process ends ends its operations with Unavailable.
//
// A fold is carried out by its receiver alone, once it has met all of its sends. It reads each
// where it lies, and piece by piece into memory of its own what only the kernel reaches. It writes
// the result where it belongs. When a fold fails, or is taken back, the sends that it has met fail
// with Unavailable. They fail with DataLoss where their own length is the reason. Sends that the
// fold has not met fail when they come, unless Withdraw comes first. They count as outstanding
// until then.
//
// A transport that parts says so to each peer, in shared memory, as soon as it meets none of the
// peer's sends any more. Then what the peer has offered, and is still to offer, comes to nothing. A
// transport that is destroyed parts.
//
// Numbers that another process has written are looked at before they are used. Words that make no
// sense end the transport: their writer may write anywhere.
//
// Words wait in memory of the rank that writes them while the queue to the other rank is full. The
// other rank takes all words there are whenever it polls, so no word waits for another's receive.
class DirectTransport final : public NearTransport {
 public:
  // Operations must be with ranks of the node. On a limited node, operations that are handed over
  // have to be taken after each call.
  explicit DirectTransport(DirectNode node,
                           PrivateCopies private_copies = PrivateCopies::kMeasured);
  ~DirectTransport() override;

  DirectNode& node() { return node_; }

  absl::Status Reserve(int capacity) override;
  absl::Status UseStaging(absl::Span<std::byte>) override { return absl::OkStatus(); }
  absl::Status Start(absl::Span<const TransportOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) override;
  void Withdraw() override;
  bool Part() override;
  bool may_hand_over() const override { return node_.is_limited() && broken_.ok(); }
  void TakeHandedOver(std::vector<TransportOp>* ops) override;
  int outstanding() const override { return outstanding_; }

 private:
  using Number = uint32_t;
  static constexpr Number kNone = ~Number{0};
  // In vain, between two looks at whether the other processes are there.
  static constexpr int kPollsPerLook = 256;
  static constexpr int kPollsPerLookParted = 4;  // there is nothing else to do
  // In vain, before an end claims what costs the other one less.
  static constexpr int kPollsReluctant = 64;

  // `kMet`: part of a fold whose other parts have not met their sends yet, or are being copied.
  // `kTelling`: the copy is done, and the notice to the peer is not sent yet. The notice must be
  // sent before polling stops, or the peer waits for ever.
  enum class State : uint8_t { kUnused, kWaiting, kMet, kCopying, kTelling, kEnded };
  struct Operation {
    TransportOp op;
    uint32_t generation = 0;  // of its number
    absl::Status status;
    State state = State::kUnused;
    int peer = -1;        // index among the node's; -1: a fold
    Number send = kNone;  // that a receive has met, by the sender's number
    uint32_t send_generation = 0;
    DirectPlace theirs;              // where the bytes lie at the other end
    DirectClaims* claims = nullptr;  // null: only this end copies
    Number claims_number = kNone;    // among the receiver's
    bool may_claim = true;
    bool is_reluctant = false;  // the other end copies for less, and has the first go
    bool by_sender = false;     // only the sender copies, whoever takes back what
    bool by_slots = false;      // the sender packs what it claims, and the receiver unpacks it
    bool by_message = false;    // of a receive: to be handed over when its word has left
    uint64_t piece_bytes = 0;
    uint64_t pieces = 0;  // all of them
    // A receive's pieces that only this end copies, and their number after claims were closed.
    uint64_t next_piece = 0;
    uint64_t end_piece = 0;
    uint64_t own_pieces = 0;
    int error = 0;
    // A fold has a part for each of its sends, which meets it as a receive would and has no event.
    bool is_part = false;
    Number fold = kNone;       // of a part: what it belongs to, until that has failed
    Number next_part = kNone;  // of a fold and its parts: in the order of its sources
    int left = 0;  // of a fold: parts that have not met their sends, or later not been told

    bool packs() const { return by_slots && op.kind == TransportOp::Kind::kSend; }
  };
  // A piece that a peer has packed, for a receive of this rank.
  struct PackedPiece {
    Number receive = kNone;
    uint32_t slot = 0;
    uint64_t piece = 0;
  };
  // Words told are dropped once they are at least this many, and half of all that are kept.
  static constexpr size_t kToldMax = 64;
  // A word that found the queue full, and the operation that ends when it has left.
  struct Unsaid {
    DirectMessage message;
    Number ends = kNone;
  };
  struct Backlog {
    std::vector<Unsaid> words;
    size_t first = 0;
  };

  Number Add(const TransportOp& op);
  void Free(Number number);
  void StartSend(Number number);
  void StartReceive(Number number);
  void Tell(int peer, const DirectMessage& message) { TellOrKeep(peer, {message, kNone}); }
  // The last word about a receive, which then ends with `status`.
  void TellAndEnd(Number receive, const DirectMessage& message, absl::Status status);
  // Ends an operation that waited for its last word to leave.
  void EndTold(Number number);
  // False if it has to wait.
  bool TellOrKeep(int peer, const Unsaid& word);
  void TellBacklogs();
  void TellCutOff();
  void Hear();
  void Take(int peer, const DirectMessage& message);
  void TakeAccept(int peer, const DirectMessage& accept);
  void TakePacked(int peer, const DirectMessage& packed);
  // The peer has written what makes no sense.
  void Refuse(int peer, const char* what);
  void TakeOffer(int peer, const DirectMessage& offer);

  // The choice of who copies, once operations have met (direct_meet.cc).
  void Meet(Number receive, const DirectMessage& offer);
  void BeginReceive(Number receive, const DirectMessage& offer);
  bool BeginClaims(Number receive, const DirectPlace& place);
  void HandOver(Number number);
  // Whether the sender is to pack what it claims.
  bool GoesBySlots(const Operation& receive, const DirectPlace& own);
  Number FreeClaims();

  // Copies up to `bytes_max` bytes; true if any.
  bool Copy(int64_t bytes_max);
  bool ClaimPiece(Operation* operation, uint64_t* piece);
  bool MayClaim(const Operation& operation);
  static int64_t BytesCopied(const Operation& operation);
  int CopyPiece(const Operation& operation, uint64_t piece);

  // Pieces by slots (direct_packing.cc). A slot that nobody has to copy from; kNone if there is
  // none.
  uint32_t FreeSlot();
  void PackPieceOf(Number send, uint64_t piece);
  // Copies up to `bytes_max` bytes of what peers have packed; returns how many.
  int64_t Unpack(int64_t bytes_max);
  // The peer neither packs nor copies any more.
  void DropPacked(int peer);
  // Ends copies whose pieces were packed, and whose receivers cannot be told of them any more.
  void DropUntold();

  static void EndPiece(Operation* operation, int error);
  bool HasEnded(const Operation& operation);
  void EndCopy(Number number);
  void End(Number number, absl::Status status);
  static void CloseClaims(Operation* operation);

  // Folds (direct_fold.cc).
  void StartFold(const TransportOp& op);
  void MeetPart(Number number, const DirectMessage& offer);
  void BeginFold(Number number);
  int FoldPiece(const Operation& fold, uint64_t begin, uint64_t end);
  // The error of a part, when all pieces have been folded that could be.
  absl::Status PartError(const Operation& fold);
  // Tells all sends that the fold has met what has become of it. Ends the fold when they have been
  // told. Parts that have not met their sends are on their own from now on. The first call counts.
  void EndFold(Number number, absl::Status status);
  void TellPart(Number number, DirectMessage::Kind kind);
  void EndPart(Number number);
  void WithdrawPart(Number number);

  // Parting (direct_parting.cc).
  bool MeetsSendsOf(int peer) const;
  void TellParting();
  void EndSendsToParted();
  void Abandon(Number number);

  void LookForEndedPeers();
  void Fail(int peer);
  absl::Status PeerEndedError(const Operation& operation);
  absl::Status CopyError(const Operation& operation, int error);
  DirectPeer& PeerAt(int peer) { return node_.peers()[static_cast<size_t>(peer)]; }
  Operation& At(Number number) { return operations_[number]; }

  DirectNode node_;
  std::vector<Backlog> backlogs_;   // by peer
  std::vector<uint8_t> has_ended_;  // by peer: its process has
  std::vector<Operation> operations_;
  std::vector<Number> unused_;
  TagLines<DirectMessage, Number> lines_;  // by index of the peer
  std::vector<Number> copying_;            // in the order in which they began
  std::vector<TransportOp> handed_over_;   // not taken yet
  std::vector<Number> ended_;              // from first_ended_ on: not polled yet
  size_t first_ended_ = 0;
  LastWords<Number> cut_off_;                               // ended, and not told of yet
  std::array<Number, DirectNode::kClaims> user_of_claims_;  // own ones, until a receive has ended
  std::vector<PackedPiece> packed_;                         // in the order in which they came
  std::array<int, DirectSlots::kSlots> peer_of_slot_ = {};  // whom each was last packed for
  const PrivateCopies private_copies_;
  Number next_claims_ = 0;
  bool parted_ = false;
  absl::Status broken_;  // what a peer has written makes no sense
  int outstanding_ = 0;
  int64_t idle_polls_ = 0;
  DirectFolder folder_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_TRANSPORT_H_
