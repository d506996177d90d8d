// Scripts of tests: texts of commands, with the answers that they must get.
// With SLUICE_REWRITE_SCRIPTS=1 in the environment the answers are written instead of compared.
#ifndef SLUICE_TESTS_MAIN_SCRIPT_FILES_H_
#define SLUICE_TESTS_MAIN_SCRIPT_FILES_H_

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "main/own_folder.h"

namespace sluice {

// In order.
inline std::vector<std::filesystem::path> ScriptsIn(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// `run` gives the script back with its answers.
inline void ExpectAnswers(const std::filesystem::path& path,
                          std::string (*run)(absl::string_view)) {
  const std::string expected = FileText(path);
  const std::string actual = run(expected);
  if (std::getenv("SLUICE_REWRITE_SCRIPTS") != nullptr) {
    std::ofstream(path) << actual;
  } else {
    EXPECT_EQ(actual, expected) << "in " << path;
  }
}

}  // namespace sluice

#endif  // SLUICE_TESTS_MAIN_SCRIPT_FILES_H_
