// Comparing what each rank has understood, by one all-gather over the fabric.
#include "job/agreement.h"

#include <sched.h>

#include <array>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "transport/deadline.h"

namespace sluice::bench {
namespace {

constexpr size_t kMaxKnobs = 64;

// What travels. All ranks are the same program on one kind of machine.
struct Record {
  int32_t code = 0;
  std::array<char, 1300> message{};
  std::array<int64_t, kMaxKnobs> knobs{};
};
static_assert(sizeof(Record) <= Fabric::kMaxRecordBytes);

Record MakeRecord(const Understanding& mine) {
  Record record;
  record.code = static_cast<int32_t>(mine.status.code());
  const std::string text(mine.status.message());
  std::strncpy(record.message.data(), text.c_str(), record.message.size() - 1);
  for (size_t i = 0; i < mine.knobs.size() && i < kMaxKnobs; ++i) {
    record.knobs[i] = mine.knobs[i].second;
  }
  return record;
}

// The bytes of all ranks, in rank order.
absl::StatusOr<std::vector<std::byte>> GatherBytes(absl::Span<const std::byte> mine,
                                                   absl::Duration timeout, Fabric* fabric) {
  const Deadline deadline(timeout);
  absl::Status started = fabric->StartAllGather(mine);
  if (!started.ok()) return started;
  std::vector<std::byte> all;
  std::vector<int> missing;
  while (true) {
    const auto done = fabric->PollAllGather(&all, &missing);
    if (!done.ok()) return done.status();
    if (*done) return all;
    if (absl::Status status = fabric->CheckRanks(); !status.ok()) return status;
    if (deadline.Passed()) {
      return absl::DeadlineExceededError(absl::StrCat("no word from ", RanksName(missing),
                                                      " within ", absl::FormatDuration(timeout)));
    }
    sched_yield();
  }
}

absl::StatusOr<std::vector<Record>> Exchange(const Record& mine, absl::Duration timeout,
                                             Fabric* fabric) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&mine);
  const auto all = GatherBytes({bytes, sizeof(Record)}, timeout, fabric);
  if (!all.ok()) return all.status();
  std::vector<Record> records(static_cast<size_t>(fabric->size()));
  std::memcpy(static_cast<void*>(records.data()), all->data(), all->size());
  return records;
}

// Names the ranks whose value of knob `index` is not rank 0's.
absl::Status CompareKnob(const std::vector<Record>& records, size_t index,
                         const std::string& name) {
  std::map<int64_t, std::vector<int>> others;
  for (size_t r = 1; r < records.size(); ++r) {
    const int64_t value = records[r].knobs[index];
    if (value != records[0].knobs[index]) others[value].push_back(static_cast<int>(r));
  }
  if (others.empty()) return absl::OkStatus();
  std::string text = absl::StrCat("the ranks were given different ", name, ": rank 0 has ",
                                  records[0].knobs[index]);
  for (const auto& [value, ranks] : others) {
    absl::StrAppend(&text, ", ", RanksName(ranks), ranks.size() == 1 ? " has " : " have ", value);
  }
  return absl::FailedPreconditionError(text);
}

}  // namespace

void AwaitAll(absl::Duration timeout, Fabric* fabric) {
  const std::byte nothing{};
  GatherBytes({&nothing, 1}, timeout, fabric).status().IgnoreError();
}

std::string RanksName(absl::Span<const int> ascending) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < ascending.size();) {
    size_t end = begin + 1;
    while (end < ascending.size() && ascending[end] == ascending[end - 1] + 1) ++end;
    parts.push_back(end - begin == 1 ? absl::StrCat(ascending[begin])
                                     : absl::StrCat(ascending[begin], "-", ascending[end - 1]));
    begin = end;
  }
  return absl::StrCat(ascending.size() == 1 ? "rank " : "ranks ", absl::StrJoin(parts, ","));
}

absl::Status CombineStatuses(absl::Span<const absl::Status> status_by_rank) {
  std::map<std::string, std::vector<int>> ranks_by_message;
  absl::StatusCode code = absl::StatusCode::kOk;
  for (size_t r = 0; r < status_by_rank.size(); ++r) {
    if (status_by_rank[r].ok()) continue;
    if (code == absl::StatusCode::kOk) code = status_by_rank[r].code();
    ranks_by_message[absl::StrCat(status_by_rank[r].message())].push_back(static_cast<int>(r));
  }
  if (ranks_by_message.empty()) return absl::OkStatus();
  const auto& [message, ranks] = *ranks_by_message.begin();
  if (ranks.size() == status_by_rank.size()) return absl::Status(code, message);
  std::vector<std::string> parts;
  for (const auto& [text, who] : ranks_by_message) {
    parts.push_back(absl::StrCat(RanksName(who), ": ", text));
    if (parts.size() == 4) break;  // enough to find the cause
  }
  return absl::Status(code, absl::StrJoin(parts, "; "));
}

absl::Status Agree(const Understanding& mine, absl::Duration timeout, Fabric* fabric) {
  const auto records = Exchange(MakeRecord(mine), timeout, fabric);
  if (!records.ok()) return records.status();
  std::vector<absl::Status> statuses;
  for (const Record& record : *records) {
    statuses.emplace_back(static_cast<absl::StatusCode>(record.code), record.message.data());
  }
  absl::Status understood = CombineStatuses(statuses);
  if (!understood.ok()) return understood;
  for (size_t i = 0; i < mine.knobs.size() && i < kMaxKnobs; ++i) {
    absl::Status equal = CompareKnob(*records, i, mine.knobs[i].first);
    if (!equal.ok()) return equal;
  }
  return absl::OkStatus();
}

}  // namespace sluice::bench
