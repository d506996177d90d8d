// Comparing one fixed-size record per rank.
#include "session/peers/agreement.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "tensor/check.h"
#include "tensor/error_text.h"
#include "transport/wire_status.h"

namespace sluice {
namespace {

// Ranks of one job may run different builds: a record of another format is reported as such.
constexpr uint32_t kRecordFormat = 0x51c30007;

// The record that goes over the wire: trivially copyable, the same size on all ranks.
struct Record {
  uint32_t format;
  char call[16];
  int64_t values[Proposal::kMaxValues];
  BucketId bucket;
  WireStatus<512> status;
  uint32_t payload_bytes;
  char payload[Proposal::kMaxPayloadBytes];
};
static_assert(sizeof(Record) <= Fabric::kMaxRecordBytes);

void CopyText(absl::string_view text, absl::Span<char> out) {
  const size_t length = std::min(text.size(), out.size() - 1);
  std::copy_n(text.begin(), length, out.begin());
  out[length] = '\0';
}

Record Encode(const Proposal& proposal) {
  Record record{};
  record.format = kRecordFormat;
  record.bucket = proposal.bucket;
  CopyText(proposal.call, absl::MakeSpan(record.call));
  record.status = WireStatus<512>(proposal.status);
  for (size_t i = 0; i < proposal.values.size(); ++i) record.values[i] = proposal.values[i].value;
  record.payload_bytes = static_cast<uint32_t>(proposal.payload.size());
  std::copy(proposal.payload.begin(), proposal.payload.end(), record.payload);
  return record;
}

Record Decode(absl::Span<const std::byte> all, int rank) {
  Record record;
  std::memcpy(&record, all.data() + static_cast<size_t>(rank) * sizeof(Record), sizeof(Record));
  record.call[sizeof(record.call) - 1] = '\0';
  record.payload_bytes =
      std::min(record.payload_bytes, static_cast<uint32_t>(sizeof(record.payload)));
  return record;
}

// Says who has which value, most ranks first: "8 on ranks 0-2, 4 on rank 3".
template <typename T>
ErrorText WhoHasWhat(const std::map<T, std::vector<int>>& ranks_by_value, bool show_values) {
  std::vector<std::pair<const T*, const std::vector<int>*>> order;
  order.reserve(ranks_by_value.size());
  for (const auto& [value, ranks] : ranks_by_value) order.emplace_back(&value, &ranks);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second->size() > b.second->size();
  });
  ErrorText text;
  for (const auto& [value, ranks] : order) {
    text.Add(text.empty() ? "" : show_values ? ", " : " differ from ");
    if (show_values) text.Add(*value, " on ");
    text.Add(NamedRanks(*ranks));
  }
  return text;
}

}  // namespace

absl::Status Agreement::Start(Proposal proposal, absl::Duration timeout) {
  SLUICE_CHECK(ended_, "an agreement is under way");
  SLUICE_CHECK(proposal.values.size() <= Proposal::kMaxValues, "too many values to agree on");
  SLUICE_CHECK(proposal.payload.size() <= Proposal::kMaxPayloadBytes, "the payload is too long");
  proposal_ = std::move(proposal);
  ++number_;
  deadline_ = Deadline(timeout);
  out_of_step_ = false;
  const Record record = Encode(proposal_);
  absl::Status status = fabric_->StartAllGather(
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&record), sizeof(record)));
  if (status.ok()) ended_ = false;
  return status;
}

bool Agreement::Poll() {
  if (ended_ || Look(nullptr)) return true;
  if (deadline_.Passed()) GiveUp(deadline_.timeout());
  return ended_;
}

bool Agreement::Look(std::vector<int>* missing) {
  const absl::StatusOr<bool> gathered = fabric_->PollAllGather(&all_, missing);
  if (gathered.ok() && !*gathered) return false;
  out_of_step_ = !gathered.ok();
  outcome_ = gathered.ok() ? Compare(all_) : gathered.status();
  ended_ = true;
  return true;
}

const std::vector<int>& Agreement::FindMissing() {
  if (ended_ || Look(&missing_)) missing_.clear();
  return missing_;
}

std::string Agreement::Awaits() {
  const std::vector<int>& missing = FindMissing();
  return missing.empty() ? ""
                         : absl::StrCat(NamedRanks(missing).text(), " to call ", proposal_.call);
}

void Agreement::GiveUp(absl::Duration after, const ErrorText& note) {
  if (ended_ || Look(&missing_)) return;
  const std::string lacking =
      proposal_.lacking.empty() ? absl::StrCat("did not call ", proposal_.call) : proposal_.lacking;
  outcome_ = MakeError(absl::StatusCode::kDeadlineExceeded, NamedRanks(missing_), " ", lacking,
                       " within ", absl::FormatDuration(after), note.empty() ? "" : "; ", note);
  out_of_step_ = true;
  ended_ = true;
}

std::string Agreement::payload(int rank) const {
  const Record record = Decode(all_, rank);
  return std::string(record.payload, record.payload_bytes);
}

// Mostly all ranks agree: one pass over the records, which allocates nothing, finds that out.
absl::Status Agreement::Compare(absl::Span<const std::byte> all) {
  const Record own = Encode(proposal_);
  bool equal = true;
  largest_bucket_ = BucketId();
  for (int rank = 0; rank < fabric_->size(); ++rank) {
    const Record record = Decode(all, rank);
    largest_bucket_ = std::max(largest_bucket_, record.bucket);
    equal = equal && record.status.ok() && record.format == own.format &&
            std::strcmp(record.call, own.call) == 0 &&
            std::equal(std::begin(own.values), std::end(own.values), std::begin(record.values));
  }
  return equal ? absl::OkStatus() : Differences(all);
}

absl::Status Agreement::Differences(absl::Span<const std::byte> all) const {
  const int size = fabric_->size();
  std::vector<Record> records;
  records.reserve(static_cast<size_t>(size));
  std::map<uint32_t, std::vector<int>> by_format;
  std::map<std::string, std::vector<int>> by_call;
  std::vector<int> bad;
  for (int rank = 0; rank < size; ++rank) {
    const Record& record = records.emplace_back(Decode(all, rank));
    by_format[record.format].push_back(rank);
    by_call[record.call].push_back(rank);
    if (!record.status.ok()) bad.push_back(rank);
  }
  if (by_format.size() > 1) {
    return DisagreementError("ranks run different versions of Sluice: ",
                             WhoHasWhat(by_format, false));
  }
  if (by_call.size() > 1) {
    return DisagreementError("ranks make different calls: ", WhoHasWhat(by_call, true));
  }
  if (!bad.empty()) {
    // Everyone's own error says it best; otherwise the first bad rank's, by name.
    const Record& first = records[static_cast<size_t>(bad.front())];
    if (static_cast<int>(bad.size()) == size) return proposal_.status;
    return MakeError(first.status.code(), proposal_.call, " failed on ", NamedRanks(bad), ": ",
                     first.status.ToStatus());
  }
  for (size_t i = 0; i < proposal_.values.size(); ++i) {
    std::map<int64_t, std::vector<int>> by_value;
    for (int rank = 0; rank < size; ++rank) {
      by_value[records[static_cast<size_t>(rank)].values[i]].push_back(rank);
    }
    if (by_value.size() == 1) continue;
    return DisagreementError("ranks disagree on ", proposal_.values[i].name, " in ", proposal_.call,
                             ": ", WhoHasWhat(by_value, proposal_.values[i].shown));
  }
  // They give values that this rank does not know of.
  return absl::OkStatus();
}

}  // namespace sluice
