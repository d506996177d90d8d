// Packing of BucketIds into two words whose order is the order of the fields.
#include "plan/bucket.h"

#include <cstdint>

#include "tensor/check.h"

namespace sluice {
namespace {

static_assert(kRunBits + kWindowBits + kRoundBits == 64);
static_assert(kPhaseBits + kRankBits + kRankBits + kCountBits == 64);

constexpr uint64_t Mask(int bits) { return (uint64_t{1} << bits) - 1; }

// Appends a field below those already in `word`.
uint64_t Push(uint64_t word, uint64_t value, int bits) {
  SLUICE_CHECK(value <= Mask(bits), "a field of a BucketId does not fit its bits");
  return (word << bits) | value;
}

// Removes the lowest field of `word`.
uint64_t Pop(uint64_t* word, int bits) {
  const uint64_t value = *word & Mask(bits);
  *word >>= bits;
  return value;
}

}  // namespace

BucketId::BucketId(const BucketIdFields& fields) {
  high_ = Push(high_, fields.run, kRunBits);
  high_ = Push(high_, fields.window, kWindowBits);
  high_ = Push(high_, fields.round, kRoundBits);
  low_ = Push(low_, fields.phase, kPhaseBits);
  low_ = Push(low_, fields.src, kRankBits);
  low_ = Push(low_, fields.dst, kRankBits);
  low_ = Push(low_, fields.n, kCountBits);
}

BucketIdFields BucketId::fields() const {
  BucketIdFields fields;
  uint64_t high = high_;
  fields.round = Pop(&high, kRoundBits);
  fields.window = Pop(&high, kWindowBits);
  fields.run = high;
  uint64_t low = low_;
  fields.n = Pop(&low, kCountBits);
  fields.dst = Pop(&low, kRankBits);
  fields.src = Pop(&low, kRankBits);
  fields.phase = low;
  return fields;
}

BucketId BucketId::WithRun(uint64_t run) const {
  SLUICE_CHECK(run <= Mask(kRunBits), "the run of a BucketId does not fit its bits");
  constexpr int kBelow = kWindowBits + kRoundBits;
  BucketId id = *this;
  id.high_ = (run << kBelow) | (high_ & Mask(kBelow));
  return id;
}

ErrorText BucketId::InWords() const {
  const BucketIdFields f = fields();
  return ErrorText("run ", f.run, " window ", f.window, " round ", f.round, " phase ", f.phase,
                   ", ", RankInWords(f.src), RankInWords(f.dst, " -> "), ", n ", f.n);
}

}  // namespace sluice
