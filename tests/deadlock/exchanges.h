// How the members of a reduction meet inside its move: by twos, and each member one at a time.
#ifndef SLUICE_TESTS_DEADLOCK_EXCHANGES_H_
#define SLUICE_TESTS_DEADLOCK_EXCHANGES_H_

#include <cstddef>
#include <vector>

#include "deadlock/job.h"
#include "deadlock/random.h"

namespace sluice::deadlock {

// Each owner takes a contribution from each other contributor. Another owner contributes too, to a
// share that is not its own. An owner then passes its result on to the members that only receive.
// Any exchange is a rendezvous: it happens when it is the next one of both its members.
class Exchanges {
 public:
  Exchanges() = default;
  // Contributions are in mesh order, or each member has an order of its own, drawn from
  // `own_order`. None if the bucket is no reduction.
  Exchanges(const JobBucket& bucket, Random* own_order);

  // True if the member has had all of its own.
  bool Done(size_t member) const {
    return partners_.empty() || next_[member] == partners_[member].size();
  }
  // With whom its next one is; not to be called when it is done.
  size_t Partner(size_t member) const { return partners_[member][next_[member]]; }
  bool IsMutual(size_t member) const {
    const size_t partner = Partner(member);
    return !Done(partner) && Partner(partner) == member;
  }
  void CarryOut(size_t member) {
    ++next_[Partner(member)];
    ++next_[member];
  }

 private:
  void Meet(size_t a, size_t b) {
    partners_[a].push_back(b);
    partners_[b].push_back(a);
  }

  std::vector<std::vector<size_t>> partners_;  // of every member, in its order
  std::vector<size_t> next_;                   // of every member, in its partners
};

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_DEADLOCK_EXCHANGES_H_
