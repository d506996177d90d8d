// Exchanges of records: all lengths, ranks that announce nonsense, do not come, or end.
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "sluice/fabric.h"
#include "tensor/error_text.h"
#include "transport/deadline.h"
#include "transport/passing_fabric.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr absl::Duration kPatience = absl::Seconds(120);

// Calls `work` on a thread for each rank.
void OnRanks(int ranks, const std::function<void(Fabric*)>& work) {
  auto fabrics = MakeLocalFabric(ranks);
  ASSERT_TRUE(fabrics.ok()) << fabrics.status();
  std::vector<std::thread> threads;
  threads.reserve(fabrics->size());
  for (std::unique_ptr<Fabric>& fabric : *fabrics) {
    threads.emplace_back([&work, &fabric] { work(fabric.get()); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Polls until the end, or for `limit`.
absl::StatusOr<bool> Await(RecordExchange* exchange, std::vector<std::string>* records,
                           std::vector<int>* missing, absl::Duration limit = kPatience) {
  const Deadline deadline(limit);
  while (true) {
    absl::StatusOr<bool> done = exchange->Poll(records, missing);
    if (!done.ok() || *done || deadline.Passed()) return done;
    std::this_thread::yield();
  }
}

absl::StatusOr<std::vector<std::string>> ExchangeOne(RecordExchange* exchange,
                                                     const std::string& record) {
  if (absl::Status status = exchange->Start(record); !status.ok()) return status;
  std::vector<std::string> records;
  const absl::StatusOr<bool> done = Await(exchange, &records, nullptr);
  if (!done.ok()) return done.status();
  EXPECT_TRUE(*done) << "it hangs";
  return records;
}

// Differs between ranks, in every byte's neighbourhood.
std::string RecordOf(int rank, size_t bytes) {
  std::string record;
  for (size_t i = 0; i < bytes; ++i) {
    record += static_cast<char>(31 * static_cast<size_t>(rank) + i * 7 + i / 251);
  }
  return record;
}

class RecordExchangeTest : public testing::TestWithParam<int> {};

TEST_P(RecordExchangeTest, RecordsOfAnyLengthComeWhole) {
  OnRanks(GetParam(), [](Fabric* fabric) {
    RecordExchange exchange(fabric);
    const size_t piece = Fabric::kMaxRecordBytes;
    for (const size_t bytes :
         {size_t{0}, size_t{1}, size_t{119}, size_t{120}, size_t{121}, piece - 1, piece, piece + 1,
          piece + 119, piece + 120, piece + 121, size_t{1} << 20}) {
      std::vector<std::string> expected;
      for (int rank = 0; rank < fabric->size(); ++rank) {
        // The last rank says nothing, and the first one most.
        const bool is_silent = rank + 1 == fabric->size() && rank > 0;
        expected.push_back(RecordOf(rank, is_silent ? 0 : bytes / static_cast<size_t>(rank + 1)));
      }
      const auto all = ExchangeOne(&exchange, expected[static_cast<size_t>(fabric->rank())]);
      ASSERT_TRUE(all.ok()) << all.status();
      EXPECT_EQ(*all, expected) << bytes;
    }
  });
}

TEST_P(RecordExchangeTest, ShortRecordsTakeOneGatherAndLongOnesAreHeardOnlyWhereTheyAreWanted) {
  OnRanks(GetParam(), [](Fabric* fabric) {
    RecordExchange exchange(fabric);
    EXPECT_TRUE(ExchangeOne(&exchange, RecordOf(fabric->rank(), 120)).ok());
    EXPECT_EQ(exchange.gathers(), 1);
    ASSERT_TRUE(exchange.Start(RecordOf(fabric->rank(), 10000)).ok());
    std::vector<std::string> records;
    const bool wants = fabric->rank() == 0;
    ASSERT_EQ(Await(&exchange, wants ? &records : nullptr, nullptr).value_or(false), true);
    EXPECT_EQ(exchange.gathers(), 1 + 1 + 5);
    EXPECT_EQ(records.size(), wants ? static_cast<size_t>(fabric->size()) : 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, RecordExchangeTest, testing::Values(1, 2, 3, 8));

TEST(RecordExchangeFaultTest, TooManyBytesAreRefusedOnAllRanksWhichGoOn) {
  OnRanks(3, [](Fabric* fabric) {
    RecordExchange exchange(fabric, 899);
    const auto refused = ExchangeOne(&exchange, std::string(fabric->rank() == 1 ? 700 : 100, 'x'));
    EXPECT_EQ(refused.status(),
              MakeError(absl::StatusCode::kResourceExhausted, "the ranks' records are more than ",
                        899, " bytes: ", RankInWords(1), " alone has ", 700));
    EXPECT_FALSE(exchange.out_of_step());
    EXPECT_TRUE(ExchangeOne(&exchange, std::string(fabric->rank() == 1 ? 699 : 100, 'x')).ok());
  });
}

// Ranks 1 and 2 are of another program.
TEST(RecordExchangeFaultTest, ALengthThatIsNoneIsAnErrorThatNamesItsRank) {
  for (const uint64_t bytes : {uint64_t{1} << 31, uint64_t{1} << 63, ~uint64_t{0}}) {
    OnRanks(3, [bytes](Fabric* fabric) {
      if (fabric->rank() > 0) {
        std::vector<std::byte> nonsense(128);
        const uint64_t claim = bytes - (fabric->rank() == 2 ? 1 : 0);
        std::memcpy(nonsense.data(), &claim, sizeof(claim));
        EXPECT_TRUE(fabric->StartAllGather(nonsense).ok());
        return;
      }
      RecordExchange exchange(fabric);
      const auto refused = ExchangeOne(&exchange, "good");
      EXPECT_THAT(refused.status(), Fails(absl::StatusCode::kResourceExhausted,
                                          absl::StrCat("rank 1 alone has ", bytes)));
      EXPECT_FALSE(exchange.out_of_step());
    });
  }
}

TEST(RecordExchangeFaultTest, ARankThatDoesNotComeIsMissing) {
  OnRanks(3, [](Fabric* fabric) {
    if (fabric->rank() == 1) return;
    RecordExchange exchange(fabric);
    ASSERT_TRUE(exchange.Start("here").ok());
    EXPECT_FALSE(exchange.Start("again").ok()) << "one is under way";
    std::vector<std::string> records;
    std::vector<int> missing;
    const auto done = Await(&exchange, &records, &missing, absl::Seconds(1));
    EXPECT_EQ(done.value_or(true), false) << done.status();
    EXPECT_THAT(missing, testing::Contains(1));
    EXPECT_THAT(records, IsEmpty());
  });
}

// As one that is stopped in the middle: it has announced what it does not send.
TEST(RecordExchangeFaultTest, ARankThatStopsBetweenPiecesIsMissing) {
  OnRanks(3, [](Fabric* fabric) {
    RecordExchange exchange(fabric);
    ASSERT_TRUE(exchange.Start(RecordOf(fabric->rank(), 100000)).ok());
    std::vector<std::string> records;
    std::vector<int> missing;
    while (fabric->rank() == 1 && exchange.gathers() == 0) {
      ASSERT_TRUE(exchange.Poll(&records, &missing).ok());
      std::this_thread::yield();
    }
    if (fabric->rank() == 1) return;
    const auto done = Await(&exchange, &records, &missing, absl::Seconds(1));
    EXPECT_EQ(done.value_or(true), false) << done.status();
    EXPECT_THAT(missing, ElementsAre(1));
  });
}

// A fabric that sees when rank 1's thread has come to its end.
class WatchedFabric final : public PassingFabric {
 public:
  WatchedFabric(std::unique_ptr<Fabric> inner, const std::atomic<bool>* ended)
      : PassingFabric(std::move(inner)), ended_(ended) {}

  absl::Status CheckRanks() override {
    return *ended_ ? absl::UnavailableError("rank 1 has ended") : absl::OkStatus();
  }

 private:
  const std::atomic<bool>* const ended_;
};

TEST(RecordExchangeFaultTest, ARankThatEndsEndsTheExchange) {
  auto fabrics = MakeLocalFabric(3);
  ASSERT_TRUE(fabrics.ok());
  std::atomic<bool> ended = false;
  std::vector<std::thread> threads;
  threads.reserve(fabrics->size());
  for (std::unique_ptr<Fabric>& each : *fabrics) {
    threads.emplace_back([&ended, &each] {
      WatchedFabric fabric(std::move(each), &ended);
      RecordExchange exchange(&fabric);
      ASSERT_TRUE(exchange.Start(RecordOf(fabric.rank(), 1 << 20)).ok());
      std::vector<std::string> records;
      while (fabric.rank() == 1 && exchange.gathers() < 3) {
        ASSERT_TRUE(exchange.Poll(&records, nullptr).ok());
        std::this_thread::yield();
      }
      if (fabric.rank() == 1) {
        ended = true;
        return;
      }
      const auto done = Await(&exchange, &records, nullptr);
      EXPECT_EQ(done.status(), absl::UnavailableError("rank 1 has ended"));
      EXPECT_TRUE(exchange.out_of_step());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace sluice
