// The words of one command of an engine script.
#ifndef SLUICE_TESTS_DEADLOCK_SCRIPT_WORDS_H_
#define SLUICE_TESTS_DEADLOCK_SCRIPT_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/stage.h"

namespace sluice::deadlock {

// A name, plain words, and key=value pairs, each of which must be used. A script with anything else
// is a programming error of its writer.
class ScriptWords {
 public:
  explicit ScriptWords(absl::string_view line);

  const std::string& name() const { return plain_.at(0); }
  int64_t number() const;
  std::string RestFrom(size_t first) const;
  std::string Take(const std::string& key, std::string otherwise);
  int Take(const std::string& key, int otherwise);
  bool AllTaken() const { return pairs_.empty(); }

 private:
  std::vector<std::string> plain_;
  std::map<std::string, std::string> pairs_;
};

// "FMD" and back.
StageSet ParseStages(absl::string_view letters);
std::string StageLetters(StageSet stages);

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_DEADLOCK_SCRIPT_WORDS_H_
