// What a test program ends with, so that CTest tells a skipped test from one that passed.
#ifndef SLUICE_TESTS_MAIN_EXIT_CODE_H_
#define SLUICE_TESTS_MAIN_EXIT_CODE_H_

#include "gtest/gtest.h"

namespace sluice {

// CTest knows it by SKIP_RETURN_CODE. A program that fails, crashes or leaks ends with another
// code.
inline constexpr int kSomeSkipped = 77;

// `result` is that of RUN_ALL_TESTS.
inline int ExitCode(int result) {
  if (result != 0) return result;
  return testing::UnitTest::GetInstance()->skipped_test_count() == 0 ? 0 : kSomeSkipped;
}

}  // namespace sluice

#endif  // SLUICE_TESTS_MAIN_EXIT_CODE_H_
