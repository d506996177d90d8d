// Records that ranks exchange while they make a transport, and whether each rank is well.
#ifndef SLUICE_SRC_TRANSPORT_ALL_OK_H_
#define SLUICE_SRC_TRANSPORT_ALL_OK_H_

#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "sluice/fabric.h"
#include "tensor/error_text.h"

namespace sluice {

// The record of each rank, in rank order, if all ranks come with an OK `status`. Otherwise the same
// error on all ranks: that of the lowest rank that has one, with its number. Collective. Waits for
// the other ranks; DeadlineExceeded names those that have not come, and leaves the fabric to
// nothing but being destroyed.
absl::StatusOr<std::vector<std::string>> GatherIfAllOk(Fabric* fabric, const absl::Status& status,
                                                       absl::string_view record,
                                                       absl::Duration timeout);

// The same of values.
template <class T>
absl::StatusOr<std::vector<T>> ExchangeIfAllOk(Fabric* fabric, const T& value,
                                               const absl::Status& status, absl::Duration timeout) {
  static_assert(std::is_trivially_copyable_v<T>);
  SLUICE_ASSIGN_OR_RETURN(
      const std::vector<std::string> records,
      GatherIfAllOk(fabric, status, {reinterpret_cast<const char*>(&value), sizeof(T)}, timeout));
  std::vector<T> values(records.size());
  for (size_t rank = 0; rank < values.size(); ++rank) {
    const std::string& record = records[rank];
    if (record.size() != sizeof(T)) {
      return DisagreementError(RankInWords(static_cast<int64_t>(rank)),
                               " runs another build of Sluice: its record has ", record.size(),
                               " bytes, not ", sizeof(T));
    }
    std::memcpy(&values[rank], record.data(), sizeof(T));
  }
  return values;
}

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_ALL_OK_H_
