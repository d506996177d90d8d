// Counting bits below a rank's.
#include "plan/positions.h"

#include <bit>

namespace sluice {
namespace {

constexpr size_t kWordBits = 64;

uint64_t BitOf(int rank) { return uint64_t{1} << (static_cast<size_t>(rank) % kWordBits); }

}  // namespace

void Positions::Add(const Mesh& mesh) {
  if (!seen_.insert(mesh.identity()).second) return;
  const size_t words = static_cast<size_t>(mesh.max_rank() + 1) / kWordBits + 1;
  if (words > words_.size()) words_.resize(words);
  for (int rank : mesh.ranks()) words_[static_cast<size_t>(rank) / kWordBits] |= BitOf(rank);
}

void Positions::Number() {
  before_.reserve(words_.size());
  for (uint64_t word : words_) {
    before_.push_back(static_cast<int32_t>(count_));
    count_ += std::popcount(word);
  }
}

int64_t Positions::Of(int rank) const {
  const size_t word = static_cast<size_t>(rank) / kWordBits;
  return before_[word] + std::popcount(words_[word] & (BitOf(rank) - 1));
}

}  // namespace sluice
