// Fuzz target: whatever the bytes are, they are no half, or one that is read as it is written. Two
// ranks may have it, whether or not it fits together.
#include <string>
#include <vector>

#include "fuzz/fuzz_bytes.h"
#include "plan/connect/check_half.h"
#include "plan/connect/half_code.h"
#include "plan/connect/match.h"

SLUICE_FUZZ_TARGET(connect_half) {
  using sluice::Half;
  constexpr int kRanks = 16;
  sluice::HalfRoom room;
  const absl::StatusOr<Half> half = sluice::DecodeHalf(sluice::TextOf(data, size), kRanks, &room);
  if (!half.ok()) {
    sluice::CheckError(half.status());
    return 0;
  }
  if (const absl::Status status = sluice::CheckHalf(*half, kRanks); !status.ok()) {
    sluice::CheckError(status);
    return 0;
  }
  const std::string bytes = sluice::EncodeHalf(*half);
  sluice::HalfRoom again_room;
  const absl::StatusOr<Half> again = sluice::DecodeHalf(bytes, kRanks, &again_room);
  SLUICE_CHECK(again.ok() && sluice::EncodeHalf(*again) == bytes, "a half that is read otherwise");
  std::vector<sluice::RankedHalf> halves(2);
  halves[0] = {*half, {0, 1, 2, 3}};
  halves[1] = {*again, {4, 5}};
  const absl::StatusOr<sluice::Match> match = sluice::MatchHalves(halves);
  if (!match.ok()) sluice::CheckError(match.status());
  return 0;
}
