// How members exchange their cards at the store: each calls it a few times, however many they are.
#ifndef SLUICE_SRC_WORLD_MEETING_H_
#define SLUICE_SRC_WORLD_MEETING_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/store.h"
#include "transport/deadline.h"
#include "world/card.h"
#include "world/member.h"

namespace sluice {

// Below which a meeting's keys lie. `name` has no '/'.
std::string MeetingPrefix(absl::string_view world, absl::string_view name);

// Ends a meeting with an error, in which `who` need not take part. Returns the word that counts now
// for those who wait there: of this member, of another one that has failed, or that all have come.
absl::StatusOr<std::string> SayFailed(Store& store, absl::string_view prefix,
                                      const StoredMember& who, const absl::Status& status);
// The keys of that word, and of the count of those who have come.
std::string WordKey(absl::string_view prefix);
std::string CountKey(absl::string_view prefix);

// One meeting of a list of members, which its prefix names. Thread: one.
class Meeting {
 public:
  // `members` in the order of ranks, this one at `rank`.
  Meeting(std::shared_ptr<Store> store, std::string prefix, std::vector<StoredMember> members,
          int rank)
      : store_(std::move(store)),
        prefix_(std::move(prefix)),
        members_(std::move(members)),
        rank_(rank) {}
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  // Whether it has failed before this member came: then the next one counts.
  absl::StatusOr<bool> IsOver();

  // The cards of all, by rank, once all have come. `check` is asked every second, and sooner at
  // first, whether the members are still there. An error here ends the meeting for all members that
  // wait, and is the same on all. DeadlineExceeded names those that have not come.
  absl::StatusOr<std::vector<Card>> Exchange(const Card& own, const Deadline& limit,
                                             absl::FunctionRef<absl::Status()> check);

  // Ends it with an error on all members that wait in it, unless all have come. False: all have.
  bool Fail(const absl::Status& status);

  // This member's keys at the store. Others may need it until all are known to have the cards, or
  // until this member leaves.
  std::vector<std::string> OwnKeys() const;

  const std::vector<StoredMember>& members() const { return members_; }
  int rank() const { return rank_; }
  const StoredMember& member(size_t rank) const { return members_[rank]; }

 private:
  absl::StatusOr<std::vector<Card>> Meet(const Card& own, const Deadline& limit,
                                         absl::FunctionRef<absl::Status()> check);
  absl::Status WaitForWord(const Deadline& limit, absl::FunctionRef<absl::Status()> check);
  // Says that this member has failed. The word that counts.
  absl::StatusOr<std::string> Say(const absl::Status& status);
  absl::StatusOr<StoreEntries> ListCards();
  absl::StatusOr<std::vector<Card>> Cards();
  absl::Status NameThoseLate(const Deadline& limit);
  // Members that have not come, and the lowest rank that has.
  absl::StatusOr<std::vector<std::string>> ThoseLate(int* first_here);
  // For whom the members wait, as a line of LongWait.
  std::string WaitedFor();
  std::string CardKey(int rank) const;

  const std::shared_ptr<Store> store_;
  const std::string prefix_;
  const std::vector<StoredMember> members_;
  const int rank_;
  bool has_word_ = false;  // the word is of this member
};

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_MEETING_H_
