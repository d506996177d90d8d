// Runs scripts/*.txt: events for a session's machines, and what these must do then.
// With SLUICE_REWRITE_SCRIPTS=1 in the environment the answers are written instead of compared.
#include "session/script/session_script.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"

namespace sluice::session_test {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Scripts() {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(SLUICE_SESSION_SCRIPTS)) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string Read(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class SessionScript : public ::testing::TestWithParam<fs::path> {};

TEST_P(SessionScript, DoesAsWritten) {
  const std::string expected = Read(GetParam());
  const std::string actual = RunSessionScript(expected);
  if (std::getenv("SLUICE_REWRITE_SCRIPTS") != nullptr) {
    std::ofstream(GetParam()) << actual;
  } else {
    EXPECT_EQ(actual, expected) << "in " << GetParam();
  }
}

INSTANTIATE_TEST_SUITE_P(All, SessionScript, ::testing::ValuesIn(Scripts()),
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
