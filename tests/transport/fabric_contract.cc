// The fabric's half of the contract: nodes, gathers, silent ranks, and posts, which are short
// messages outside the order of everything else.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "main/fails.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

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
  const absl::Status status = r.fabric().StartAllGather(Record(r.rank(), bytes, round));
  EXPECT_TRUE(status.ok()) << status;
  std::vector<std::byte> expected;
  for (int rank = 0; rank < r.size(); ++rank) {
    const std::vector<std::byte> record = Record(rank, bytes, round);
    expected.insert(expected.end(), record.begin(), record.end());
  }
  r.Until("the records of all ranks", [&] {
    std::vector<std::byte> all;
    std::vector<int> missing;
    const absl::StatusOr<bool> complete = r.fabric().PollAllGather(&all, &missing);
    EXPECT_TRUE(complete.ok()) << complete.status();
    if (!complete.ok()) return true;
    EXPECT_EQ(*complete, missing.empty());
    if (*complete) {
      EXPECT_EQ(all, expected);
    }
    return *complete;
  });
}

// Ends the gather that is under way, and gives what it brings.
std::vector<std::byte> EndOfGather(ContractRank& r) {
  std::vector<std::byte> all;
  r.Until("the gather", [&] { return r.fabric().PollAllGather(&all, nullptr).value_or(false); });
  return all;
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
    r.Reserve(r.size());
    if (r.rank() == last) {
      for (const int peer : r.Peers()) r.Start({r.Receive(peer, kGoTag, r.Buffer(1), 1)});
      r.UntilAllEnded();  // by now every other rank has seen that this one is missing
      Gather(r, 64, 0);
      return;
    }
    EXPECT_TRUE(r.fabric().StartAllGather(Record(r.rank(), 64, 0)).ok());
    r.Until("all ranks but the last", [&] {
      std::vector<std::byte> all;
      std::vector<int> missing;
      EXPECT_EQ(r.fabric().PollAllGather(&all, &missing).value_or(true), false);
      return missing == std::vector<int>{last};
    });
    r.Start({r.Send(last, kGoTag, r.Buffer(1), 1)});
    EndOfGather(r);
    r.UntilAllEnded();
  });
}

TEST_P(FabricContract, RefusesTwoGathersAtOnce) {
  Run([](ContractRank& r) {
    EXPECT_TRUE(r.fabric().StartAllGather(Record(r.rank(), 8, 0)).ok());
    EXPECT_EQ(r.fabric().StartAllGather(Record(r.rank(), 8, 0)).code(),
              absl::StatusCode::kFailedPrecondition);
    EndOfGather(r);
    Gather(r, 8, 1);
  });
}

TEST_P(FabricContract, NamesARankWhoseRecordHasAnotherLength) {
  Run([](ContractRank& r) {
    const size_t bytes = r.rank() == 1 ? 12 : 16;
    EXPECT_TRUE(r.fabric().StartAllGather(Record(r.rank(), bytes, 0)).ok());
    absl::StatusOr<bool> complete = false;
    r.Until("an error", [&] {
      std::vector<std::byte> all;
      complete = r.fabric().PollAllGather(&all, nullptr);
      return !complete.ok() || *complete;
    });
    EXPECT_THAT(complete.status(), Fails(absl::StatusCode::kDataLoss, "rank 1"));
  });
}

TEST_P(FabricContract, AllRanksAgreeOnTheNodes) {
  Run([](ContractRank& r) {
    std::string own;
    for (const int node : r.fabric().node_of_rank()) absl::StrAppend(&own, node, ",");
    const absl::Span<const std::byte> record(reinterpret_cast<const std::byte*>(own.data()),
                                             own.size());
    EXPECT_TRUE(r.fabric().StartAllGather(record).ok());
    std::vector<std::byte> expected;
    for (int rank = 0; rank < r.size(); ++rank) {
      expected.insert(expected.end(), record.begin(), record.end());
    }
    EXPECT_EQ(EndOfGather(r), expected);
  });
}

using Bytes = std::vector<std::byte>;

Bytes Content(int src, int dst, int n, size_t bytes) {
  Bytes record(bytes);
  for (size_t i = 0; i < bytes; ++i) {
    record[i] = static_cast<std::byte>(static_cast<size_t>(src * 31 + dst * 17 + n * 7) + i);
  }
  return record;
}

size_t BytesOf(int n) {
  constexpr size_t kBytes[] = {0, 1, 40, Fabric::kMaxPostBytes};
  return kBytes[n % 4];
}

// Polls until `count` posts have come from every other rank, each right and in its place.
void UntilPosts(ContractRank& r, int count) {
  std::map<int, int> next;
  r.Until("posts from all others", [&] {
    int src = -1;
    Bytes record;
    while (r.fabric().PollPost(&src, &record)) {
      const int n = next[src]++;
      EXPECT_EQ(record, Content(src, r.rank(), n, BytesOf(n))) << "post " << n << " of " << src;
    }
    return std::all_of(next.begin(), next.end(), [&](auto& p) { return p.second == count; }) &&
           static_cast<int>(next.size()) == r.size() - 1;
  });
}

TEST_P(FabricContract, PostsComeInOrderFromEachRank) {
  Run([](ContractRank& r) {
    for (int n = 0; n < Fabric::kMaxPostsPending; ++n) {
      for (const int dst : r.Peers()) {
        EXPECT_TRUE(r.fabric().Post(dst, Content(r.rank(), dst, n, BytesOf(n))).ok());
      }
    }
    UntilPosts(r, Fabric::kMaxPostsPending);
  });
}

// One word to all, as of a rank that fails.
TEST_P(FabricContract, EqualPostsReachEveryRank) {
  Run([](ContractRank& r) {
    if (r.rank() == 1) {
      for (const int dst : r.Peers()) EXPECT_TRUE(r.fabric().Post(dst, Bytes(900)).ok());
      return;
    }
    Bytes record;
    int src = -1;
    r.Until("the post", [&] { return r.fabric().PollPost(&src, &record); });
    EXPECT_EQ(src, 1);
    EXPECT_EQ(record, Bytes(900));
  });
}

// Posts `posts` times; how many posts were not refused.
int PostOften(ContractRank& r, int dst, int posts) {
  int sent = 0;
  for (int i = 0; i < posts; ++i) {
    const absl::Status status = r.fabric().Post(dst, Content(r.rank(), dst, sent, 200));
    if (status.ok()) {
      ++sent;
    } else {
      EXPECT_THAT(status, Fails(absl::StatusCode::kResourceExhausted, "posts to rank"));
    }
  }
  return sent;
}

// A rank that does not poll for long is refused some posts or none; what was taken comes, in order,
// and others are not kept waiting.
TEST_P(FabricContract, PostsToARankThatDoesNotPollAreRefusedOrKept) {
  Run([](ContractRank& r) {
    constexpr int kPosts = 200;  // fits one byte
    const int silent = r.size() - 1;
    r.Reserve(r.size());
    if (r.rank() == silent) {
      // Each tells how many of its posts were not refused, in one byte.
      std::vector<std::byte*> counts;
      for (const int src : r.Peers()) {
        counts.push_back(r.Buffer(1));
        r.Start({r.Receive(src, kGoTag, counts.back(), 1)});
      }
      r.UntilAllEnded();
      std::map<int, int> came;
      r.Until("all posts that were taken", [&] {
        int src = -1;
        Bytes record;
        while (r.fabric().PollPost(&src, &record)) {
          EXPECT_EQ(record, Content(src, r.rank(), came[src]++, 200));
        }
        const std::vector<int> peers = r.Peers();
        return std::all_of(peers.begin(), peers.end(), [&](int peer) {
          return static_cast<std::byte>(came[peer]) == *counts[static_cast<size_t>(peer)] &&
                 came[peer] >= Fabric::kMaxPostsPending;
        });
      });
      return;
    }
    const int taken = PostOften(r, silent, kPosts);
    EXPECT_GE(taken, Fabric::kMaxPostsPending);
    // The others still hear each other.
    for (const int dst : r.Peers()) {
      if (dst == silent) continue;
      EXPECT_TRUE(r.fabric().Post(dst, Content(r.rank(), dst, 0, 30)).ok());
    }
    int heard = 0;
    r.Until("posts of those that poll", [&] {
      int src = -1;
      Bytes record;
      while (r.fabric().PollPost(&src, &record)) {
        EXPECT_EQ(record, Content(src, r.rank(), 0, 30));
        ++heard;
      }
      return heard == r.size() - 2;
    });
    std::byte* const count = r.Buffer(1);
    *count = static_cast<std::byte>(taken);
    r.Start({r.Send(silent, kGoTag, count, 1)});
    r.Until("the silent rank", [&] {
      int src = -1;
      Bytes record;
      EXPECT_FALSE(r.fabric().PollPost(&src, &record));
      return r.started() == r.ended();
    });
  });
}

// Gathers, posts and messages do not take each other's.
TEST_P(FabricContract, PostsPassGathersAndMessages) {
  Run([](ContractRank& r) {
    r.Reserve(2);
    EXPECT_TRUE(r.fabric().StartAllGather(Bytes(16)).ok());
    // Never polled to its end before the posts have come.
    r.Start({r.Receive(r.previous(), 0, r.Buffer(100000), 100000),
             r.Send(r.next(), 0, r.Buffer(100000), 100000)});
    for (const int dst : r.Peers()) {
      EXPECT_TRUE(r.fabric().Post(dst, Content(r.rank(), dst, 0, 0)).ok());
    }
    UntilPosts(r, 1);
    r.Until("the gather", [&] {
      std::vector<std::byte> all;
      return r.fabric().PollAllGather(&all, nullptr).value_or(false);
    });
    r.UntilAllEnded();
  });
}

}  // namespace
}  // namespace sluice
