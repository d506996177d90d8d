// A key for each member that waits, which goes with its process.
#include "world/waiting_call.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tensor/error_text.h"

namespace sluice {

std::string WaitsPrefix(absl::string_view world) { return absl::StrCat(world, "/waits/"); }

WaitingCall::WaitingCall(std::shared_ptr<Store> store, absl::string_view world,
                         absl::string_view member, std::string meeting, absl::Duration lease)
    : store_(std::move(store)),
      prefix_(WaitsPrefix(world)),
      key_(absl::StrCat(prefix_, member)),
      meeting_(std::move(meeting)),
      lease_length_(lease),
      quiet_(absl::Seconds(1)) {}

absl::StatusOr<std::map<std::string, std::string>> WaitingCall::Others() {
  std::map<std::string, std::string> others;
  if (!quiet_.Passed()) return others;
  if (lease_ == nullptr || !lease_->status().ok()) {
    absl::StatusOr<std::unique_ptr<StoreLease>> lease = store_->Hold(key_, meeting_, lease_length_);
    // A hold over a connection that has broken may stand a while longer.
    if (!lease.ok() && !absl::IsAlreadyExists(lease.status())) return lease.status();
    if (lease.ok()) lease_ = *std::move(lease);
  }
  SLUICE_ASSIGN_OR_RETURN(const StoreEntries entries, store_->List(prefix_));
  for (const auto& [key, meeting] : entries) {
    if (key != key_) others.emplace(absl::StripPrefix(key, prefix_), meeting);
  }
  return others;
}

}  // namespace sluice
