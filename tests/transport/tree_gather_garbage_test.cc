// Messages of an all-gather that no rank should send: an error that names the sender, and no harm.
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/fabric.h"
#include "transport/tree_gather.h"
#include "transport/tree_message.h"
#include "transport/tree_world.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Bytes = std::vector<std::byte>;

struct Sent {
  int dst;
  Bytes bytes;
};

// What rank `rank` of `size` sends at the start of its first gather.
std::vector<Sent> FirstMessages(int rank, int size, size_t bytes) {
  TreeGather tree(rank, size);
  tree.Start(TreeRecord(rank, 0, bytes), 0);
  std::vector<Sent> sent;
  for (Sent next; tree.Next(0, &next.dst, &next.bytes);) sent.push_back(next);
  return sent;
}

Bytes MessageTo(int dst, int src, int size, size_t bytes) {
  for (const Sent& sent : FirstMessages(src, size, bytes)) {
    if (sent.dst == dst) return sent.bytes;
  }
  return {};
}

template <typename T>
void Set(Bytes* bytes, size_t offset, T value) {
  std::memcpy(bytes->data() + offset, &value, sizeof(value));
}

void ExpectRefused(TreeGather& tree, int src, const Bytes& bytes, const std::string& why) {
  const absl::Status status = tree.Take(src, bytes);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(absl::StrCat("from rank ", src, " to rank 0")), HasSubstr(why)));
}

TEST(TreeGatherGarbageTest, SaysWhatIsWrongWithAMessage) {
  constexpr int kSize = 20;
  const Bytes good = MessageTo(0, 19, kSize, 8);
  ASSERT_EQ(good.size(), TreeMessage::kHeaderBytes + 8);
  TreeGather tree(0, kSize);
  tree.Start(TreeRecord(0, 0, 8), 0);
  const auto with = [&good](const std::function<void(Bytes*)>& change) {
    Bytes bytes = good;
    change(&bytes);
    return bytes;
  };
  ExpectRefused(tree, 19, {}, "0 bytes are too short");
  ExpectRefused(tree, 19, Bytes(39), "39 bytes are too short");
  ExpectRefused(tree, 19, Bytes(2 << 20), "2097152 bytes, but at most");
  ExpectRefused(tree, 19, Bytes(100), "its format is unknown");
  ExpectRefused(tree, 19, with([](Bytes* b) { Set<uint32_t>(b, 4, 7); }), "its kind is unknown");
  ExpectRefused(tree, 19, with([](Bytes* b) { Set<uint64_t>(b, 8, 0); }),
                "of gather 0, but this rank is in gather 1");
  ExpectRefused(tree, 19, with([](Bytes* b) { Set<uint64_t>(b, 8, 3); }),
                "of gather 3, but this rank is in gather 1");
  ExpectRefused(tree, 19, with([](Bytes* b) { Set<int32_t>(b, 16, 21); }), "between 21 ranks");
  ExpectRefused(tree, 19, with([](Bytes* b) { Set<int32_t>(b, 20, -1); }), "-1 ranks before");
  ExpectRefused(tree, 19, with([](Bytes* b) { Set<int32_t>(b, 24, 0); }), "0 records");
  ExpectRefused(tree, 19, with([](Bytes* b) { Set<int32_t>(b, 24, INT32_MAX); }), "records");
  ExpectRefused(tree, 19, with([](Bytes* b) { Set<int32_t>(b, 24, 2); }), "bytes are not what");
  ExpectRefused(tree, 19, with([](Bytes* b) { Set<int32_t>(b, 28, 2001); }), "of 2001 bytes");
  ExpectRefused(tree, 19, with([](Bytes* b) { Set<int32_t>(b, 28, -2); }), "of -2 bytes");
  ExpectRefused(tree, 19, with([](Bytes* b) { b->push_back(std::byte{0}); }), "bytes are not what");
  // Each its own length, but the lengths are not there, or too large.
  ExpectRefused(tree, 19, with([](Bytes* b) {
                  Set<int32_t>(b, 28, -1);
                  b->resize(TreeMessage::kHeaderBytes + 1);
                }),
                "bytes are not what");
  ExpectRefused(tree, 19, with([](Bytes* b) {
                  Set<int32_t>(b, 28, -1);
                  Set<uint16_t>(b, 40, 2001);
                }),
                "a record of 2001 bytes");
  // From elsewhere; another rank's record.
  ExpectRefused(tree, 11, good, "its records go elsewhere");
  ExpectRefused(tree, 19, with([](Bytes* b) { Set<int32_t>(b, 20, 1); }), "other records than");
  // A hint about some ranks.
  ExpectRefused(tree, 19, with([](Bytes* b) { Set<uint32_t>(b, 4, 2); }), "a hint about some");
  ExpectRefused(tree, 19, with([](Bytes* b) {
                  Set<uint32_t>(b, 4, 2);
                  Set<int32_t>(b, 24, kSize);
                }),
                "bytes are not what");
  // None of this has changed anything.
  EXPECT_TRUE(tree.Take(19, good).ok());
  ExpectRefused(tree, 19, good, "the record of rank 19 comes again");
}

TEST(TreeGatherGarbageTest, RefusesAMessageOfAGatherThatIsPast) {
  constexpr int kSize = 3;
  TreeWorld world(kSize);
  for (int rank = 0; rank < kSize; ++rank) world.Start(rank, TreeRecord(rank, 0, 8));
  ASSERT_TRUE(world.Settle({0, 1, 2}).ok());
  ExpectRefused(world.tree(0), 1, MessageTo(0, 1, kSize, 8),
                "of gather 1, but this rank is past gather 1");
}

// What a rank keeps of the next gather is no more than that gather's records.
TEST(TreeGatherGarbageTest, KeepsOneRecordOfEachRankForTheNextGather) {
  constexpr int kSize = 3;
  TreeGather tree(0, kSize);
  const Bytes message = MessageTo(0, 1, kSize, 8);
  EXPECT_TRUE(tree.Take(1, message).ok());
  ExpectRefused(tree, 1, message, "the record of rank 1 comes again");
  EXPECT_TRUE(tree.Take(2, MessageTo(0, 2, kSize, 8)).ok());
  tree.Start(TreeRecord(0, 0, 8), 0);
  Bytes bytes;
  for (int dst = 0; tree.Next(0, &dst, &bytes);) {
  }
  Bytes all;
  EXPECT_TRUE(tree.Poll(&all, nullptr).value());
  EXPECT_EQ(all, TreeRecords(kSize, 0, 8));
}

// Changed messages of real jobs, in any order, from anywhere. They are errors, or bring wrong
// records. The sanitizers and the checks have nothing to complain of, and each loop ends.
TEST(TreeGatherGarbageTest, SurvivesChangedMessages) {
  std::mt19937 random(1);
  const auto below = [&random](size_t end) {
    return std::uniform_int_distribution<size_t>(0, end - 1)(random);
  };
  for (int round = 0; round < 300; ++round) {
    const int size = 2 + static_cast<int>(below(30));
    std::vector<Sent> seen;
    std::vector<std::unique_ptr<TreeGather>> trees;
    for (int rank = 0; rank < size; ++rank) {
      trees.push_back(std::make_unique<TreeGather>(rank, size));
    }
    int64_t now_ns = 0;
    for (int step = 0; step < 300; ++step) {
      now_ns += static_cast<int64_t>(below(100'000'000));
      const int rank = static_cast<int>(below(static_cast<size_t>(size)));
      TreeGather& tree = *trees[static_cast<size_t>(rank)];
      if (!tree.is_under_way()) tree.Start(TreeRecord(rank, 0, below(100)), now_ns);
      Sent sent;
      while (tree.Next(now_ns, &sent.dst, &sent.bytes)) {
        ASSERT_TRUE(sent.dst >= 0 && sent.dst < size && sent.dst != rank);
        seen.push_back(sent);
      }
      Bytes all;
      std::vector<int> missing;
      static_cast<void>(tree.Poll(&all, &missing));
      if (seen.empty()) continue;
      Bytes bytes = seen[below(seen.size())].bytes;
      for (size_t changes = below(4); changes > 0 && !bytes.empty(); --changes) {
        const size_t at = below(2) == 0 ? below(bytes.size()) : below(TreeMessage::kHeaderBytes);
        if (at < bytes.size()) bytes[at] = static_cast<std::byte>(below(256));
        if (below(8) == 0) bytes.resize(below(bytes.size() + 20));
      }
      const int src = (rank + 1 + static_cast<int>(below(static_cast<size_t>(size - 1)))) % size;
      const absl::Status status = tree.Take(src, bytes);
      if (!status.ok()) {
        ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        ASSERT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("rank ", src)));
      }
    }
  }
}

}  // namespace
}  // namespace sluice
