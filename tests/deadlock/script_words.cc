// Reading and writing the words of scripts.
#include "deadlock/script_words.h"

#include <array>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tensor/check.h"

namespace sluice::deadlock {
namespace {

constexpr std::array<std::pair<char, StageSet>, 3> kStageLetters = {
    {{'F', kStageFill}, {'M', kStageMove}, {'D', kStageDrain}}};

int64_t Number(absl::string_view text) {
  int64_t number = 0;
  SLUICE_CHECK(absl::SimpleAtoi(text, &number), "a script has text where a number belongs");
  return number;
}

}  // namespace

ScriptWords::ScriptWords(absl::string_view line) {
  for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (word.find('=') == absl::string_view::npos) {
      plain_.emplace_back(word);
    } else {
      pairs_.insert(pair);
    }
  }
}

int64_t ScriptWords::number() const { return Number(plain_.at(1)); }

std::string ScriptWords::RestFrom(size_t first) const {
  const std::vector<std::string> rest(plain_.begin() + static_cast<std::ptrdiff_t>(first),
                                      plain_.end());
  return absl::StrJoin(rest, " ");
}

std::string ScriptWords::Take(const std::string& key, std::string otherwise) {
  const auto found = pairs_.find(key);
  if (found == pairs_.end()) return otherwise;
  otherwise = found->second;
  pairs_.erase(found);
  return otherwise;
}

int ScriptWords::Take(const std::string& key, int otherwise) {
  return static_cast<int>(Number(Take(key, std::to_string(otherwise))));
}

StageSet ParseStages(absl::string_view letters) {
  StageSet set = 0;
  for (const char letter : letters) {
    StageSet stage = 0;
    for (const auto& [name, named] : kStageLetters) stage = name == letter ? named : stage;
    SLUICE_CHECK(stage != 0, "stages are spelled with F, M and D");
    set = static_cast<StageSet>(set | stage);
  }
  return set;
}

std::string StageLetters(StageSet stages) {
  std::string letters;
  for (const auto& [name, stage] : kStageLetters) {
    if ((stages & stage) != 0) letters += name;
  }
  return letters;
}

}  // namespace sluice::deadlock
