// The game of the example rollouts.cc: a policy, rollouts of varying length, and the loop that
// plays and learns one after the other.
#ifndef SLUICE_EXAMPLES_ROLLOUTS_H_
#define SLUICE_EXAMPLES_ROLLOUTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace rollouts {

constexpr int64_t kBatches = 12;
constexpr int64_t kPerBatch = 16;
constexpr size_t kWordsMax = 8192;       // of a rollout: its capacity
constexpr size_t kWeights = 256 * 1024;  // of 8 bytes
constexpr uint64_t kNothing = 0x9e3779b97f4a7c15;

// The beginning of a rollout. Its other words follow from the first three words alone.
struct Head {
  uint64_t item;
  uint64_t updates;  // that the policy had behind it
  uint64_t words;    // of the rollout, with this head
  uint64_t actor;    // the rank that made it
};
constexpr size_t kHeadWords = sizeof(Head) / sizeof(uint64_t);

struct Policy {
  uint64_t updates = 0;
  std::vector<uint64_t> weights = std::vector<uint64_t>(kWeights, kNothing);
};

inline uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 31U)) * 0x7fb5d329728ea185;
  return x ^ (x >> 27U);
}

// Stands for a simulator: each step depends on the one before and on a weight. Also the length
// depends on the policy.
inline std::vector<uint64_t> Play(const Policy& policy, uint64_t item, uint64_t actor) {
  uint64_t state = Mix(item ^ policy.weights[item % kWeights]);
  const size_t words = kHeadWords + state % (kWordsMax - kHeadWords + 1);
  std::vector<uint64_t> rollout = {item, policy.updates, words, actor};
  while (rollout.size() < words) {
    state = Mix(state ^ policy.weights[state % kWeights]);
    rollout.push_back(state);
  }
  return rollout;
}

// `digest` with one rollout more, whoever made it.
inline uint64_t Add(uint64_t digest, absl::Span<const uint64_t> rollout) {
  for (size_t i = 0; i < rollout.size(); ++i) {
    if (i != offsetof(Head, actor) / sizeof(uint64_t)) digest = Mix(digest + rollout[i]);
  }
  return digest;
}

// Stands for an update: of `weights`, whose first one is number `first` of the whole.
inline void Learn(uint64_t digest, size_t first, absl::Span<uint64_t> weights) {
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = Mix(weights[i] ^ digest ^ (first + i));
}

// How many updates batch `batch` sees: batch N + 1 sees update N - 1 and never update N.
inline uint64_t UpdatesSeen(int64_t batch) {
  return batch < 2 ? 0 : static_cast<uint64_t>(batch) - 1;
}

// The digest of all rollouts, made and learnt from one after the other by one thread. Batch N + 1
// is played before update N.
inline uint64_t DigestWithoutOverlap() {
  Policy policy;
  uint64_t all = kNothing;
  uint64_t before = 0;  // of the batch that the policy has not learnt from yet
  for (int64_t batch = 0; batch < kBatches; ++batch) {
    uint64_t digest = kNothing;
    for (int64_t i = batch * kPerBatch; i < (batch + 1) * kPerBatch; ++i) {
      const std::vector<uint64_t> rollout = Play(policy, static_cast<uint64_t>(i), 0);
      digest = Add(digest, rollout);
      all = Add(all, rollout);
    }
    if (batch > 0) {
      Learn(before, 0, absl::MakeSpan(policy.weights));
      ++policy.updates;
    }
    before = digest;
  }
  return all;
}

}  // namespace rollouts

#endif  // SLUICE_EXAMPLES_ROLLOUTS_H_
