// Runs scripts/*.txt: events for a session's machines, and what these must do then.
//
//   `# a comment`, and blank lines    Kept as they are.
//   `> send 1 to 1 tag 0 hop 0: ...`  What the events before led to; replaced.
//   `done pack 1, send 2`             An event: everything else. These operations have ended, then
//                                     the machine goes on until nothing moves.
//
// Machines, each on fakes that write one log (fakes/operations_log.h); a new one ends the last:
//   `runner`      Runs of transfers: run_rig.h.
//   `shards`      Pieces of shards that the script makes up: shard_rig.h.
//   `checkpoint`  One rank's part of a load or a save: shard_rig.h.
//
// Events of all machines (of an operation that is not open, this is said instead):
//   `done NAME, NAME ...`                        Operations end well. `done all`: those that are
//                                                open now.
//   `fail NAME CODE: TEXT`                       An operation of the network or of storage ends
//                                                badly.
//   `refuse device|transport|source CODE: TEXT`  The next Start, or allocation, fails.
//   `break device|transport|source CODE: TEXT`   The next Poll fails, as a whole.
//   `parting held=yes`                           Other ranks do not part. With held=no they do.
//   `poison CODE: TEXT`                          A failure from outside.
//   `poll`                                       Nothing has happened.
//   `end`                                        The machine is destroyed.
// With until_read=20 what comes with time alone is waited for, here: that read 20 begins.
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "deadlock/script_words.h"
#include "gtest/gtest.h"
#include "main/script_files.h"
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

// Gives back the script with what its machines did.
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

class SessionScript : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(SessionScript, DoesAsWritten) { ExpectAnswers(GetParam(), RunSessionScript); }

INSTANTIATE_TEST_SUITE_P(All, SessionScript, ::testing::ValuesIn(ScriptsIn(SLUICE_SESSION_SCRIPTS)),
                         [](const auto& script) { return script.param.stem().string(); });

TEST(SessionScriptLanguage, AWrongAnswerIsNoticed) {
  const std::string right =
      "shards slots=1\npiece read=0+8 stages=F\n"
      "> read 1 a.bin[0,8) to block 0[0,8), try 0\nover\ndone read 1\n> piece 0 is done\n"
      "> all is done\n";
  EXPECT_EQ(RunSessionScript(right), right);
  const std::string wrong = absl::StrReplaceAll(right, {{"[0,8),", "[0,9),"}});
  const std::string missing = absl::StrReplaceAll(right, {{"> piece 0 is done\n", ""}});
  const std::string added = right + "> piece 1 is done\n";
  for (const std::string& script : {wrong, missing, added}) {
    EXPECT_EQ(RunSessionScript(script), right);
    EXPECT_NE(script, right);
  }
}

}  // namespace
}  // namespace sluice::session_test
