// Reading and changing the table.
#include "world/store/store_table.h"

#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"
#include "world/store/store_check.h"

namespace sluice {
namespace {

// So many changes are remembered by their keys.
constexpr size_t kRememberedChanges = 4096;
// The cost of a list's entry beside its bytes.
constexpr size_t kListEntryBytes = 16;

int64_t SizeOf(absl::string_view key, absl::string_view value) {
  return static_cast<int64_t>(key.size() + value.size());
}

}  // namespace

const std::string* StoreTable::Find(absl::string_view key) const {
  const auto at = entries_.find(key);
  return at == entries_.end() ? nullptr : &at->second.value;
}

absl::Status StoreTable::Put(absl::string_view key, absl::string_view value, uint64_t hold) {
  SLUICE_RETURN_IF_ERROR(CheckStoreKey(key));
  SLUICE_RETURN_IF_ERROR(CheckStoreValue(key, value));
  const auto at = entries_.find(key);
  if (value.empty()) {
    if (at == entries_.end()) return absl::OkStatus();
    bytes_ -= SizeOf(at->first, at->second.value);
    entries_.erase(at);
    Note(key);
    return absl::OkStatus();
  }
  const int64_t before = at == entries_.end() ? 0 : SizeOf(at->first, at->second.value);
  const int64_t after = bytes_ - before + SizeOf(key, value);
  if (after > max_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("the store is full: with the key ",
                                                     Quoted(key), " it would have ", after,
                                                     " bytes, more than ", max_bytes_));
  }
  if (at == entries_.end()) {
    if (static_cast<int64_t>(entries_.size()) >= max_keys_) {
      return absl::ResourceExhaustedError(absl::StrCat("the store is full: it has ", max_keys_,
                                                       " keys, and none may come: ", Quoted(key)));
    }
    entries_.emplace(std::string(key), Entry{std::string(value), hold});
  } else {
    if (at->second.value == value) return absl::OkStatus();  // no change
    at->second.value = std::string(value);
  }
  bytes_ = after;
  Note(key);
  return absl::OkStatus();
}

void StoreTable::Note(absl::string_view key) {
  ++version_;
  changed_.emplace_back(key);
  if (changed_.size() > kRememberedChanges) changed_.pop_front();
  if (on_change_) on_change_(key);
}

absl::Status StoreTable::Set(absl::string_view key, absl::string_view value) {
  return Put(key, value, 0);
}

absl::StatusOr<int64_t> StoreTable::Add(absl::string_view key, int64_t delta) {
  int64_t number = 0;
  const std::string* const value = Find(key);
  if (value != nullptr && !absl::SimpleAtoi(*value, &number)) {
    return absl::InvalidArgumentError(absl::StrCat("the value of the store's key ", Quoted(key),
                                                   " is no number to add to: ", Quoted(*value)));
  }
  int64_t sum = 0;
  if (__builtin_add_overflow(number, delta, &sum)) {
    return absl::OutOfRangeError(absl::StrCat("the sum of the store's key ", Quoted(key),
                                              " does not fit: ", number, " and ", delta));
  }
  SLUICE_RETURN_IF_ERROR(Put(key, absl::StrCat(sum), 0));
  return sum;
}

absl::StatusOr<std::string> StoreTable::CompareSet(absl::string_view key,
                                                   absl::string_view expected,
                                                   absl::string_view desired) {
  SLUICE_RETURN_IF_ERROR(CheckStoreKey(key));
  SLUICE_RETURN_IF_ERROR(CheckStoreValue(key, expected));
  SLUICE_RETURN_IF_ERROR(CheckStoreValue(key, desired));
  const std::string* const value = Find(key);
  const absl::string_view now = value == nullptr ? absl::string_view() : *value;
  if (now != expected) return std::string(now);
  SLUICE_RETURN_IF_ERROR(Put(key, desired, 0));
  return std::string(desired);
}

absl::StatusOr<StoreEntries> StoreTable::List(absl::string_view prefix) const {
  SLUICE_RETURN_IF_ERROR(CheckStorePrefix(prefix));
  StoreEntries entries;
  size_t bytes = 0;
  for (auto at = entries_.lower_bound(prefix);
       at != entries_.end() && absl::StartsWith(at->first, prefix); ++at) {
    bytes += at->first.size() + at->second.value.size() + kListEntryBytes;
    if (bytes > kMaxStoreListBytes) {
      return absl::ResourceExhaustedError(absl::StrCat("what lies below the store's prefix ",
                                                       Quoted(prefix), " is more than ",
                                                       kMaxStoreListBytes, " bytes"));
    }
    entries.emplace_back(at->first, at->second.value);
  }
  return entries;
}

absl::StatusOr<uint64_t> StoreTable::Hold(absl::string_view key, absl::string_view value) {
  if (const auto at = entries_.find(key); at != entries_.end()) {
    return absl::AlreadyExistsError(absl::StrCat("the store's key ", Quoted(key),
                                                 at->second.hold != 0
                                                     ? " is held already, by one who lives"
                                                     : " has a value already, which nobody holds"));
  }
  SLUICE_RETURN_IF_ERROR(Put(key, value, holds_ + 1));
  return ++holds_;
}

void StoreTable::Release(absl::string_view key, uint64_t hold) {
  const auto at = entries_.find(key);
  if (at == entries_.end() || at->second.hold != hold || hold == 0) return;
  // The key may be the caller's only in this entry.
  const std::string removed = at->first;
  static_cast<void>(Put(removed, "", 0));
}

bool StoreTable::ChangedSince(absl::string_view prefix, uint64_t version) const {
  if (version == version_) return false;
  const uint64_t changes = version_ - version;  // huge, for a version of elsewhere
  if (changes > changed_.size()) return true;
  for (size_t i = changed_.size() - static_cast<size_t>(changes); i < changed_.size(); ++i) {
    if (absl::StartsWith(changed_[i], prefix)) return true;
  }
  return false;
}

}  // namespace sluice
