// Cards, a count of those who have come, and a word that ends the wait.
#include "world/meeting.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "tensor/error_text.h"
#include "transport/say_once.h"
#include "world/attendance.h"
#include "world/store/store_check.h"

namespace sluice {
namespace {

constexpr absl::string_view kAllHere = "all here";
constexpr absl::string_view kFailed = "failed ";
constexpr size_t kErrorBytesMax = 2000;
// How often a member that waits looks who is still there: seldom, but soon at first.
constexpr absl::Duration kWordLook = absl::Seconds(1);
constexpr absl::Duration kFirstWordLook = absl::Milliseconds(50);
constexpr absl::Duration kFirstWordLookPerMember = absl::Milliseconds(1);

std::string FailedWord(const StoredMember& who, const absl::Status& status) {
  return absl::StrCat(kFailed, static_cast<int>(status.code()), " on ", who.Describe(), ": ",
                      status.message().substr(0, kErrorBytesMax), "\n",
                      FieldBytes(FieldsOf(status), kErrorBytesMax));
}

// Reads the error in a word that ends a meeting: "failed 14 on server 3 (process 4711 on node7):
// why", and the error's fields in a line of their own.
absl::Status FailureIn(absl::string_view word) {
  const size_t line = std::min(word.rfind('\n'), word.size());
  const absl::string_view fields = word.substr(std::min(line + 1, word.size()));
  word = word.substr(0, line);
  const size_t end = word.find(" on ");
  int code = 0;
  if (!absl::ConsumePrefix(&word, kFailed) || end == word.npos || end < kFailed.size() ||
      !absl::SimpleAtoi(word.substr(0, end - kFailed.size()), &code) || code < 1 || code > 16) {
    return absl::DataLossError("what the store says of the others is garbage");
  }
  return WithFieldBytes(
      absl::Status(static_cast<absl::StatusCode>(code),
                   absl::StrCat("MakeFabric failed", word.substr(end - kFailed.size()))),
      fields);
}

}  // namespace

std::string MeetingPrefix(absl::string_view world, absl::string_view name) {
  return absl::StrCat(world, "/fabric/", name, "/");
}

std::string WordKey(absl::string_view prefix) { return absl::StrCat(prefix, "word"); }

std::string CountKey(absl::string_view prefix) { return absl::StrCat(prefix, "count"); }

absl::StatusOr<std::string> SayFailed(Store& store, absl::string_view prefix,
                                      const StoredMember& who, const absl::Status& status) {
  return store.CompareSet(WordKey(prefix), "", FailedWord(who, status));
}

// Digits, so that keys are sorted by rank.
std::string Meeting::CardKey(int rank) const {
  return absl::StrCat(prefix_, "card/", absl::StrFormat("%06d", rank));
}

std::vector<std::string> Meeting::OwnKeys() const {
  std::vector<std::string> keys = {CardKey(rank_)};
  if (has_word_ || rank_ == 0) keys.push_back(WordKey(prefix_));
  if (rank_ == 0) keys.push_back(CountKey(prefix_));
  return keys;
}

absl::StatusOr<bool> Meeting::IsOver() {
  const absl::StatusOr<std::string> word = store_->Get(WordKey(prefix_), absl::ZeroDuration());
  if (absl::IsDeadlineExceeded(word.status())) return false;
  if (!word.ok()) return word.status();
  return absl::StartsWith(*word, kFailed);
}

absl::StatusOr<std::vector<Card>> Meeting::Exchange(const Card& own, const Deadline& limit,
                                                    absl::FunctionRef<absl::Status()> check) {
  absl::StatusOr<std::vector<Card>> cards = Meet(own, limit, check);
  if (cards.ok()) return cards;
  const absl::StatusOr<std::string> word = Say(cards.status());
  if (!word.ok() || has_word_) return cards;
  // Members that this one has given up waiting for may have come at the last moment. Else all that
  // wait end with one error.
  if (*word == kAllHere) return Cards();
  return FailureIn(*word);
}

bool Meeting::Fail(const absl::Status& status) {
  const absl::StatusOr<std::string> word = Say(status);
  return !word.ok() || *word != kAllHere;
}

absl::StatusOr<std::string> Meeting::Say(const absl::Status& status) {
  const StoredMember& own = member(static_cast<size_t>(rank_));
  absl::StatusOr<std::string> word = SayFailed(*store_, prefix_, own, status);
  has_word_ = word.ok() && *word == FailedWord(own, status);
  return word;
}

absl::StatusOr<std::vector<Card>> Meeting::Meet(const Card& own, const Deadline& limit,
                                                absl::FunctionRef<absl::Status()> check) {
  SLUICE_RETURN_IF_ERROR(store_->Set(CardKey(rank_), CardBytes(own)));
  SLUICE_ASSIGN_OR_RETURN(const int64_t count, store_->Add(CountKey(prefix_), 1));
  if (count == static_cast<int64_t>(members_.size())) {
    SLUICE_RETURN_IF_ERROR(store_->CompareSet(WordKey(prefix_), "", kAllHere).status());
  }
  SLUICE_RETURN_IF_ERROR(WaitForWord(limit, check));
  return Cards();
}

absl::Status Meeting::WaitForWord(const Deadline& limit, absl::FunctionRef<absl::Status()> check) {
  const auto members = static_cast<int64_t>(members_.size());
  LongWait long_wait;
  absl::Duration look = std::clamp(kFirstWordLookPerMember * members, kFirstWordLook, kWordLook);
  while (true) {
    const absl::StatusOr<std::string> word =
        store_->Get(WordKey(prefix_), std::min(limit.Left(), look));
    look = std::min(2 * look, kWordLook);
    if (word.ok() && *word == kAllHere) return absl::OkStatus();
    if (word.ok()) return FailureIn(*word);
    if (!absl::IsDeadlineExceeded(word.status())) return word.status();
    SLUICE_RETURN_IF_ERROR(check());
    if (limit.Passed()) return NameThoseLate(limit);
    long_wait.Look([this] { return WaitedFor(); });
  }
}

absl::StatusOr<std::vector<std::string>> Meeting::ThoseLate(int* first_here) {
  SLUICE_ASSIGN_OR_RETURN(const StoreEntries entries, ListCards());
  std::vector<std::string> late;
  for (int rank = static_cast<int>(members_.size()) - 1; rank >= 0; --rank) {
    const std::string key = CardKey(rank);
    const bool has_come = std::any_of(entries.begin(), entries.end(),
                                      [&](const auto& entry) { return entry.first == key; });
    if (has_come) *first_here = rank;
    if (!has_come) late.push_back(members_[static_cast<size_t>(rank)].Describe());
  }
  std::reverse(late.begin(), late.end());
  return late;
}

// One of those that wait says it for all.
std::string Meeting::WaitedFor() {
  int first_here = rank_;
  const absl::StatusOr<std::vector<std::string>> late = ThoseLate(&first_here);
  if (!late.ok() || late->empty() || first_here != rank_) return "";
  return absl::StrCat(NamesText(*late), " to call for a session or fabric");
}

absl::Status Meeting::NameThoseLate(const Deadline& limit) {
  int first_here = rank_;
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::string> late, ThoseLate(&first_here));
  if (late.empty()) return absl::DeadlineExceededError("the last members have come too late");
  return absl::DeadlineExceededError(
      absl::StrCat(NamesText(late), late.size() == 1 ? " has" : " have",
                   " not called MakeFabric within ", DurationText(limit.timeout())));
}

// A thousand at a time: a store lists so many bytes at once.
absl::StatusOr<StoreEntries> Meeting::ListCards() {
  StoreEntries all;
  for (size_t first = 0; first < members_.size(); first += 1000) {
    const std::string thousand = CardKey(static_cast<int>(first));
    SLUICE_ASSIGN_OR_RETURN(StoreEntries entries, store_->List(absl::string_view(thousand).substr(
                                                      0, thousand.size() - 3)));
    std::move(entries.begin(), entries.end(), std::back_inserter(all));
  }
  return all;
}

absl::StatusOr<std::vector<Card>> Meeting::Cards() {
  SLUICE_ASSIGN_OR_RETURN(const StoreEntries entries, ListCards());
  if (entries.size() != members_.size()) {
    return absl::UnavailableError(absl::StrCat("only ", entries.size(), " of ", members_.size(),
                                               " members have their address at the store"));
  }
  std::vector<Card> cards;
  cards.reserve(members_.size());
  for (size_t rank = 0; rank < members_.size(); ++rank) {
    SLUICE_ASSIGN_OR_RETURN(Card card,
                            Annotate(ParseCard(entries[rank].second), members_[rank].Describe()));
    cards.push_back(std::move(card));
  }
  return cards;
}

}  // namespace sluice
