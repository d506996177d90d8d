// Buckets, their names and their channels: the vocabulary that plan, engine and transport share.
#ifndef SLUICE_SRC_PLAN_BUCKET_H_
#define SLUICE_SRC_PLAN_BUCKET_H_

#include <compare>
#include <cstdint>
#include <string>

#include "tensor/error_text.h"

namespace sluice {

// Bits of each field of a BucketId; each word uses all 64.
inline constexpr int kRunBits = 24;
inline constexpr int kWindowBits = 16;
inline constexpr int kRoundBits = 24;
inline constexpr int kPhaseBits = 17;
inline constexpr int kRankBits = 17;
inline constexpr int kCountBits = 13;

// The fields of a BucketId, most significant first.
struct BucketIdFields {
  uint64_t run = 0;     // which Start call of the session
  uint64_t window = 0;  // group of tensors that arrive together
  uint64_t round = 0;   // which bucket of its pair of ranks
  uint64_t phase = 0;   // (dst - src) mod mesh size, in positions: rotates who sends to whom
  // The source, or the owner of a reduction, and the first destination; where an owner is only a
  // destination, the first contributor and the owner.
  uint64_t src = 0;
  uint64_t dst = 0;
  uint64_t n = 0;  // tells apart buckets with other members, and the like

  friend bool operator==(const BucketIdFields&, const BucketIdFields&) = default;
};

// The name of a bucket, equal on all its members. Order of ids is order of importance: the smallest
// unfinished bucket always has a slot (docs/gate.md).
class BucketId {
 public:
  BucketId() = default;
  // Fields must fit their bits; checked.
  explicit BucketId(const BucketIdFields& fields);

  BucketIdFields fields() const;
  // The same bucket in another run.
  BucketId WithRun(uint64_t run) const;
  // "run 3 window 0 round 2 phase 1, rank 4 -> 7, n 0"
  std::string ToString() const { return InWords().text(); }
  // The same with its ranks as fields.
  ErrorText InWords() const;

  uint64_t high() const { return high_; }
  uint64_t low() const { return low_; }

  friend auto operator<=>(const BucketId&, const BucketId&) = default;

 private:
  uint64_t high_ = 0;
  uint64_t low_ = 0;
};

// How the bytes of a channel cross.
enum class TransportKind : uint8_t { kLocal, kMessage };

// A member's acts on a bucket's bytes: a set of parts. A rank that both has and needs the bytes is
// kLocal; the other combinations are kOwner, kContributor or both, perhaps with kDestination.
enum class Role : uint8_t {
  kSource = 1,       // fill, move: sends to its children
  kDestination = 2,  // move, drain: receives from its parent, sends on to its children
  kLocal = 3,        // drain: one strided copy from source to destination memory
  kContributor = 4,  // fill, move: sends its contribution to the owner
  // Move: adds the contributions, perhaps its own too, and sends on the result. With kContributor:
  // adds those of one step, and gives the sum to the adder of the next.
  kOwner = 8,
};
constexpr Role operator|(Role a, Role b) {
  return static_cast<Role>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr bool Has(Role roles, Role part) {
  return (static_cast<uint8_t>(roles) & static_cast<uint8_t>(part)) == static_cast<uint8_t>(part);
}
// Adds up the whole; or a part of it, for the one that does.
constexpr bool OwnsResult(Role roles) {
  return Has(roles, Role::kOwner) && !Has(roles, Role::kContributor);
}
constexpr bool AddsForOwner(Role roles) { return Has(roles, Role::kOwner | Role::kContributor); }

// A rank that takes part in a bucket. The bytes pass down a tree: from the source, or the owner of
// a reduction, to the destinations.
struct Member {
  int rank = -1;
  Role role = Role::kSource;
  int32_t parent = -1;  // index among the members: whom it receives from; -1 for nobody

  friend auto operator<=>(const Member&, const Member&) = default;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_BUCKET_H_
