// What every transport must do with groups of operations that all ranks start in one order.
// Transports in groups can be used in no other way. All other transports take such groups, too.
#include <cstdint>
#include <random>
#include <vector>

#include "absl/status/status.h"
#include "main/fails.h"
#include "oracle/sampled.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

constexpr int kTag = 3;

struct Message {
  int src;
  int dst;
  size_t bytes;
  uint64_t seed;
};
// In one order for all ranks.
using Group = std::vector<Message>;

// What a rank has received, to be checked at the end.
struct Received {
  std::byte* data;
  size_t bytes;
  uint64_t seed;
};

// This rank's part of a group.
std::vector<TransportOp> Operations(ContractRank& r, const Group& group,
                                    std::vector<Received>* list) {
  std::vector<TransportOp> ops;
  for (const Message& message : group) {
    if (message.src == r.rank()) {
      std::byte* const data = r.FilledBuffer(message.bytes, message.seed);
      ops.push_back(r.Send(message.dst, kTag, data, message.bytes));
    }
    if (message.dst == r.rank()) {
      std::byte* const data = r.Buffer(message.bytes);
      ops.push_back(r.Receive(message.src, kTag, data, message.bytes));
      list->push_back({data, message.bytes, message.seed});
    }
  }
  return ops;
}

// Starts the groups in order; each after the end of the one before it, or all at once.
void Exchange(ContractRank& r, const std::vector<Group>& groups, bool one_at_a_time) {
  std::vector<Received> list;
  for (const Group& group : groups) {
    const std::vector<TransportOp> ops = Operations(r, group, &list);
    if (!ops.empty()) r.Start(ops);
    if (one_at_a_time) r.UntilAllEnded();
  }
  r.UntilAllEnded();
  for (const Received& received : list) {
    EXPECT_TRUE(r.Matches(received.data, received.bytes, received.seed))
        << received.bytes << " bytes at rank " << r.rank();
  }
}

Group AllToAll(int size, size_t bytes, uint64_t seed) {
  Group group;
  for (int distance = 1; distance < size; ++distance) {
    for (int src = 0; src < size; ++src) {
      group.push_back({src, (src + distance) % size, bytes, ++seed});
    }
  }
  return group;
}

TEST_P(GroupContract, ExchangesAllToAll) {
  Run([](ContractRank& r) {
    std::vector<Group> groups;
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4095}, (size_t{1} << 16) + 3}) {
      groups.push_back(AllToAll(r.size(), bytes, 1000 * groups.size()));
    }
    r.Reserve(2 * r.size() * static_cast<int>(groups.size()));
    Exchange(r, groups, false);
    Exchange(r, groups, true);
  });
}

TEST_P(GroupContract, KeepsOrderBetweenTwoRanks) {
  Run([](ContractRank& r) {
    constexpr int kMessages = 7;  // as many as one kernel of NCCL takes, also of one rank
    r.Reserve(4 * kMessages);
    Group group;
    for (int n = 0; n < kMessages; ++n) {
      const auto seed = static_cast<uint64_t>(n);
      for (int src = 0; src < r.size(); ++src) {
        group.push_back({src, (src + 1) % r.size(), 5000, seed});
      }
    }
    Exchange(r, {group}, false);
  });
}

// Ranks take part in some groups, between some of the others, in both directions or one.
TEST_P(GroupContract, CarriesRandomGroups) {
  for (uint64_t seed = 0; seed < static_cast<uint64_t>(oracle::Sampled(16)); ++seed) {
    Run([seed](ContractRank& r) {
      if (r.size() == 1) return;
      std::mt19937_64 random(seed);
      const auto below = [&random](size_t n) { return static_cast<int>(random() % n); };
      std::vector<Group> groups(12);
      const auto size = static_cast<size_t>(r.size());
      for (Group& group : groups) {
        group.resize(random() % (2 * size));
        for (Message& message : group) {
          message = {below(size), 0, random() % 20000, random()};
          message.dst = (message.src + 1 + below(size - 1)) % r.size();
        }
      }
      r.Reserve(2 * 12 * 2 * r.size());
      Exchange(r, groups, seed % 2 == 0);
    });
  }
}

// Each group forwards what the one before it has brought. Transports in groups take no waiting.
TEST_P(GroupContract, ForwardsFromGroupToGroup) {
  Run([](ContractRank& r) {
    constexpr size_t kBytes = 100000;
    const auto own = static_cast<uint64_t>(r.rank());
    r.Reserve(2 * r.size());
    std::byte* data = r.FilledBuffer(kBytes, own);
    for (int hop = 0; hop < r.size(); ++hop) {
      std::byte* const received = r.Buffer(kBytes);
      r.Start(
          {r.Send(r.next(), kTag, data, kBytes), r.Receive(r.previous(), kTag, received, kBytes)});
      data = received;
      if (!r.transport().traits().in_groups) r.UntilAllEnded();
    }
    r.UntilAllEnded();
    EXPECT_TRUE(r.Matches(data, kBytes, own)) << "once around";
  });
}

TEST_P(GroupContract, SendsToItselfWhereThatIsTaken) {
  Run([](ContractRank& r) {
    if (!r.transport().traits().takes_own_rank) return;
    Group group;
    for (int rank = 0; rank < r.size(); ++rank) {
      group.push_back({rank, rank, 70000, static_cast<uint64_t>(rank)});
      group.push_back({rank, (rank + 1) % r.size(), 3000, static_cast<uint64_t>(100 + rank)});
    }
    r.Reserve(4);
    Exchange(r, {group}, false);
  });
}

TEST_P(GroupContract, RefusesWhatDoesNotFitAndStartsNothing) {
  Run([](ContractRank& r) {
    r.Reserve(2);
    r.Reserve(1);  // never less than before
    std::vector<TransportOp> ops(3);
    for (TransportOp& op : ops) op = r.Send(r.next(), kTag, r.FilledBuffer(8, 99), 8);
    EXPECT_THAT(r.transport().Start(ops),
                Fails(absl::StatusCode::kResourceExhausted, "room for 2"));
    EXPECT_EQ(r.transport().outstanding(), 0);
    for (const TransportOp& op : ops) r.Forget(op);
    // Had one of the refused messages been sent, the receive would meet it.
    Group group;
    for (int src = 0; src < r.size(); ++src) {
      group.push_back({src, (src + 1) % r.size(), 8, static_cast<uint64_t>(src)});
    }
    Exchange(r, {group}, false);
  });
}

TEST_P(GroupContract, CountsWhatIsOutstanding) {
  Run([](ContractRank& r) {
    constexpr int kGroups = 10;
    r.Reserve(2 * kGroups);
    EXPECT_EQ(r.transport().outstanding(), 0);
    for (int n = 0; n < kGroups; ++n) {
      r.Start({r.Receive(r.previous(), kTag, r.Buffer(100), 100),
               r.Send(r.next(), kTag, r.FilledBuffer(100, 5), 100)});
      EXPECT_EQ(r.transport().outstanding(), 2 * n + 2);
    }
    // Room for no event, one, or several: none is lost and none comes twice.
    size_t room = 0;
    r.Until("the end of all operations", [&r, &room] {
      r.Poll(room++ % 4);
      EXPECT_EQ(static_cast<size_t>(r.transport().outstanding()), r.started() - r.ended());
      return r.ended() == r.started();
    });
    EXPECT_EQ(r.transport().outstanding(), 0);
  });
}

// From one piece of staging into another one, twice: the second instead of the first.
TEST_P(GroupContract, UsesStaging) {
  Run([](ContractRank& r) {
    constexpr size_t kBytes = 10000;
    r.Reserve(2);
    for (uint64_t seed : {1, 2}) {
      std::byte* const staging = r.FilledBuffer(2 * kBytes, seed);
      EXPECT_TRUE(r.transport().UseStaging({staging, 2 * kBytes}).ok());
      r.Start({r.Send(r.next(), kTag, staging, kBytes),
               r.Receive(r.previous(), kTag, staging + kBytes, kBytes)});
      r.UntilAllEnded();
      EXPECT_TRUE(r.Matches(staging + kBytes, kBytes, seed));
    }
    EXPECT_TRUE(r.transport().UseStaging({}).ok());
  });
}

}  // namespace
}  // namespace sluice
