// Lines in, lines out.
#include "session/script/session_script.h"

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "deadlock/script_words.h"
#include "session/script/checkpoint_rig.h"
#include "session/script/run_rig.h"
#include "session/script/script_rig.h"
#include "session/script/shard_rig.h"
#include "tensor/check.h"

namespace sluice::session_test {
namespace {

std::unique_ptr<ScriptRig> MakeRig(deadlock::ScriptWords& words) {
  if (words.name() == "runner") return std::make_unique<RunRig>(words);
  if (words.name() == "shards") return std::make_unique<ShardRig>(words);
  if (words.name() == "checkpoint") return std::make_unique<CheckpointRig>(words);
  return nullptr;
}

}  // namespace

std::string RunSessionScript(absl::string_view script) {
  std::unique_ptr<ScriptRig> rig;
  std::string output;
  for (const absl::string_view line : absl::StrSplit(script, '\n')) {
    if (absl::StartsWith(line, ">")) continue;
    absl::StrAppend(&output, line, "\n");
    if (line.empty() || line[0] == '#') continue;
    deadlock::ScriptWords words(line);
    std::unique_ptr<ScriptRig> made = MakeRig(words);
    if (made != nullptr) {
      rig = std::move(made);
    } else {
      SLUICE_CHECK(rig != nullptr, "a script begins with a machine");
      rig->Obey(words);
    }
    SLUICE_CHECK(words.AllTaken(), "a script names an unknown option");
    for (const std::string& told : rig->TakeLines()) absl::StrAppend(&output, "> ", told, "\n");
  }
  while (absl::EndsWith(output, "\n\n")) output.pop_back();
  return output;
}

}  // namespace sluice::session_test
