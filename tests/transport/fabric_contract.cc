// The fabric's half of the contract: nodes, gathers, silent ranks. post_contract.cc has the posts.
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr int kGoTag = 0;

std::vector<std::byte> Record(int rank, size_t bytes, int round) {
  std::vector<std::byte> record(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    record[i] = static_cast<std::byte>(static_cast<size_t>(rank * 31 + round * 7) + i);
  }
  return record;
}

// One gather of `bytes` per rank from start to end.
void Gather(ContractRank& r, size_t bytes, int round) {
  r.Do([&r, bytes, round] {
    const absl::Status status = r.fabric().StartAllGather(Record(r.rank(), bytes, round));
    EXPECT_TRUE(status.ok()) << status;
  });
  r.Until("the records of all ranks", [&r, bytes, round] {
    std::vector<std::byte> all;
    std::vector<int> missing;
    const absl::StatusOr<bool> complete = r.fabric().PollAllGather(&all, &missing);
    EXPECT_TRUE(complete.ok()) << complete.status();
    if (!complete.ok()) return true;
    EXPECT_EQ(*complete, missing.empty());
    if (!*complete) return false;
    std::vector<std::byte> expected;
    for (int rank = 0; rank < r.size(); ++rank) {
      const std::vector<std::byte> record = Record(rank, bytes, round);
      expected.insert(expected.end(), record.begin(), record.end());
    }
    EXPECT_EQ(all, expected);
    return true;
  });
}

TEST_P(FabricContract, GathersAgainAndAgain) {
  Run([](ContractRank& r) {
    int round = 0;
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{8}, Fabric::kMaxRecordBytes}) {
      for (int i = 0; i < 5; ++i) Gather(r, bytes, round++);
    }
  });
}

TEST_P(FabricContract, NamesRanksThatHaveNotCalled) {
  Run([](ContractRank& r) {
    const int last = r.size() - 1;
    r.Do([&r] { EXPECT_TRUE(r.transport().Reserve(r.size()).ok()); });
    if (r.rank() == last) {
      r.Do([&r] {
        for (const int peer : r.Peers()) r.Start({r.Receive(peer, kGoTag, r.Buffer(1), 1)});
      });
      r.UntilAllEnded();  // by now every other rank has seen that this one is missing
      Gather(r, 64, 0);
      return;
    }
    r.Do([&r] { EXPECT_TRUE(r.fabric().StartAllGather(Record(r.rank(), 64, 0)).ok()); });
    r.Until("all ranks but the last", [&r, last] {
      std::vector<std::byte> all;
      std::vector<int> missing;
      EXPECT_EQ(r.fabric().PollAllGather(&all, &missing).value_or(true), false);
      return missing == std::vector<int>{last};
    });
    r.Do([&r, last] { r.Start({r.Send(last, kGoTag, r.Buffer(1), 1)}); });
    r.Until("the last rank", [&r] {
      std::vector<std::byte> all;
      return r.fabric().PollAllGather(&all, nullptr).value_or(false);
    });
    r.UntilAllEnded();
  });
}

TEST_P(FabricContract, RefusesTwoGathersAtOnce) {
  Run([](ContractRank& r) {
    r.Do([&r] { EXPECT_TRUE(r.fabric().StartAllGather(Record(r.rank(), 8, 0)).ok()); });
    r.Do([&r] {
      EXPECT_EQ(r.fabric().StartAllGather(Record(r.rank(), 8, 0)).code(),
                absl::StatusCode::kFailedPrecondition);
    });
    r.Until("the first one", [&r] {
      std::vector<std::byte> all;
      return r.fabric().PollAllGather(&all, nullptr).value_or(false);
    });
    Gather(r, 8, 1);
  });
}

TEST_P(FabricContract, NamesARankWhoseRecordHasAnotherLength) {
  Run([](ContractRank& r) {
    const size_t bytes = r.rank() == 1 ? 12 : 16;
    r.Do([&r, bytes] { EXPECT_TRUE(r.fabric().StartAllGather(Record(r.rank(), bytes, 0)).ok()); });
    r.Until("an error", [&r] {
      std::vector<std::byte> all;
      const absl::StatusOr<bool> complete = r.fabric().PollAllGather(&all, nullptr);
      if (complete.ok()) {
        EXPECT_FALSE(*complete);
        return *complete;
      }
      EXPECT_EQ(complete.status().code(), absl::StatusCode::kDataLoss) << complete.status();
      EXPECT_THAT(std::string(complete.status().message()), HasSubstr("rank 1"));
      return true;
    });
  });
}

TEST_P(FabricContract, AllRanksAgreeOnTheNodes) {
  Run([](ContractRank& r) {
    auto own = std::make_shared<std::string>();
    r.Do([&r, own] {
      for (const int node : r.fabric().node_of_rank()) absl::StrAppend(own.get(), node, ",");
      EXPECT_TRUE(r.fabric()
                      .StartAllGather(absl::MakeConstSpan(
                          reinterpret_cast<const std::byte*>(own->data()), own->size()))
                      .ok());
    });
    r.Until("the nodes as others see them", [&r, own] {
      std::vector<std::byte> all;
      if (!r.fabric().PollAllGather(&all, nullptr).value_or(false)) return false;
      std::string expected;
      for (int rank = 0; rank < r.size(); ++rank) expected += *own;
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(all.data()), all.size()), expected);
      return true;
    });
  });
}

}  // namespace
}  // namespace sluice
