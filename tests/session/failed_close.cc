// A run that all have begun but one.
#include "session/failed_close.h"

#include <chrono>
#include <vector>

#include "gtest/gtest.h"
#include "oracle/sampled.h"
#include "session/job.h"

namespace sluice::session_test {
namespace {

constexpr int64_t kBytes = int64_t{1} << (oracle::kSanitized ? 18 : 20);
constexpr absl::Duration kTimeout = absl::Minutes(5);
constexpr std::chrono::seconds kSoon(120);  // a machine with fewer cores than ranks
constexpr int kPollsBefore = 200;

// What a rank does that fails: it starts a run without views, which cannot be refused any more.
absl::Status Fail(Session* session, Transfer* transfer) {
  return session->Start(transfer, {}, {}).status();
}

}  // namespace

void FailAndClose(Rank& self, Failing failing, bool progress_thread) {
  const auto session = OpenSession(self, {.bucket_bytes = 64 << 10,
                                          .budget_buckets = 4,
                                          .timeout = kTimeout,
                                          .progress_thread = progress_thread});
  Bound bound = CompileBound(session.get(), AllToAll(self.size, kBytes));
  RunOnce(session.get(), &bound, 1);
  bound.memory.Prepare(2);
  self.meet();
  const bool fails = self.rank == self.size - 1;
  if (!fails || failing == Failing::kLateMemory) {
    const StartOptions start = {.late_destinations = failing == Failing::kLateMemory};
    std::vector<TensorView> dst = bound.memory.dst();
    if (fails) dst.assign(dst.size(), TensorView());
    ASSERT_TRUE(session->Start(bound.transfer, bound.memory.src(), dst, start).ok());
    for (int i = 0; i < kPollsBefore; ++i) ASSERT_TRUE(session->Poll().ok());
  }
  self.meet();
  absl::Status error = fails ? Fail(session.get(), bound.transfer) : absl::OkStatus();
  while (error.ok()) error = session->Poll();
  const auto begin = std::chrono::steady_clock::now();
  const absl::Status closed = session->Close();
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(closed.ok()) << closed << ", after " << error;
  EXPECT_LT(took, kSoon) << "Close has waited for the timeout";
  if (closed.ok()) bound.memory.Prepare(200);
  self.meet();
  // Others may have gone on; memory that was given back is not touched any more.
  if (closed.ok()) {
    EXPECT_TRUE(bound.memory.Untouched(200)) << "after Close";
  }
  self.meet();
}

}  // namespace sluice::session_test
