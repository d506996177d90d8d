// The memory that two processes of a node share to copy together. It has a queue of words from one
// to the other, and the claims on the pieces of one copy.
#ifndef SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_CHANNEL_H_
#define SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_CHANNEL_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "device/stores.h"
#include "transport/direct/direct_place.h"

namespace sluice {

// One word about an operation.
struct DirectMessage {
  enum class Kind : uint32_t {
    kOffer,      // a send has begun: its bytes lie at `place`
    kAccept,     // the receive it has met has begun: to be copied to `place`, with claims on pieces
    kDone,       // the receiver has copied all of it by itself
    kRefuse,     // nothing is copied: `error`, or the receive is of place.rows.bytes
    kByMessage,  // neither end can copy it: to be sent as a message to the receive, which has begun
    kPacked,     // the sender's: a piece of the copy with `claims` lies in one of its slots
  };
  Kind kind = Kind::kOffer;
  uint32_t op = 0;                       // the send, by the sender's number
  uint32_t generation = 0;               // of this number: how often it had been used before
  uint32_t tag = 0;                      // of an offer
  uint32_t claims = 0;                   // of an accept, or packed: by the receiver's number
  uint32_t slot = 0;                     // of packed
  uint64_t piece = 0;                    // of packed
  int32_t error = 0;                     // of a refusal: an errno, or 0
  WriteHint stores = WriteHint::kPlain;  // of an accept
  bool by_sender = false;                // of an accept: only the sender can copy
  bool by_slots = false;                 // of an accept: the sender packs what it claims
  DirectPlace place;
};

// From one process to one other. Lies in shared memory, zero at first.
class DirectQueue {
 public:
  static constexpr uint64_t kCapacity = 64;

  // By the sender: false if it is full.
  bool Push(const DirectMessage& message) {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == kCapacity) return false;
    messages_[tail % kCapacity] = message;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  // By the receiver: false if it is empty.
  bool Pop(DirectMessage* message) {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return false;
    *message = messages_[head % kCapacity];
    head_.store(head + 1, std::memory_order_release);
    return true;
  }

  // By the sender: it has parted. It meets none of the other's sends any more, and of those that it
  // has met it has said what became of them.
  void Part() { parted_.store(1, std::memory_order_release); }
  bool HasParted() const { return parted_.load(std::memory_order_acquire) != 0; }

 private:
  alignas(64) std::atomic<uint64_t> head_;
  alignas(64) std::atomic<uint64_t> tail_;
  std::atomic<uint32_t> parted_;
  alignas(64) std::array<DirectMessage, kCapacity> messages_;
};

// Deals out pieces to copy: both ends take the next one that nobody has, one after another. Lies in
// the receiver's shared memory, zero at first.
class DirectClaims {
 public:
  // By the receiver, before the sender hears of it; `used()` must be false.
  void Begin(uint64_t pieces, uint64_t piece_bytes) {
    pieces_ = pieces;
    piece_bytes_ = piece_bytes;
    done_.store(0, std::memory_order_relaxed);
    error_.store(0, std::memory_order_relaxed);
    used_.store(1, std::memory_order_relaxed);
    next_.store(0, std::memory_order_release);
  }
  uint64_t pieces() const { return pieces_; }
  uint64_t piece_bytes() const { return piece_bytes_; }

  // The next piece that nobody has; false if there is none, or claims are closed.
  bool Claim(uint64_t* piece) {
    uint64_t next = next_.load(std::memory_order_relaxed);
    while (next < pieces_) {
      if (next_.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel)) {
        *piece = next;
        return true;
      }
    }
    return false;
  }
  // `pieces` of those that were claimed have been copied.
  void Finish(uint64_t pieces) { done_.fetch_add(pieces, std::memory_order_acq_rel); }

  // By who has closed them: the pieces that nobody had claimed are done, and count as claimed. So a
  // failure of others does not end the copy before all that they had claimed is done.
  void FinishRest(uint64_t pieces) {
    next_.store(kClosed | pieces_, std::memory_order_release);
    Finish(pieces);
  }

  // No piece can be claimed any more. Returns how many have been: the first ones.
  uint64_t Close() { return next_.fetch_or(kClosed, std::memory_order_acq_rel) & ~kClosed; }
  // One of those that nobody can claim any more could not be copied: an errno. The first one
  // counts, for the whole copy.
  void FailRest(int error) {
    int32_t none = 0;
    error_.compare_exchange_strong(none, error, std::memory_order_acq_rel);
  }
  // The same of a claimed piece.
  void Fail(int error) {
    FailRest(error);
    Close();
    Finish(1);
  }

  // All is copied; or something has failed, and nobody copies what was claimed any more.
  bool Ended() const {
    const uint64_t done = done_.load(std::memory_order_acquire);
    if (done == pieces_) return true;
    return HasFailed() && done == (next_.load(std::memory_order_acquire) & ~kClosed);
  }
  int error() const { return error_.load(std::memory_order_acquire); }
  // Something has failed, and nothing is claimed any more: a sender that packs is done.
  bool HasFailed() const {
    const uint64_t next = next_.load(std::memory_order_acquire);
    return error() != 0 && (next | kClosed) == next;
  }

  // By the sender, which does not look at it any more.
  void Release() { used_.store(0, std::memory_order_release); }
  bool used() const { return used_.load(std::memory_order_acquire) != 0; }

 private:
  static constexpr uint64_t kClosed = uint64_t{1} << 63;

  alignas(64) std::atomic<uint64_t> next_;
  alignas(64) std::atomic<uint64_t> done_;
  std::atomic<int32_t> error_;
  std::atomic<uint32_t> used_;
  uint64_t pieces_;
  uint64_t piece_bytes_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DIRECT_DIRECT_CHANNEL_H_
