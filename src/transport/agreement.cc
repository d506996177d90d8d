// All-gathers in which one rank's error becomes everybody's.
#include "transport/agreement.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensor/check.h"
#include "transport/deadline.h"

namespace sluice {
namespace {

// How a rank is, as it travels.
struct RankStatus {
  int32_t code = 0;
  uint32_t length = 0;
  char text[800] = {};
};
static_assert(sizeof(RankStatus) + kMaxAgreedBytes <= Fabric::kMaxRecordBytes);

RankStatus ToRecord(const absl::Status& status) {
  RankStatus record;
  record.code = static_cast<int32_t>(status.code());
  const size_t length = std::min(status.message().size(), sizeof(record.text));
  record.length = static_cast<uint32_t>(length);
  std::memcpy(record.text, status.message().data(), length);
  return record;
}

absl::Status FromRecord(const RankStatus& record, size_t rank) {
  if (record.code == 0) return absl::OkStatus();
  const size_t length = std::min<size_t>(record.length, sizeof(record.text));
  return absl::Status(static_cast<absl::StatusCode>(record.code),
                      absl::StrCat("rank ", rank, ": ", std::string(record.text, length)));
}

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
    if (deadline.Passed()) {
      return absl::DeadlineExceededError(absl::StrCat("rank ", fabric->rank(), " has waited ",
                                                      absl::FormatDuration(timeout), " for ranks ",
                                                      absl::StrJoin(missing, ", ")));
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
  const RankStatus own = ToRecord(status);
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
    if (absl::Status error = FromRecord(outcome, rank); !error.ok()) return error;
    records.insert(records.end(), theirs + sizeof(outcome), theirs + message.size());
  }
  return records;
}

}  // namespace sluice
