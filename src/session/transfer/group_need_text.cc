// Numbers in a row.
#include "session/transfer/group_need_text.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

std::vector<int64_t*> NumbersOf(GroupNeed* need) {
  return {&need->round,
          &need->phase,
          &need->channel_round,
          &need->channel_phase,
          &need->operations_round,
          &need->operations_phase,
          &need->operation_bytes};
}

}  // namespace

std::string TextOf(GroupNeed need) {
  return absl::StrJoin(NumbersOf(&need), " ",
                       [](std::string* text, const int64_t* n) { absl::StrAppend(text, *n); });
}

absl::StatusOr<GroupNeed> NeedFrom(const std::string& text, int rank) {
  GroupNeed need;
  const std::vector<int64_t*> numbers = NumbersOf(&need);
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  bool is_read = words.size() == numbers.size();
  for (size_t i = 0; is_read && i < words.size(); ++i) {
    is_read = absl::SimpleAtoi(words[i], numbers[i]);
  }
  if (is_read) return need;
  return DisagreementError(RankInWords(rank),
                           " runs another build of Sluice: what it says of its groups ",
                           "has another form");
}

}  // namespace sluice
