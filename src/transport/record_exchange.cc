// Records of any length, in pieces of one length.
#include <algorithm>
#include <array>
#include <cstring>

#include "sluice/fabric.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

// How a record begins. Most are empty, or are a few numbers.
struct Beginning {
  uint64_t bytes = 0;  // of the whole record
  std::array<char, 120> text = {};
};

absl::Span<const std::byte> BytesOf(const void* data, size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

}  // namespace

absl::Status RecordExchange::Start(absl::string_view record) {
  record_ = std::string(record);
  sizes_.clear();
  Beginning mine;
  mine.bytes = record.size();
  record.copy(mine.text.data(), mine.text.size());
  absl::Status status = fabric_->StartAllGather(BytesOf(&mine, sizeof(mine)));
  out_of_step_ = !status.ok();
  return status;
}

absl::StatusOr<bool> RecordExchange::Poll(std::vector<std::string>* records,
                                          std::vector<int>* missing) {
  out_of_step_ = true;
  while (true) {
    SLUICE_ASSIGN_OR_RETURN(const bool done, fabric_->PollAllGather(&all_, missing));
    if (!done) {
      SLUICE_RETURN_IF_ERROR(fabric_->CheckRanks());
      return false;
    }
    ++gathers_;
    if (!sizes_.empty()) {
      TakePieces(records);
    } else if (absl::Status status = TakeBeginnings(records); !status.ok()) {
      out_of_step_ = false;
      return status;
    }
    if (begin_ >= longest_) {
      out_of_step_ = false;
      return true;
    }
    SLUICE_RETURN_IF_ERROR(StartPiece());
  }
}

absl::Status RecordExchange::TakeBeginnings(std::vector<std::string>* records) {
  const auto ranks = static_cast<size_t>(fabric_->size());
  std::vector<Beginning> beginnings(ranks);
  std::memcpy(static_cast<void*>(beginnings.data()), all_.data(), all_.size());
  // The sum of what ranks say may overflow.
  const auto bytes_max = static_cast<uint64_t>(bytes_max_);
  uint64_t bytes = 0;
  for (const Beginning& each : beginnings) bytes += std::min(each.bytes, bytes_max + 1 - bytes);
  const auto largest =
      std::max_element(beginnings.begin(), beginnings.end(),
                       [](const Beginning& a, const Beginning& b) { return a.bytes < b.bytes; });
  if (bytes > bytes_max) {
    return MakeError(absl::StatusCode::kResourceExhausted, "the ranks' records are more than ",
                     bytes_max, " bytes: ", RankInWords(largest - beginnings.begin()),
                     " alone has ", largest->bytes);
  }
  longest_ = largest->bytes;
  begin_ = largest->text.size();
  if (records != nullptr) records->assign(ranks, "");
  for (size_t r = 0; r < ranks; ++r) {
    const Beginning& each = beginnings[r];
    sizes_.push_back(each.bytes);
    if (records == nullptr) continue;
    (*records)[r].assign(each.text.data(), std::min<uint64_t>(each.bytes, each.text.size()));
  }
  return absl::OkStatus();
}

void RecordExchange::TakePieces(std::vector<std::string>* records) {
  const auto* const pieces = reinterpret_cast<const char*>(all_.data());
  for (size_t r = 0; records != nullptr && r < sizes_.size(); ++r) {
    if (begin_ >= sizes_[r]) continue;
    (*records)[r].append(pieces + r * piece_.size(),
                         std::min<uint64_t>(sizes_[r] - begin_, piece_.size()));
  }
  begin_ += piece_.size();
}

absl::Status RecordExchange::StartPiece() {
  piece_.assign(std::min<uint64_t>(longest_ - begin_, Fabric::kMaxRecordBytes), '\0');
  if (begin_ < record_.size()) record_.copy(piece_.data(), piece_.size(), begin_);
  return fabric_->StartAllGather(BytesOf(piece_.data(), piece_.size()));
}

}  // namespace sluice
