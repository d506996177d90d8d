// Adding up what a rank holds.
#include "workload/fingerprint.h"

#include <cmath>
#include <type_traits>

#include "workload/element.h"

namespace sluice::bench {
namespace {

int64_t Truncate(double value) {
  if (!(std::fabs(value) < 9.2e18)) return 0;
  return static_cast<int64_t>(value);
}

template <typename Codec>
int64_t ToInteger(typename Codec::Unit unit) {
  const auto value = Codec::Load(unit);
  if constexpr (std::is_integral_v<decltype(value)>) {
    return static_cast<int64_t>(value);
  } else {
    return Truncate(static_cast<double>(value));
  }
}

template <typename Codec>
void Sum(const std::byte* data, int64_t count, Fingerprint* result) {
  const auto* values = reinterpret_cast<const typename Codec::Unit*>(data);
  uint64_t plain = 0;
  uint64_t ordered = 0;
  for (int64_t p = 0; p < count; ++p) {
    const auto value = static_cast<uint64_t>(ToInteger<Codec>(values[p]));
    plain += value;
    ordered += (static_cast<uint64_t>(p) + 1) * value;
  }
  result->checksum = static_cast<int64_t>(plain);
  result->ordered_checksum = ordered;
}

}  // namespace

Fingerprint TakeFingerprint(const LocalPart& part, DType dtype, const std::byte* data) {
  Fingerprint result;
  result.local_shape = part.shape();
  result.first = part.first();
  result.last = part.last();
  WithCodec(dtype, [&](auto codec) { Sum<decltype(codec)>(data, part.elements(), &result); });
  return result;
}

}  // namespace sluice::bench
