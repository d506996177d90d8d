// Chooses the tests of a program that has the suites of a whole folder.
#ifndef SLUICE_TESTS_MAIN_WHICH_TESTS_H_
#define SLUICE_TESTS_MAIN_WHICH_TESTS_H_

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace sluice {

// Takes `--which=WORD,WORD...` out of the arguments, and sets GoogleTest's filter accordingly. A
// word is a source file without its ending, such as session/gate_test, or a pattern for names of
// tests, which has a `*` or `.`. Only what `--gtest_filter=-PATTERN` leaves out may be said beside.
// Without the argument nothing changes. Call it after testing::InitGoogleTest, which makes the
// tests with parameters. Ends the program with 2 if nothing is chosen.
inline void ChooseTests(int* argc, char** argv) {
  constexpr std::string_view kFlag = "--which=";
  std::string_view words;
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    if (std::string_view(argv[i]).substr(0, kFlag.size()) == kFlag) {
      words = std::string_view(argv[i]).substr(kFlag.size());
    } else {
      argv[kept++] = argv[i];
    }
  }
  *argc = kept;
  argv[kept] = nullptr;
  // A death test runs its program once more, with a filter of its own.
  if (words.empty() || !testing::GTEST_FLAG(internal_run_death_test).empty()) return;

  std::string chosen;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(','));
    words.remove_prefix(std::min(words.size(), word.size() + 1));
    if (word.find_first_of("*.") != std::string_view::npos) {
      chosen.append(word).append(":");
      continue;
    }
    for (int s = 0; s < all.total_test_suite_count(); ++s) {
      const testing::TestSuite& suite = *all.GetTestSuite(s);
      for (int t = 0; t < suite.total_test_count(); ++t) {
        const testing::TestInfo& test = *suite.GetTestInfo(t);
        std::string_view file = test.file();
        file = file.substr(0, file.rfind('.'));
        if (file.size() < word.size()) continue;
        if (file.substr(file.size() - word.size()) != word) continue;
        chosen.append(suite.name()).append(".").append(test.name()).append(":");
      }
    }
  }
  std::string& filter = testing::GTEST_FLAG(filter);
  if (!filter.empty() && filter != "*" && filter[0] != '-') {
    std::fprintf(stderr, "--which goes together with --gtest_filter=-PATTERN alone\n");
    std::exit(2);
  }
  if (chosen.empty()) {
    std::fprintf(stderr, "--which chooses no test\n");
    std::exit(2);
  }
  filter = chosen + (filter[0] == '-' ? filter : "");
}

}  // namespace sluice

#endif  // SLUICE_TESTS_MAIN_WHICH_TESTS_H_
