// Streams of many tiny pieces: what a process grows by is its budget and a constant, whatever the
// library, and MPI behind it, keep for each of them.
#include <chrono>
#include <cstdint>
#include <cstring>

#include "gtest/gtest.h"
#include "session/job.h"
#include "session/resident_bytes.h"
#include "session_mpi_rank.h"
#include "sluice/session.h"
#include "sluice/stream.h"

namespace sluice::session_test {
namespace {

// As docs/layouts.md has it.
constexpr int64_t kBesideStaging = int64_t{8} << 20;
// All slots are full long before, on any machine. Where they are not, a defect is not seen, but no
// test fails for it.
constexpr std::chrono::seconds kPause{2};

// All ranks make items in turns, take the first one and hold it. So the slots of all fill up, with
// items and with messages that nobody asks for.
TEST(TinyPiecesMpiTest, KeepToTheBudgetWhileConsumersStop) {
  for (const int64_t item_bytes : {64, 4096}) {
    Rank self = MpiRank(MPI_COMM_WORLD);
    StreamOptions options;
    options.source.item_bytes = item_bytes;
    options.source.generator_items = 40'000;
    options.source.generate_ahead = 40'000;  // all that the budget holds
    options.source.generator = [](int64_t item, absl::Span<std::byte> into) {
      std::memset(into.data(), static_cast<int>(item % 251), into.size());
      return absl::OkStatus();
    };
    options.reads.budget_bytes = int64_t{64} << 20;
    const auto session = OpenSession(self, {});
    const int64_t before = ResidentBytesInUse();
    auto stream = OpenStream(session.get(), options).value();
    int64_t growth = 0;
    int64_t items = 0;
    // Not all: over TCP they take long.
    while (items < 1000) {
      auto lease = stream->Next().value();
      ASSERT_EQ(static_cast<const std::byte*>(lease.view().data)[item_bytes - 1],
                static_cast<std::byte>(lease.item() % 251));
      if (++items > 1) continue;
      const auto end = std::chrono::steady_clock::now() + kPause;
      while (std::chrono::steady_clock::now() < end) ASSERT_TRUE(session->Poll().ok());
      growth = ResidentBytes() - before;
    }
    const StreamStats stats = stream->stats();
    EXPECT_LE(growth, options.reads.budget_bytes + stats.device_bytes + kBesideStaging)
        << "rank " << self.rank << ", items of " << item_bytes << " bytes, " << stats.slots_peak
        << " of " << stats.slots_max << " slots";
    // All have taken what they wanted before anybody closes.
    MPI_Request met = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &met);
    for (int all = 0; all == 0; MPI_Test(&met, &all, MPI_STATUS_IGNORE)) {
      ASSERT_TRUE(session->Poll().ok());
    }
    stream.reset();
    self.meet();
    EXPECT_TRUE(session->Close().ok());
  }
}

}  // namespace
}  // namespace sluice::session_test
