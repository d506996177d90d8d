// Pieces dealt to the ranks of each half in turn.
#include <algorithm>
#include <map>

#include "absl/status/status.h"
#include "plan/connect/pieces.h"
#include "plan/connect/texts.h"
#include "tensor/error_text.h"
#include "tensor/round.h"

namespace sluice {

absl::StatusOr<PieceSchedule> PieceSchedule::Make(absl::Span<const HalfLabel> labels,
                                                  int64_t piece_bytes, int64_t bytes_max) {
  PieceSchedule schedule;
  schedule.piece_bytes_ = piece_bytes;
  std::map<HalfLabel, size_t> known;
  for (size_t rank = 0; rank < labels.size(); ++rank) {
    const auto [at, is_new] = known.try_emplace(labels[rank], schedule.groups_.size());
    if (is_new) schedule.groups_.push_back({labels[rank], {}});
    Group& group = schedule.groups_[at->second];
    schedule.places_.push_back({at->second, group.ranks.size()});
    group.ranks.push_back(static_cast<int>(rank));
  }
  const Group* largest = nullptr;
  uint64_t bytes = 0;
  for (const Group& group : schedule.groups_) {
    if (largest == nullptr || group.label.bytes > largest->label.bytes) largest = &group;
    // Each is compared first: what ranks say may not even add up.
    if (group.label.bytes > static_cast<uint64_t>(bytes_max)) bytes = group.label.bytes;
    if (bytes <= static_cast<uint64_t>(bytes_max)) bytes += group.label.bytes;
  }
  if (bytes > static_cast<uint64_t>(bytes_max)) {
    return MakeError(
        absl::StatusCode::kResourceExhausted, "what the ranks say of their tensors is more than ",
        bytes_max, " bytes: ", NamedRanks(largest->ranks, kFewRuns),
        largest->ranks.size() == 1 ? " alone has " : " alone have ", largest->label.bytes);
  }
  if (schedule.groups_.size() < 2) return schedule;
  for (const Group& group : schedule.groups_) {
    const int64_t each = piece_bytes * static_cast<int64_t>(group.ranks.size());
    const int64_t rounds = CeilDiv(static_cast<int64_t>(group.label.bytes), each);
    schedule.rounds_ = std::max(schedule.rounds_, rounds);
  }
  return schedule;
}

PieceSchedule::Piece PieceSchedule::PieceOf(int rank, int64_t round) const {
  const Place& place = places_[static_cast<size_t>(rank)];
  const Group& group = groups_[place.group];
  const uint64_t number =
      static_cast<uint64_t>(round) * group.ranks.size() + static_cast<uint64_t>(place.index);
  const auto piece = static_cast<uint64_t>(piece_bytes_);
  const uint64_t begin = std::min(number * piece, group.label.bytes);
  const uint64_t end = std::min(begin + piece, group.label.bytes);
  return {place.group, static_cast<size_t>(begin), static_cast<size_t>(end)};
}

}  // namespace sluice
