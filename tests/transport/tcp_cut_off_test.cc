// Messages that the end of their sender's transport cuts off: when that is told.
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "transport/tcp_end.h"
#include "transport/tcp_ranks.h"

namespace sluice {
namespace {

constexpr size_t kLarge = size_t{64} << 20;

// Who failed first is said by control, which comes before the news that the sender's end has cut
// off a message. So it is asked for after each Poll here, not before.
TEST(TcpCutOffTest, ControlIsHeardBeforeWhatTheSendersEndHasCutOff) {
  const auto links = MakeTcpLinks(2);
  auto a = std::make_unique<TcpEnd>(links[0]);
  TcpEnd b(links[1]);
  std::vector<std::byte> sent = Pattern(kLarge, 1), received(kLarge);
  b.Start({ReceiveFrom(0, received, 1)});
  a->Start({SendTo(1, sent, 1)});
  EXPECT_TRUE(PollUntil({a.get(), &b}, [&] { return received[100] == sent[100]; }));
  ASSERT_TRUE(a->events.empty());
  EXPECT_TRUE(links[0]->SendControl(1, 0, {std::byte{3}}).ok());
  a = nullptr;
  bool heard = false;
  EXPECT_TRUE(PollAllUntil(
      [&] {
        links[0]->Progress();
        b.Poll();
        EXPECT_TRUE(heard || b.events.empty()) << b.events[0].status;
        int src = -1;
        std::vector<std::byte> record;
        heard = links[1]->PollControl(0, &src, &record) || heard;
      },
      [&] { return !b.events.empty(); }));
  EXPECT_TRUE(absl::IsUnavailable(b.StatusOf(1))) << b.StatusOf(1);
}

// Whoever parts has heard enough.
TEST(TcpCutOffTest, WhoPartsIsToldAtOnceOfWhatHasBeenCutOff) {
  const auto links = MakeTcpLinks(2);
  auto a = std::make_unique<TcpEnd>(links[0]);
  TcpEnd b(links[1]);
  std::vector<std::byte> sent = Pattern(kLarge, 1), received(kLarge);
  b.Start({ReceiveFrom(0, received, 1)});
  a->Start({SendTo(1, sent, 1)});
  EXPECT_TRUE(PollUntil({a.get(), &b}, [&] { return received[100] == sent[100]; }));
  a = nullptr;
  // Comes after the word that the rest of the message does not come.
  EXPECT_TRUE(links[0]->SendControl(1, 0, {std::byte{3}}).ok());
  int src = -1;
  std::vector<std::byte> record;
  EXPECT_TRUE(PollAllUntil([&] { links[0]->Progress(); },
                           [&] { return links[1]->PollControl(0, &src, &record); }));
  b.transport->Part();
  b.Poll();
  EXPECT_TRUE(absl::IsUnavailable(b.StatusOf(1))) << b.StatusOf(1);
}

}  // namespace
}  // namespace sluice
