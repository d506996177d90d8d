// Halves for tests of connections: random ones, and by hand.
#ifndef SLUICE_TESTS_PLAN_CONNECT_HALVES_H_
#define SLUICE_TESTS_PLAN_CONNECT_HALVES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "oracle/random_layout.h"
#include "plan/connect/half.h"
#include "plan/connect/match.h"

namespace sluice {

// A valid half of a job of `ranks` ranks.
Half RandomHalf(oracle::Dice* dice, int ranks);

// Of a model: `tensors` weights, nine in each layer, cut over all `ranks`.
Half ModelHalf(int tensors, int ranks);

// A tensor of a half by hand.
struct GivenTensor {
  std::string name;
  Layout layout;
  std::vector<int64_t> shape = {8};
  DType dtype = DType::kF32;
  absl::optional<int> window = absl::nullopt;
};

RankedHalf HalfOf(std::vector<int> ranks, std::vector<GivenTensor> sources,
                  std::vector<GivenTensor> targets);

// The halves make no transfer, and `text` is in what is said of them.
void ExpectNoMatch(const std::vector<RankedHalf>& halves, absl::StatusCode code,
                   const std::string& text);

// All that the half says, for comparing.
std::string InWords(const Half& half);

}  // namespace sluice

#endif  // SLUICE_TESTS_PLAN_CONNECT_HALVES_H_
