// Decides who meets whom, and in which order.
#include "deadlock/exchanges.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sluice::deadlock {
namespace {

bool Contributes(const JobMember& member) { return (member.stages & kStageFill) != 0; }

}  // namespace

Exchanges::Exchanges(const JobBucket& bucket, Random* own_order) {
  const auto is_owner = [](const JobMember& member) { return member.owner; };
  if (std::none_of(bucket.begin(), bucket.end(), is_owner)) return;
  partners_.resize(bucket.size());
  next_.resize(bucket.size());
  for (size_t a = 0; a < bucket.size(); ++a) {
    for (size_t b = a + 1; b < bucket.size(); ++b) {
      if (!bucket[a].owner && !bucket[b].owner) continue;
      if (Contributes(bucket[a]) && Contributes(bucket[b])) Meet(a, b);
    }
  }
  if (own_order != nullptr) {
    for (std::vector<size_t>& partners : partners_) own_order->Shuffle(&partners);
  }
  for (size_t owner = 0; owner < bucket.size(); ++owner) {
    for (size_t b = 0; b < bucket.size(); ++b) {
      if (bucket[owner].owner && !Contributes(bucket[b])) Meet(owner, b);
    }
  }
}

}  // namespace sluice::deadlock
