// Runs scripts/*.txt: commands to an engine and the answers they must get.
#include <filesystem>
#include <string>

#include "absl/strings/str_replace.h"
#include "deadlock/engine_script.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/script_files.h"

namespace sluice::deadlock {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class EngineScript : public ::testing::TestWithParam<fs::path> {};

TEST_P(EngineScript, AnswersAsWritten) { ExpectAnswers(GetParam(), RunEngineScript); }

INSTANTIATE_TEST_SUITE_P(All, EngineScript, ::testing::ValuesIn(ScriptsIn(SLUICE_ENGINE_SCRIPTS)),
                         [](const auto& script) { return script.param.stem().string(); });

// The smallest job that was found to stall under a plain semaphore: the same script, told to real
// engines, ends with all buckets finished.
TEST(EngineScriptLanguage, WhatStallsASemaphoreDoesNotStallTheEngine) {
  const std::string plain = FileText(fs::path(SLUICE_ENGINE_SCRIPTS) / "stalled_plain.txt");
  EXPECT_THAT(RunEngineScript(plain), HasSubstr("> settle\nstalled\n"));
  for (const char* rule : {"rule=escape", "rule=ordered"}) {
    EXPECT_THAT(RunEngineScript(absl::StrReplaceAll(plain, {{"rule=plain", rule}})),
                HasSubstr("> settle\nall finished\n"));
  }
}

TEST(EngineScriptLanguage, EnginesMeetInMoves) {
  const std::string script =
      "> engine rank=3\n> submit 1 stages=FM\n> engine rank=5\n> settle\nall finished\n"
      "> submit 1 stages=MD\n> finish 1\nnot under way\n> all\n1 moving slot 0\n"
      "none (nothing waits)\n> rank 3\n> idle\nyes\n> settle\nall finished\n";
  EXPECT_EQ(RunEngineScript(script), script);
  EXPECT_THAT(RunEngineScript("> engine\n> submit 1 stages=M\n> engine rank=1 slots=1\n"
                              "> submit 0\n> all\n> submit 1 stages=M\n> settle\n"),
              HasSubstr("> settle\nall finished\n"));
}

TEST(EngineScriptLanguage, AWrongAnswerIsNoticed) {
  const std::string script = "> engine\n> submit 1\n> next\n1 draining slot 9\n";
  EXPECT_EQ(RunEngineScript(script), "> engine\n> submit 1\n> next\n1 draining slot 0\n");
}

}  // namespace
}  // namespace sluice::deadlock
