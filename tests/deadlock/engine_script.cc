// The interpreter of engine scripts: several engines, and the world between them.
#include "deadlock/engine_script.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "deadlock/script_engine.h"
#include "deadlock/script_words.h"
#include "tensor/check.h"

namespace sluice::deadlock {
namespace {

class Interpreter {
 public:
  std::string Answer(absl::string_view line) {
    ScriptWords words(line);
    std::string answer = Obey(words);
    SLUICE_CHECK(words.AllTaken(), "a script names an unknown option");
    return answer;
  }

 private:
  std::string Obey(ScriptWords& words) {
    if (words.name() == "settle") return Settle();
    if (words.name() == "engine") {
      rank_ = words.Take("rank", 0);
      engines_.insert_or_assign(rank_, ScriptEngine(words));
      return "";
    }
    if (words.name() == "rank") {
      rank_ = static_cast<int>(words.number());
      SLUICE_CHECK(engines_.count(rank_) > 0, "a script speaks to a rank without an engine");
      return "";
    }
    return engines_.at(rank_).Answer(words);
  }

  // Goes on until nothing can happen, and says what is left.
  std::string Settle() {
    bool any = true;
    while (any) {
      any = false;
      for (auto& [rank, engine] : engines_) any |= engine.ObeyAll();
      for (auto& [rank, engine] : engines_) any |= FinishAll(engine);
    }
    std::string left;
    for (const auto& [rank, engine] : engines_) {
      for (const auto& [number, bucket] : engine.buckets()) {
        if (HasEnded(bucket.stage)) continue;
        absl::StrAppend(&left, "rank ", rank, ": ", number, " ", StageName(bucket.stage),
                        bucket.under_way ? "" : ", without a command", "\n");
      }
    }
    return left.empty() ? "all finished\n" : "stalled\n" + left;
  }

  bool FinishAll(ScriptEngine& engine) {
    bool any = false;
    for (const auto& [number, bucket] : engine.buckets()) {
      const bool can = bucket.under_way && (bucket.stage != Stage::kMoving || AllMove(number));
      if (can) engine.Finish(number);
      any |= can;
    }
    return any;
  }

  // True if every engine that has the bucket has begun to move it.
  bool AllMove(int64_t number) const {
    return std::all_of(engines_.begin(), engines_.end(), [number](const auto& engine) {
      const auto found = engine.second.buckets().find(number);
      return found == engine.second.buckets().end() || found->second.stage >= Stage::kMoving;
    });
  }

  std::map<int, ScriptEngine> engines_;  // by rank
  int rank_ = 0;                         // whose engine the commands are for
};

}  // namespace

std::string RunEngineScript(absl::string_view script) {
  Interpreter interpreter;
  std::string output;
  for (const absl::string_view line : absl::StrSplit(script, '\n')) {
    if (line.empty() || line[0] == '#') {
      absl::StrAppend(&output, line, "\n");
    } else if (line[0] == '>') {
      absl::StrAppend(&output, line, "\n", interpreter.Answer(line.substr(1)));
    }
  }
  while (absl::EndsWith(output, "\n\n")) output.pop_back();
  return output;
}

}  // namespace sluice::deadlock
