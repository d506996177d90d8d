// All-gathers in which one rank's error becomes everybody's.
#include "transport/all_ok.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "tensor/check.h"
#include "tensor/error_text.h"
#include "transport/deadline.h"
#include "transport/wire_status.h"

namespace sluice {
namespace {

using RankStatus = WireStatus<800>;
static_assert(sizeof(RankStatus) + kMaxAgreedBytes <= Fabric::kMaxRecordBytes);

absl::StatusOr<std::vector<std::byte>> Gather(Fabric* fabric, absl::Span<const std::byte> record,
                                              absl::Duration timeout) {
  if (absl::Status status = fabric->StartAllGather(record); !status.ok()) return status;
  const Deadline deadline(timeout);
  std::vector<std::byte> all;
  std::vector<int> missing;
  for (;;) {
    const absl::StatusOr<bool> done = fabric->PollAllGather(&all, &missing);
    if (!done.ok()) return done.status();
    if (*done) return all;
    if (absl::Status status = fabric->CheckRanks(); !status.ok()) return status;
    if (deadline.Passed()) {
      return MakeError(absl::StatusCode::kDeadlineExceeded, RankInWords(fabric->rank()),
                       " has waited ", absl::FormatDuration(timeout), " for ", NamedRanks(missing));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

}  // namespace

absl::StatusOr<std::vector<std::byte>> GatherIfAllOk(Fabric* fabric,
                                                     absl::Span<const std::byte> record,
                                                     const absl::Status& status,
                                                     absl::Duration timeout) {
  SLUICE_CHECK(record.size() <= kMaxAgreedBytes, "the record is too long to agree on");
  const RankStatus own(status);
  std::vector<std::byte> message(sizeof(own) + record.size());
  std::memcpy(message.data(), &own, sizeof(own));
  std::copy(record.begin(), record.end(), message.begin() + sizeof(own));
  const absl::StatusOr<std::vector<std::byte>> all = Gather(fabric, message, timeout);
  if (!all.ok()) return all.status();

  std::vector<std::byte> records;
  for (size_t rank = 0; rank < static_cast<size_t>(fabric->size()); ++rank) {
    const std::byte* theirs = all->data() + rank * message.size();
    RankStatus outcome;
    std::memcpy(&outcome, theirs, sizeof(outcome));
    if (!outcome.ok()) {
      return MakeError(outcome.code(), RankInWords(rank), ": ", outcome.ToStatus());
    }
    records.insert(records.end(), theirs + sizeof(outcome), theirs + message.size());
  }
  return records;
}

}  // namespace sluice
