// Leases of places.
#include "world/registration.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "world/attendance.h"

namespace sluice {
namespace {

// Who has the place, for the error of who has not got it.
absl::Status Taken(Store* store, const std::string& key, const Member& member) {
  const absl::StatusOr<std::string> text = store->Get(key, absl::ZeroDuration());
  const absl::StatusOr<Member> holder = text.ok() ? ParseMember(*text) : text.status();
  return absl::AlreadyExistsError(absl::StrCat(
      member.Describe(),
      " cannot join: ", holder.ok() ? holder->Describe() : absl::StrCat("another ", member.Name()),
      " is in this world already"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Registration>> Registration::Make(std::shared_ptr<Store> store,
                                                                 std::string world, Member member,
                                                                 absl::Duration lease) {
  const absl::StatusOr<int64_t> number = store->Add(absl::StrCat(world, "/count"), 1);
  if (!number.ok()) return number.status();
  member.number = *number;
  std::unique_ptr<Registration> registration(
      new Registration(std::move(store), std::move(world), std::move(member), lease));
  if (absl::Status status = registration->Hold(); !status.ok()) return status;
  return registration;
}

absl::Status Registration::Hold() {
  const std::string key = HereKey(world_, member_.role, member_.rank);
  const std::string text = MemberText(member_);
  absl::StatusOr<std::unique_ptr<Lease>> lease = store_->Hold(key, text, lease_length_);
  if (absl::IsAlreadyExists(lease.status())) return Taken(store_.get(), key, member_);
  if (!lease.ok()) return lease.status();
  lease_ = *std::move(lease);
  return store_->Set(SaidKey(world_, member_.role, member_.rank), text);
}

absl::Status Registration::Keep() {
  if (is_held()) return absl::OkStatus();
  lease_.reset();
  return Hold();
}

Registration::~Registration() {
  if (!is_held()) return;
  // Only its own word, lest it takes back a successor's.
  static_cast<void>(
      store_->CompareSet(SaidKey(world_, member_.role, member_.rank), MemberText(member_), ""));
  static_cast<void>(lease_->Release());
}

}  // namespace sluice
