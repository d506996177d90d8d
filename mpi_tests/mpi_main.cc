// The main of a suite that runs on several ranks. All ranks run the same tests. A test that fails
// on any rank fails the program; likewise for one that is skipped. Rank 0 prints as usual, the
// others only what went wrong. The argument `multiple` asks MPI for that thread level.
#include <mpi.h>

#include <cstdio>
#include <cstring>

#include "gtest/gtest.h"
#include "main/exit_code.h"
#include "main/which_tests.h"

namespace {

class FailurePrinter final : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_,
                 result.file_name() == nullptr ? "?" : result.file_name(), result.line_number(),
                 result.message());
  }

 private:
  const int rank_;
};

}  // namespace

#ifdef __SANITIZE_ADDRESS__
// What MPI loads stays loaded: the leak checker knows allocations by the library that made them,
// and Open MPI unloads its own before the checker looks.
extern "C" int dlclose(void* /*library*/) { return 0; }
#endif

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  testing::InitGoogleTest(&argc, argv);
  sluice::ChooseTests(&argc, argv);
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();  // takes no ranks
  const bool multiple = argc > 1 && std::strcmp(argv[1], "multiple") == 0;
  MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &level);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) {
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter(rank));
  }
  const int code = sluice::ExitCode(RUN_ALL_TESTS());
  const int here[] = {code != 0 && code != sluice::kSomeSkipped, code == sluice::kSomeSkipped};
  int anywhere[2] = {};  // failed, skipped
  MPI_Allreduce(here, anywhere, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  if (anywhere[0] != 0) return 1;
  return anywhere[1] == 0 ? 0 : sluice::kSomeSkipped;
}
