// Small records that ranks exchange while they make a transport, and whether each rank is well.
#ifndef SLUICE_SRC_TRANSPORT_ALL_OK_H_
#define SLUICE_SRC_TRANSPORT_ALL_OK_H_

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "sluice/fabric.h"

namespace sluice {

// The record of each rank, in rank order, if all ranks come with an OK `status`. Otherwise the same
// error on all ranks: that of the lowest rank that has one, with its number. Collective; the
// records have equal lengths, at most kMaxAgreedBytes. Waits for the other ranks; DeadlineExceeded
// names those that have not come, and leaves the fabric to nothing but being destroyed.
inline constexpr size_t kMaxAgreedBytes = 1024;
absl::StatusOr<std::vector<std::byte>> GatherIfAllOk(Fabric* fabric,
                                                     absl::Span<const std::byte> record,
                                                     const absl::Status& status,
                                                     absl::Duration timeout);

// The same of values.
template <class T>
absl::StatusOr<std::vector<T>> ExchangeIfAllOk(Fabric* fabric, const T& value,
                                               const absl::Status& status, absl::Duration timeout) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kMaxAgreedBytes);
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  const absl::StatusOr<std::vector<std::byte>> all =
      GatherIfAllOk(fabric, {bytes, sizeof(T)}, status, timeout);
  if (!all.ok()) return all.status();
  std::vector<T> values(all->size() / sizeof(T));
  std::memcpy(values.data(), all->data(), all->size());
  return values;
}

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_ALL_OK_H_
