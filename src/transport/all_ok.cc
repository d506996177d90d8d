// Exchanges in which one rank's error becomes everybody's.
#include "transport/all_ok.h"

#include <chrono>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensor/error_text.h"
#include "transport/deadline.h"
#include "transport/wire_status.h"

namespace sluice {
namespace {

using RankStatus = WireStatus<800>;

// A byte says whether the record of a rank that is well follows, or the status of one that is not.
constexpr absl::string_view kRecord = "r";
constexpr absl::string_view kStatus = "s";

}  // namespace

absl::StatusOr<std::vector<std::string>> GatherIfAllOk(Fabric* fabric, const absl::Status& status,
                                                       absl::string_view record,
                                                       absl::Duration timeout) {
  const RankStatus own(status);
  const absl::string_view own_bytes(reinterpret_cast<const char*>(&own), sizeof(own));
  RecordExchange exchange(fabric);
  SLUICE_RETURN_IF_ERROR(exchange.Start(status.ok() ? absl::StrCat(kRecord, record)
                                                    : absl::StrCat(kStatus, own_bytes)));
  const Deadline deadline(timeout);
  std::vector<std::string> records;
  std::vector<int> missing;
  while (true) {
    SLUICE_ASSIGN_OR_RETURN(const bool done, exchange.Poll(&records, &missing));
    if (done) break;
    if (deadline.Passed()) {
      return MakeError(absl::StatusCode::kDeadlineExceeded, RankInWords(fabric->rank()),
                       " has waited ", absl::FormatDuration(timeout), " for ", NamedRanks(missing));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  for (size_t rank = 0; rank < records.size(); ++rank) {
    RankStatus outcome;
    if (records[rank].size() == kStatus.size() + sizeof(outcome) &&
        absl::StartsWith(records[rank], kStatus)) {
      std::memcpy(static_cast<void*>(&outcome), records[rank].data() + kStatus.size(),
                  sizeof(outcome));
      return Annotate(outcome.ToStatus(), RankInWords(static_cast<int64_t>(rank)));
    }
    records[rank].erase(0, kRecord.size());
  }
  return records;
}

}  // namespace sluice
