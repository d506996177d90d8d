// Random halves for tests of connections.
#ifndef SLUICE_TESTS_PLAN_CONNECT_HALVES_H_
#define SLUICE_TESTS_PLAN_CONNECT_HALVES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "oracle/random_layout.h"
#include "plan/connect/half.h"

namespace sluice {

// A valid half of a job of `ranks` ranks.
Half RandomHalf(oracle::Dice* dice, int ranks);

// Of a model: `tensors` weights, nine in each layer, cut over all `ranks`.
Half ModelHalf(int tensors, int ranks);

// All that the half says, for comparing.
std::string InWords(const Half& half);

}  // namespace sluice

#endif  // SLUICE_TESTS_PLAN_CONNECT_HALVES_H_
