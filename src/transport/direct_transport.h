// Buckets between processes of one node: straight from source to destination memory, in one copy
// that both ends take part in.
#ifndef SLUICE_SRC_TRANSPORT_DIRECT_TRANSPORT_H_
#define SLUICE_SRC_TRANSPORT_DIRECT_TRANSPORT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/direct_channel.h"
#include "transport/direct_node.h"
#include "transport/direct_place.h"
#include "transport/transport.h"

namespace sluice {

// A send offers its bytes to the receiver, by a word in shared memory. When the receive begins, the
// receiver says where they go, and from then on each end copies the pieces that it claims first, as
// far as it polls; before, nobody writes there. Small messages the receiver copies alone.
//
// Whoever takes back its receives (Withdraw) closes the claims of those under way and copies the
// rest alone; a piece that the sender has claimed already is waited for. A peer whose process ends
// ends its operations with Unavailable.
//
// Words wait in memory of the rank that writes them while the queue to the other one is full; the
// other takes all that there are whenever it polls, so no word waits for another's receive.
class DirectTransport final : public Transport {
 public:
  // Operations must be with ranks of the node.
  explicit DirectTransport(DirectNode node);

  DirectNode& node() { return node_; }

  absl::Status Reserve(int capacity) override;
  absl::Status UseStaging(absl::Span<std::byte>) override { return absl::OkStatus(); }
  absl::Status Start(absl::Span<const TransportOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) override;
  void Withdraw() override;
  int outstanding() const override { return outstanding_; }

 private:
  using Number = uint32_t;
  static constexpr Number kNone = ~Number{0};
  // In vain, between two looks at whether the other processes are there.
  static constexpr int kPollsPerLook = 256;

  // kTelling: all is done, but the other end has not been told yet, and would not be once nobody
  // polls here.
  enum class State : uint8_t { kUnused, kWaiting, kCopying, kTelling, kEnded };
  struct Operation {
    TransportOp op;
    absl::Status status;
    State state = State::kUnused;
    int peer = -1;                   // index among the node's
    Number next = kNone;             // receive that waits for the same peer and tag
    Number send = kNone;             // that a receive has met, by the sender's number
    DirectPlace theirs;              // where the bytes lie at the other end
    DirectClaims* claims = nullptr;  // null: only this end copies
    Number claims_number = kNone;    // of a receive
    bool may_claim = true;
    uint64_t piece_bytes = 0;
    // Of a receive: the pieces that only this end copies, and how many these are after claims were
    // closed.
    uint64_t next_piece = 0;
    uint64_t end_piece = 0;
    uint64_t own_pieces = 0;
    int error = 0;
  };
  struct Offer {
    DirectMessage message;
    Number next = kNone;
  };
  struct List {
    Number head = kNone;
    Number tail = kNone;
  };
  // What has come or begun with one peer and tag; one of the lists is empty.
  struct Line {
    List offers;
    List receives;
  };
  // A word that found the queue full, and the operation that ends when it has left.
  struct Unsaid {
    DirectMessage message;
    Number ends = kNone;
  };
  struct Backlog {
    std::vector<Unsaid> words;
    size_t first = 0;
  };

  template <typename Entry>
  static void Append(std::vector<Entry>& entries, List* list, Number number);
  template <typename Entry>
  static Number TakeFirst(const std::vector<Entry>& entries, List* list);

  static uint64_t LineKey(int peer, uint32_t tag);
  void StartSend(Number number);
  void StartReceive(Number number);
  void Tell(int peer, const DirectMessage& message) { TellOrKeep(peer, {message, kNone}); }
  // The last word about a receive, which then ends with `status`.
  void TellAndEnd(Number receive, const DirectMessage& message, absl::Status status);
  // False if it has to wait.
  bool TellOrKeep(int peer, const Unsaid& word);
  void TellBacklogs();
  void Hear();
  void Take(int peer, const DirectMessage& message);
  void TakeOffer(int peer, const DirectMessage& offer);
  void Meet(Number receive, const DirectMessage& offer);
  Number FreeClaims();

  // Copies up to so many bytes; true if any.
  bool Copy(int64_t bytes_max);
  static bool ClaimPiece(Operation* operation, uint64_t* piece);
  int CopyPiece(const Operation& operation, uint64_t piece);
  static void EndPiece(Operation* operation, int error);
  static bool HasEnded(const Operation& operation);
  void EndCopy(Number number);
  void End(Number number, absl::Status status);
  static void CloseClaims(Operation* operation);

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
  std::vector<Offer> offers_;
  std::vector<Number> unused_offers_;
  absl::flat_hash_map<uint64_t, Line> lines_;  // by LineKey; those that are empty may be missing
  std::vector<Number> copying_;                // in the order in which they began
  std::vector<Number> ended_;                  // from first_ended_ on: not polled yet
  size_t first_ended_ = 0;
  std::array<bool, DirectNode::kClaims> uses_claims_ = {};  // own ones, until a receive has ended
  Number next_claims_ = 0;
  int outstanding_ = 0;
  int idle_polls_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DIRECT_TRANSPORT_H_
