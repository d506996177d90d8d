// The places of two sets: their residues meet as the Chinese remainder theorem says.
#include "plan/place_set.h"

#include <numeric>
#include <utility>

#include "tensor/check.h"

namespace sluice {
namespace {

using Wide = __int128;

// x with a * x = 1 modulo m, of a and m without a common factor.
int64_t Inverse(int64_t a, int64_t m) {
  int64_t r0 = m;
  int64_t r1 = a % m;
  int64_t t0 = 0;
  int64_t t1 = 1;
  while (r1 != 0) {
    const int64_t quotient = r0 / r1;
    r0 = std::exchange(r1, r0 - quotient * r1);
    t0 = std::exchange(t1, t0 - quotient * t1);
  }
  return t0 < 0 ? t0 + m : t0;
}

}  // namespace

PlaceSet PlaceSet::And(const PlaceSet& other) const {
  const PlaceSet none;
  const int64_t both_end = std::min(end, other.end);
  const int64_t both_first = std::max(first, other.first);
  if (both_first >= both_end) return none;
  SLUICE_CHECK(step > 0 && other.step > 0, "places without a step");
  const int64_t common = std::gcd(step, other.step);
  if ((other.first - first) % common != 0) return none;
  // first + step * a = other.first modulo other.step.
  const int64_t modulus = other.step / common;
  SLUICE_CHECK(modulus > 0, "a divisor is larger than what it divides");
  const int64_t distance = (other.first - first) / common % modulus;
  const Wide a = Wide{(distance + modulus) % modulus} *
                 (modulus == 1 ? 0 : Inverse(step / common % modulus, modulus)) % modulus;
  const Wide both_step = Wide{step} * modulus;
  Wide at = Wide{first} + Wide{step} * a;  // a member of both sequences, if they had no ends
  if (at < both_first) at += (Wide{both_first} - at + both_step - 1) / both_step * both_step;
  if (at >= both_end) return none;
  const int64_t begin = static_cast<int64_t>(at);
  // Any step will do for one member.
  const bool one = at + both_step >= both_end;
  return {begin, one ? 1 : static_cast<int64_t>(both_step), one ? begin + 1 : both_end};
}

}  // namespace sluice
