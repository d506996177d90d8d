// The main of a suite of one process.
#include <cerrno>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "main/exit_code.h"
#include "main/which_tests.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  sluice::ChooseTests(&argc, argv);
  // Abseil makes its table of error texts at the first error. The thread sanitizer does not see how
  // Abseil's installed library guards the table. The table is thus made before there are threads.
  static_cast<void>(absl::ErrnoToStatus(EIO, ""));
  return sluice::ExitCode(RUN_ALL_TESTS());
}
