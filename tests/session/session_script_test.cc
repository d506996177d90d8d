// Runs scripts/*.txt: events for a session's machines, and what these must do then.
#include "session/script/session_script.h"

#include <filesystem>
#include <string>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "main/script_files.h"

namespace sluice::session_test {
namespace {

class SessionScript : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(SessionScript, DoesAsWritten) { ExpectAnswers(GetParam(), RunSessionScript); }

INSTANTIATE_TEST_SUITE_P(All, SessionScript, ::testing::ValuesIn(ScriptsIn(SLUICE_SESSION_SCRIPTS)),
                         [](const auto& script) { return script.param.stem().string(); });

TEST(SessionScriptLanguage, AWrongAnswerIsNoticed) {
  const std::string right =
      "shards slots=1\n> allocate 1 blocks of 4096\n> reserve 2\npiece read=0+8 stages=F\n"
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
