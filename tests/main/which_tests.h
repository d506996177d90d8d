// Chooses the tests of a program that has the suites of a whole folder.
#ifndef SLUICE_TESTS_MAIN_WHICH_TESTS_H_
#define SLUICE_TESTS_MAIN_WHICH_TESTS_H_

#include <fnmatch.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "oracle/sampled.h"

namespace sluice {

// Of a test's names with its parameters, a fifth, at least two. Others come each day.
inline std::set<std::string> WithFewParameters(const std::string& test,
                                               const std::set<std::string>& all) {
  const std::vector<std::string> names(all.begin(), all.end());
  const size_t count = std::max(std::min(names.size(), size_t{2}), (names.size() + 4) / 5);
  const size_t first = std::hash<std::string>()(test) % names.size() + oracle::FirstSeed() / 1000;
  std::set<std::string> few;
  for (size_t i = 0; i < count; ++i) {
    few.insert(names[(first + i * names.size() / count) % names.size()]);
  }
  return few;
}

// Takes `--which=WORD,WORD...` out of the arguments, and sets GoogleTest's filter accordingly. A
// word is a source file without its ending, such as session/gate_test, or a pattern for names of
// tests, which has a `*` or `.`. Only what `--gtest_filter=-PATTERN` leaves out may be said beside.
// Of the parameters of a test a fifth is chosen, unless tests are thorough or are only listed.
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

  std::map<std::string, std::set<std::string>> chosen;  // names by test, without parameters
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  while (!words.empty()) {
    const std::string word(words.substr(0, words.find(',')));
    words.remove_prefix(std::min(words.size(), word.size() + 1));
    const bool is_pattern = word.find_first_of("*.") != std::string::npos;
    for (int s = 0; s < all.total_test_suite_count(); ++s) {
      const testing::TestSuite& suite = *all.GetTestSuite(s);
      for (int t = 0; t < suite.total_test_count(); ++t) {
        const testing::TestInfo& test = *suite.GetTestInfo(t);
        const std::string name = std::string(suite.name()) + "." + test.name();
        std::string_view file = test.file();
        file = file.substr(0, file.rfind('.'));
        if (is_pattern ? fnmatch(word.c_str(), name.c_str(), 0) != 0 : !file.ends_with(word)) {
          continue;
        }
        const bool has_parameter = test.value_param() != nullptr;
        chosen[has_parameter ? name.substr(0, name.rfind('/')) : name].insert(name);
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
  const bool takes_all = oracle::IsThorough() || testing::GTEST_FLAG(list_tests);
  std::string pattern;
  for (const auto& [test, names] : chosen) {
    for (const std::string& name : takes_all ? names : WithFewParameters(test, names)) {
      pattern.append(name).append(":");
    }
  }
  filter = pattern + (filter[0] == '-' ? filter : "");
}

}  // namespace sluice

#endif  // SLUICE_TESTS_MAIN_WHICH_TESTS_H_
