// Posts: what every fabric must make of short messages outside the order of everything else.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using Record = std::vector<std::byte>;

constexpr int kGoTag = 0;

Record Content(int src, int dst, int n, size_t bytes) {
  Record record(bytes);
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
  auto next = std::make_shared<std::map<int, int>>();
  r.Until("posts from all others", [&r, count, next] {
    int src = -1;
    Record record;
    while (r.fabric().PollPost(&src, &record)) {
      const int n = (*next)[src]++;
      EXPECT_EQ(record, Content(src, r.rank(), n, BytesOf(n))) << "post " << n << " of " << src;
    }
    return std::all_of(next->begin(), next->end(), [&](auto& p) { return p.second == count; }) &&
           static_cast<int>(next->size()) == r.size() - 1;
  });
}

TEST_P(FabricContract, PostsComeInOrderFromEachRank) {
  Run([](ContractRank& r) {
    r.Do([&r] {
      for (int n = 0; n < Fabric::kMaxPostsPending; ++n) {
        for (const int dst : r.Peers()) {
          EXPECT_TRUE(r.fabric().Post(dst, Content(r.rank(), dst, n, BytesOf(n))).ok());
        }
      }
    });
    UntilPosts(r, Fabric::kMaxPostsPending);
  });
}

// One word to all, as of a rank that fails.
TEST_P(FabricContract, EqualPostsReachEveryRank) {
  Run([](ContractRank& r) {
    auto record = std::make_shared<Record>();
    auto src = std::make_shared<int>(-1);
    r.Do([&r] {
      if (r.rank() != 1) return;
      for (const int dst : r.Peers()) EXPECT_TRUE(r.fabric().Post(dst, Record(900)).ok());
    });
    if (r.rank() == 1) return;
    r.Until("the post", [&r, src, record] { return r.fabric().PollPost(src.get(), record.get()); });
    r.Do([src, record] {
      EXPECT_EQ(*src, 1);
      EXPECT_EQ(*record, Record(900));
    });
  });
}

// A rank that does not poll for long is refused some posts or none; what was taken comes, in order,
// and others are not kept waiting.
TEST_P(FabricContract, PostsToARankThatDoesNotPollAreRefusedOrKept) {
  Run([](ContractRank& r) {
    constexpr int kPosts = 200;  // fits one byte
    const int silent = r.size() - 1;
    r.Do([&r] { EXPECT_TRUE(r.transport().Reserve(r.size()).ok()); });
    auto taken = std::make_shared<std::byte>();
    if (r.rank() == silent) {
      // Each tells how many of its posts were not refused, in one byte.
      auto counts = std::make_shared<std::vector<std::byte*>>();
      r.Do([&r, counts] {
        for (const int src : r.Peers()) {
          counts->push_back(r.Buffer(1));
          r.Start({r.Receive(src, kGoTag, counts->back(), 1)});
        }
      });
      r.UntilAllEnded();
      auto came = std::make_shared<std::map<int, int>>();
      r.Until("all posts that were taken", [&r, counts, came] {
        int src = -1;
        Record record;
        while (r.fabric().PollPost(&src, &record)) {
          EXPECT_EQ(record, Content(src, r.rank(), (*came)[src]++, 200));
        }
        for (const int peer : r.Peers()) {
          const int count = (*came)[peer];
          if (static_cast<std::byte>(count) != *(*counts)[static_cast<size_t>(peer)] ||
              count < Fabric::kMaxPostsPending) {
            return false;
          }
        }
        return true;
      });
      return;
    }
    r.Do([&r, silent, taken] {
      int sent = 0;
      for (int i = 0; i < kPosts; ++i) {
        const absl::Status status = r.fabric().Post(silent, Content(r.rank(), silent, sent, 200));
        if (status.ok()) {
          ++sent;
          continue;
        }
        EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
        EXPECT_THAT(std::string(status.message()), HasSubstr("posts to rank"));
      }
      EXPECT_GE(sent, Fabric::kMaxPostsPending);
      *taken = static_cast<std::byte>(sent);
    });
    // The others still hear each other.
    r.Do([&r, silent] {
      for (const int dst : r.Peers()) {
        if (dst == silent) continue;
        EXPECT_TRUE(r.fabric().Post(dst, Content(r.rank(), dst, 0, 30)).ok());
      }
    });
    auto heard = std::make_shared<int>(0);
    r.Until("posts of those that poll", [&r, heard] {
      int src = -1;
      Record record;
      while (r.fabric().PollPost(&src, &record)) {
        EXPECT_EQ(record, Content(src, r.rank(), 0, 30));
        ++*heard;
      }
      return *heard == r.size() - 2;
    });
    r.Do([&r, silent, taken] {
      std::byte* count = r.Buffer(1);
      *count = *taken;
      r.Start({r.Send(silent, kGoTag, count, 1)});
    });
    r.Until("the silent rank", [&r] {
      int src = -1;
      Record record;
      EXPECT_FALSE(r.fabric().PollPost(&src, &record));
      return r.started() == r.ended();
    });
  });
}

// Gathers, posts and messages do not take each other's.
TEST_P(FabricContract, PostsPassGathersAndMessages) {
  Run([](ContractRank& r) {
    r.Do([&r] {
      EXPECT_TRUE(r.transport().Reserve(2).ok());
      EXPECT_TRUE(r.fabric().StartAllGather(Record(16)).ok());
      const int next = (r.rank() + 1) % r.size();
      const int previous = (r.rank() + r.size() - 1) % r.size();
      // Never polled to its end before the posts have come.
      const TransportOp ops[] = {r.Receive(previous, 0, r.Buffer(100000), 100000),
                                 r.Send(next, 0, r.Buffer(100000), 100000)};
      r.Start(ops);
      for (const int dst : r.Peers()) {
        EXPECT_TRUE(r.fabric().Post(dst, Content(r.rank(), dst, 0, 0)).ok());
      }
    });
    UntilPosts(r, 1);
    r.Until("the gather", [&r] {
      std::vector<std::byte> all;
      return r.fabric().PollAllGather(&all, nullptr).value_or(false);
    });
    r.UntilAllEnded();
  });
}

}  // namespace
}  // namespace sluice
