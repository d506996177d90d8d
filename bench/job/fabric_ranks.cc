// Records of any length by pieces of one length: first how long they are and how they begin, then
// as many pieces as the longest one takes.
#include "job/fabric_ranks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "job/agreement.h"

namespace sluice::bench {
namespace {

// How a record begins. Most are empty, or are a few numbers.
struct Beginning {
  uint64_t bytes = 0;  // of the whole record
  std::array<char, 120> text = {};
};

std::string OwnHost() {
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

}  // namespace

FabricRanks::FabricRanks(std::unique_ptr<Fabric> fabric)
    : Ranks(fabric->rank(), fabric->size()), fabric_(std::move(fabric)) {}

absl::StatusOr<std::unique_ptr<Ranks>> FabricRanks::Create(std::unique_ptr<Fabric> fabric,
                                                           absl::Duration timeout) {
  auto ranks = std::unique_ptr<FabricRanks>(new FabricRanks(std::move(fabric)));
  absl::Status status = ranks->FindHosts(OwnHost(), timeout);
  if (!status.ok()) return status;
  return ranks;
}

absl::Status FabricRanks::Gather(const char* piece, size_t bytes, absl::Duration timeout,
                                 Progress progress) {
  absl::Status status = fabric_->StartAllGather({reinterpret_cast<const std::byte*>(piece), bytes});
  if (!status.ok()) return status;
  const auto is_done = [this]() -> absl::StatusOr<bool> {
    absl::StatusOr<bool> done = fabric_->PollAllGather(&all_, &missing_);
    if (!done.ok() || *done) return done;
    absl::Status ranks = fabric_->CheckRanks();
    if (!ranks.ok()) return ranks;
    return false;
  };
  return Await(
      is_done, [this] { return missing_; }, timeout, progress);
}

absl::StatusOr<std::vector<std::string>> FabricRanks::Exchange(const std::string& record,
                                                               bool keeps, absl::Duration timeout,
                                                               Progress progress) {
  Beginning mine;
  mine.bytes = record.size();
  std::memcpy(mine.text.data(), record.data(), std::min(record.size(), mine.text.size()));
  absl::Status status =
      Gather(reinterpret_cast<const char*>(&mine), sizeof(mine), timeout, progress);
  if (!status.ok()) return status;
  std::vector<uint64_t> sizes;
  std::vector<std::string> records(static_cast<size_t>(size()));
  uint64_t total = 0;
  for (size_t r = 0; r < records.size(); ++r) {
    Beginning beginning;
    std::memcpy(&beginning, all_.data() + r * sizeof(Beginning), sizeof(Beginning));
    sizes.push_back(beginning.bytes);
    total += std::min(beginning.bytes, uint64_t{std::numeric_limits<uint32_t>::max()});
    if (keeps) {
      records[r].assign(beginning.text.data(),
                        std::min<uint64_t>(beginning.bytes, beginning.text.size()));
    }
  }
  if (total > uint64_t{std::numeric_limits<int>::max()}) {
    return absl::ResourceExhaustedError("the ranks' results are more than 2 GiB");
  }
  const uint64_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::string piece;
  for (uint64_t begin = mine.text.size(); begin < longest; begin += piece.size()) {
    piece.assign(std::min<uint64_t>(longest - begin, Fabric::kMaxRecordBytes), '\0');
    if (begin < record.size()) record.copy(piece.data(), piece.size(), begin);
    status = Gather(piece.data(), piece.size(), timeout, progress);
    if (!status.ok()) return status;
    for (size_t r = 0; keeps && r < records.size(); ++r) {
      if (begin >= sizes[r]) continue;
      records[r].append(reinterpret_cast<const char*>(all_.data()) + r * piece.size(),
                        std::min<uint64_t>(sizes[r] - begin, piece.size()));
    }
  }
  return records;
}

absl::Status FabricRanks::Barrier(absl::Duration timeout, Progress progress) {
  return Exchange("", false, timeout, progress).status();
}

absl::StatusOr<std::vector<std::string>> FabricRanks::AllGather(const std::string& record,
                                                                absl::Duration timeout,
                                                                Progress progress) {
  return Exchange(record, true, timeout, progress);
}

absl::StatusOr<std::vector<std::string>> FabricRanks::GatherToFirst(const std::string& record,
                                                                    absl::Duration timeout,
                                                                    Progress progress) {
  auto records = Exchange(record, rank() == 0, timeout, progress);
  if (records.ok() && rank() != 0) records->clear();
  return records;
}

void FabricRanks::Part(absl::Duration timeout) { AwaitAll(timeout, fabric_.get()); }

}  // namespace sluice::bench
