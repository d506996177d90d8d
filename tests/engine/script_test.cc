// Runs scripts/*.txt: commands to an engine and the answers they must get.
// With SLUICE_REWRITE_SCRIPTS=1 in the environment the answers are written instead of compared.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "engine_script.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Scripts() {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(SLUICE_ENGINE_SCRIPTS)) {
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

class EngineScript : public ::testing::TestWithParam<fs::path> {};

TEST_P(EngineScript, AnswersAsWritten) {
  const std::string expected = Read(GetParam());
  const std::string actual = RunEngineScript(expected);
  if (std::getenv("SLUICE_REWRITE_SCRIPTS") != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    std::ofstream(GetParam()) << actual;
  } else {
    EXPECT_EQ(actual, expected) << "in " << GetParam();
  }
}

INSTANTIATE_TEST_SUITE_P(All, EngineScript, ::testing::ValuesIn(Scripts()),
                         [](const auto& script) { return script.param.stem().string(); });

TEST(EngineScriptLanguage, AWrongAnswerIsNoticed) {
  const std::string script = "> engine\n> submit 1\n> next\n1 draining slot 9\n";
  EXPECT_EQ(RunEngineScript(script), "> engine\n> submit 1\n> next\n1 draining slot 0\n");
}

}  // namespace
}  // namespace sluice
