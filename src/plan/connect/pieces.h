// Which piece of which half each rank sends in which round, where every rank hears every other one.
#ifndef SLUICE_SRC_PLAN_CONNECT_PIECES_H_
#define SLUICE_SRC_PLAN_CONNECT_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace sluice {

// What a rank says of its half before it sends it.
struct HalfLabel {
  uint64_t bytes = 0;
  uint64_t hash[2] = {};

  friend auto operator<=>(const HalfLabel&, const HalfLabel&) = default;
};

// The same on all ranks. Ranks that have the same half send different pieces of it in each round.
class PieceSchedule {
 public:
  // `labels`: one per rank. ResourceExhausted: the distinct halves have more than `bytes_max` bytes
  // in all; names the ranks with the largest.
  static absl::StatusOr<PieceSchedule> Make(absl::Span<const HalfLabel> labels, int64_t piece_bytes,
                                            int64_t bytes_max);

  // Distinct halves, by the first rank that has each.
  struct Group {
    HalfLabel label;
    std::vector<int> ranks;  // ascending
  };
  absl::Span<const Group> groups() const { return groups_; }

  // 0 where all ranks have the same half.
  int64_t rounds() const { return rounds_; }

  // The bytes [begin, end) of its half that `rank` sends; none once all are sent.
  struct Piece {
    size_t group = 0;
    size_t begin = 0;
    size_t end = 0;
  };
  Piece PieceOf(int rank, int64_t round) const;

 private:
  struct Place {
    size_t group = 0;
    size_t index = 0;  // of the rank in its group
  };
  int64_t piece_bytes_ = 1;
  int64_t rounds_ = 0;
  std::vector<Group> groups_;
  std::vector<Place> places_;  // by rank
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CONNECT_PIECES_H_
