// Names for operations and memory.
#include "fakes/operations_log.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor/check.h"

namespace sluice {

std::vector<std::string> OperationsLog::Take() { return std::exchange(lines_, {}); }

std::string OperationsLog::Number(absl::string_view word) {
  return absl::StrCat(word, " ", ++numbers_[std::string(word)]);
}

void OperationsLog::Name(const std::byte* data, size_t bytes, absl::string_view name, size_t unit) {
  areas_.push_back({data, bytes, std::string(name), unit});
}

std::string OperationsLog::Place(const std::byte* data, size_t bytes) const {
  const auto found = std::find_if(areas_.rbegin(), areas_.rend(), [data](const Area& area) {
    return std::less_equal<>()(area.data, data) && std::less<>()(data, area.data + area.bytes);
  });
  SLUICE_CHECK(found != areas_.rend(), "an operation on memory that has no name");
  size_t begin = static_cast<size_t>(data - found->data);
  std::string name = found->name;
  if (found->unit > 0) {
    absl::StrAppend(&name, " ", begin / found->unit);
    begin %= found->unit;
  }
  return absl::StrCat(name, "[", begin, ",", begin + bytes, ")");
}

std::string OperationsLog::Place(const std::byte* data, size_t bytes, size_t row_bytes,
                                 size_t stride_bytes) const {
  if (row_bytes == 0 || row_bytes == bytes) return Place(data, bytes);
  const size_t rows = bytes / row_bytes;
  return absl::StrCat(Place(data, row_bytes + (rows - 1) * stride_bytes), " as ", rows, " rows of ",
                      row_bytes);
}

bool LoggedOperations::End(absl::string_view name, const absl::Status& status) {
  const auto found = std::find_if(open_.begin(), open_.end(), [name](const LoggedOperation& each) {
    return each.name == name;
  });
  if (found == open_.end()) return false;
  found->status = status;
  ended_.push_back(std::move(*found));
  open_.erase(found);
  return true;
}

void LoggedOperations::EndAll() {
  ended_.insert(ended_.end(), open_.begin(), open_.end());
  open_.clear();
}

void LoggedOperations::Forget() {
  open_.clear();
  ended_.clear();
}

bool LoggedOperations::Take(LoggedOperation* ended) {
  if (ended_.empty()) return false;
  *ended = std::move(ended_.front());
  ended_.pop_front();
  return true;
}

}  // namespace sluice
