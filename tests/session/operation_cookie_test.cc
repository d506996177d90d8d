// Slots and tickets, there and back in a cookie.
#include "session/base/operation_cookie.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(OperationCookieTest, HoldsASlotAndATicketAndIsNoMark) {
  constexpr Ticket kTicketMax = std::numeric_limits<Ticket>::max();
  constexpr size_t kSlotMax = (size_t{1} << 31) - 1;
  std::set<uint64_t> cookies = {kMarkCookie};
  for (const size_t slot : {size_t{0}, size_t{1}, size_t{77}, kSlotMax}) {
    for (const Ticket ticket : {Ticket{0}, Ticket{1}, Ticket{1} << 31, kTicketMax}) {
      const uint64_t cookie = CookieOf(slot, ticket);
      EXPECT_EQ(SlotOf(cookie), slot);
      EXPECT_EQ(TicketOf(cookie), ticket);
      EXPECT_TRUE(cookies.insert(cookie).second) << slot << " " << ticket;
    }
  }
  EXPECT_GT(SlotOf(kMarkCookie), kSlotMax);
}

}  // namespace
}  // namespace sluice
