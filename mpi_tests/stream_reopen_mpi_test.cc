// Streams that ranks close before their end, and what comes after them. The next stream has its own
// items, a session of fewer ranks has its own, and MPI's communicators are not used up.
//
// SLUICE_EARLY_CLOSES and SLUICE_FULL_STREAMS say how many there are, for longer runs by hand.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <thread>

#include "gtest/gtest.h"
#include "patient_fabric.h"
#include "session/job.h"
#include "session_mpi_rank.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "transport/mpi/mpi_retired.h"

namespace sluice::session_test {
namespace {

constexpr int64_t kItems = 1200;

int Count(const char* name, int usual) {
  const char* const text = std::getenv(name);
  return text == nullptr ? usual : std::atoi(text);
}

// Each item says which stream it is of, and which item.
int64_t ValueOf(int64_t stream, int64_t item) { return stream * 1'000'000 + item; }

StreamOptions OptionsOf(int64_t stream, int64_t item_bytes, int64_t items) {
  StreamOptions options;
  options.source.item_bytes = item_bytes;
  options.source.generator_items = items;
  options.source.generate_ahead = items;  // all that the slots hold
  options.source.generator = [stream](int64_t item, absl::Span<std::byte> into) {
    const int64_t value = ValueOf(stream, item);
    for (size_t at = 0; at < into.size(); at += 8) std::memcpy(&into[at], &value, 8);
    return absl::OkStatus();
  };
  options.reads.slots = 4;
  options.buffers.count = 1;
  options.timeout = absl::Minutes(2);
  return options;
}

std::unique_ptr<Session> Open(MPI_Comm comm) {
  Rank self = MpiRank(comm);
  return OpenSession(self, {.timeout = absl::Minutes(2)});
}

struct Seen {
  int64_t items = 0;
  int64_t wrong = 0;
};

// Takes up to `most` items, of which it sees that they are the stream's own.
Seen TakeItems(Stream* stream, int64_t number, int64_t most) {
  Seen seen;
  while (seen.items < most) {
    const absl::StatusOr<Lease> lease = stream->Next();
    if (!lease.ok() || lease->end()) break;  // another rank may have closed it
    ++seen.items;
    const auto* const data = static_cast<const std::byte*>(lease->view().data);
    int64_t value = 0;
    std::memcpy(&value, data, 8);
    seen.wrong += value != ValueOf(number, lease->item());
  }
  return seen;
}

// Opens a stream, takes a random number of its items, perhaps keeps everybody waiting, and closes
// it. Which rank does what follows from dice of its own.
void CloseEarly(Session* session, int64_t number, std::mt19937_64& dice) {
  constexpr int64_t kItemBytes[] = {64, 512, 4096, 32768, 131072};
  // The same on all ranks.
  const int64_t item_bytes = kItemBytes[number % 5];
  auto stream = OpenStream(session, OptionsOf(number, item_bytes, kItems)).value();
  const int64_t most = std::uniform_int_distribution<int64_t>(0, 1)(dice) == 0
                           ? static_cast<int64_t>(dice() % 8)
                           : static_cast<int64_t>(dice() % 300);
  EXPECT_EQ(TakeItems(stream.get(), number, most).wrong, 0) << "stream " << number;
  const auto pause = std::chrono::milliseconds(dice() % 12);
  if (dice() % 2 == 0) {
    std::this_thread::sleep_for(pause);
  } else {
    const auto end = std::chrono::steady_clock::now() + pause;
    while (std::chrono::steady_clock::now() < end) EXPECT_TRUE(session->Poll().ok());
  }
}

void ExpectWhole(Session* session, int64_t number) {
  auto stream = OpenStream(session, OptionsOf(number, 512, kItems)).value();
  const Seen seen = TakeItems(stream.get(), number, kItems + 1);
  EXPECT_EQ(seen.items, kItems) << "stream " << number;
  EXPECT_EQ(seen.wrong, 0) << "stream " << number;
}

TEST(StreamReopenTest, TheNextStreamHasItsOwnItems) {
  const int closes = Count("SLUICE_EARLY_CLOSES", 24);
  const std::unique_ptr<Session> session = Open(MPI_COMM_WORLD);
  std::mt19937_64 dice(static_cast<uint64_t>(session->rank()) + 1);
  int64_t number = 0;
  for (int i = 0; i < closes; ++i) {
    CloseEarly(session.get(), ++number, dice);
    if (i % 8 == 7) ExpectWhole(session.get(), ++number);
  }
  ExpectWhole(session.get(), ++number);
  EXPECT_TRUE(session->Close().ok());
}

// A message of a rank that a smaller communicator does not have must not come to it.
TEST(StreamReopenTest, ASessionOfFewerRanksHasItsOwnItems) {
  const int rank = WorldRank();
  std::mt19937_64 dice(static_cast<uint64_t>(rank) + 100);
  int64_t number = 0;
  for (int round = 0; round < 4; ++round) {
    {
      const std::unique_ptr<Session> all = Open(MPI_COMM_WORLD);
      for (int i = 0; i < 3; ++i) CloseEarly(all.get(), ++number, dice);
      EXPECT_TRUE(all->Close().ok());
    }
    // Another rank is left out each time, and does not take part in anything meanwhile.
    const bool left_out = rank == round % WorldSize();
    MPI_Comm rest = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, left_out ? 1 : 0, rank, &rest);
    ++number;
    if (!left_out) {
      const std::unique_ptr<Session> fewer = Open(rest);
      ExpectWhole(fewer.get(), number);
      EXPECT_TRUE(fewer->Close().ok());
    }
    MPI_Comm_free(&rest);
  }
}

TEST(StreamReopenTest, CommunicatorsOfClosedStreamsAreFreed) {
  const int streams = Count("SLUICE_FULL_STREAMS", 200);
  const std::unique_ptr<Session> session = Open(MPI_COMM_WORLD);
  const int before = PollRetiredMpiCommunicators();
  for (int number = 1; number <= streams; ++number) {
    auto stream = OpenStream(session.get(), OptionsOf(number, 64, 10)).value();
    EXPECT_EQ(TakeItems(stream.get(), number, 11).items, 10);
    stream.reset();
    EXPECT_LE(PollRetiredMpiCommunicators() - before, 4);
  }
  // Nor do those that were closed early stay, once all ranks have closed them and go on.
  std::mt19937_64 dice(static_cast<uint64_t>(session->rank()) + 200);
  for (int number = 1; number <= 8; ++number) CloseEarly(session.get(), number, dice);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (PollRetiredMpiCommunicators() > 0) {
    ASSERT_TRUE(session->Poll().ok());
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "communicators are left over";
    std::this_thread::yield();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_TRUE(session->Close().ok());
}

}  // namespace
}  // namespace sluice::session_test
