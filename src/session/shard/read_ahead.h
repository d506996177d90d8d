// Decides how much is read ahead of the consumer: all that the budget holds, or little if the
// storage answers at once.
//
// Reading ahead hides a wait. Bytes in the page cache need no wait. Then every further slot that is
// filled only drives the others out of the processor's caches. Pure: it knows no time.
#ifndef SLUICE_SRC_SESSION_SHARD_READ_AHEAD_H_
#define SLUICE_SRC_SESSION_SHARD_READ_AHEAD_H_

#include <algorithm>
#include <cstdint>

namespace sluice {

// The first answer settles how it begins. One answer that did not come at once is enough to read
// all ahead again. After that it takes as many answers at once as there are slots to go back. Each
// time this was wrong it takes twice as many, as long as they are not more than kProofMax times the
// slots.
class ReadAhead {
 public:
  static constexpr int64_t kAll = INT64_MAX;
  static constexpr int64_t kProofMax = 64;
  // So much stays in a processor's caches, or nearly (docs/notes.md).
  static constexpr int64_t kFewBytes = int64_t{4} << 20;

  // Pieces that are few, of `block_bytes` each.
  static int FewOf(int64_t block_bytes) {
    return static_cast<int>(std::max<int64_t>(2, kFewBytes / block_bytes));
  }

  // `few` 0: always all.
  ReadAhead(int few, int slots) : few_(few < slots ? few : 0), slots_(slots) {}

  // Pieces that may be unfinished at once; kAll: as many as there is room for.
  int64_t limit() const { return is_few_ ? few_ : kAll; }

  // Asked for each read: true if the read is to go aside. If pieces are few, every other one goes
  // aside, so two processors copy. The rest still tell whether storage answers at once.
  bool SharesCopies() {
    shares_ = is_few_ && !shares_;
    return shares_;
  }

  void Answered(bool at_once) {
    if (few_ == 0) return;
    if (!at_once) {
      if (is_few_ || proof_ < slots_) {
        proof_ = std::clamp(2 * proof_, int64_t{slots_}, kProofMax * slots_);
      }
      is_few_ = false;
      answers_ = 0;
    } else if (!is_few_ && ++answers_ >= proof_) {
      is_few_ = true;
    }
  }

 private:
  const int few_;
  const int slots_;
  bool is_few_ = false;
  bool shares_ = false;  // the last read is read aside
  int64_t proof_ = 1;    // answers at once, in a row, that it takes
  int64_t answers_ = 0;  // so far
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SHARD_READ_AHEAD_H_
