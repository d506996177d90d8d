// Which ranks are looked at: those that a gather connects.
#include "world/rank_ends.h"

#include <deque>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "transport/tree_gather.h"

namespace sluice {
namespace {

struct Message {
  int src;
  int dst;
  std::vector<std::byte> bytes;
};

// The messages of a whole gather, without hints.
std::vector<Message> MessagesOf(int size) {
  std::vector<std::unique_ptr<TreeGather>> gathers;
  for (int rank = 0; rank < size; ++rank) {
    gathers.push_back(std::make_unique<TreeGather>(rank, size));
    gathers.back()->Start({}, 0);
  }
  std::vector<Message> all;
  size_t taken = 0;
  bool moved = true;
  while (moved) {
    moved = false;
    for (int rank = 0; rank < size; ++rank) {
      Message message = {rank, -1, {}};
      while (gathers[static_cast<size_t>(rank)]->Next(0, &message.dst, &message.bytes)) {
        all.push_back(message);
      }
    }
    for (; taken < all.size(); ++taken, moved = true) {
      const Message& message = all[taken];
      EXPECT_TRUE(gathers[static_cast<size_t>(message.dst)]->Take(message.src, message.bytes).ok());
    }
  }
  return all;
}

TEST(RankEndsTest, WhoIsOneMessageAway) {
  for (const int size : {1, 2, 3, 8, 9, 10, 17, 64, 65, 100}) {
    std::vector<std::vector<bool>> meets(static_cast<size_t>(size),
                                         std::vector<bool>(static_cast<size_t>(size)));
    for (const Message& message : MessagesOf(size)) {
      meets[static_cast<size_t>(message.src)][static_cast<size_t>(message.dst)] = true;
      meets[static_cast<size_t>(message.dst)][static_cast<size_t>(message.src)] = true;
    }
    for (int a = 0; a < size; ++a) {
      for (int b = 0; b < size; ++b) {
        EXPECT_EQ(IsOneMessageAway(a, b, size),
                  meets[static_cast<size_t>(a)][static_cast<size_t>(b)])
            << a << " and " << b << " of " << size;
      }
    }
  }
}

}  // namespace
}  // namespace sluice
