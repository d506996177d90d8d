// Cards as bytes, the choice of wires, and nodes by what members reach.
#include "world/card.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "world/reach.h"
#include "world/wires.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Card UcxCard(const std::string& version) {
  Card card;
  card.wires = "auto";
  card.tcp_address = "127.0.0.1:1";
  card.ucx_address = std::string("\0\n:9", 4);
  card.ucx_version = version;
  return card;
}

Card BareCard(const std::string& lack) {
  Card card;
  card.wires = "auto";
  card.ucx_lack = lack;
  return card;
}

std::vector<StoredMember> Members(size_t count) {
  std::vector<StoredMember> members(count);
  for (size_t rank = 0; rank < count; ++rank) {
    members[rank].role = "server";
    members[rank].rank = static_cast<int>(rank);
    members[rank].host = "h";
    members[rank].pid = static_cast<int>(rank) + 10;
  }
  return members;
}

absl::StatusOr<Wires> Choose(const std::vector<Card>& cards) {
  return ChooseWires(cards, Members(cards.size()));
}

TEST(CardTest, BytesAndBack) {
  Card card = UcxCard("1.13.1");
  card.status = absl::UnavailableError("no network");
  card.ucx_lack = "none";
  card.reach.word = 77;
  card.reach.process.pid = 12;
  const auto back = ParseCard(CardBytes(card)).value();
  EXPECT_EQ(back.status, card.status);
  EXPECT_EQ(back.ucx_address, card.ucx_address);
  EXPECT_EQ(back.reach.word, 77u);
  EXPECT_EQ(CardBytes(back), CardBytes(card));
}

TEST(CardTest, RefusesGarbage) {
  const std::string good = CardBytes(UcxCard("1.13.1"));
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(ParseCard(good.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(ParseCard(good + "x").ok());
  EXPECT_EQ(ParseCard("999999:x").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseCard("-1:x").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseCard("13:sluice-card-9").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(WiresTest, UcxIfAllHaveIt) {
  const auto wires = Choose({UcxCard("1.13.1"), UcxCard("1.13.0")}).value();
  EXPECT_TRUE(wires.ucx);
  EXPECT_EQ(wires.reason, "");
}

TEST(WiresTest, TcpIfOneLacksIt) {
  const auto wires = Choose({UcxCard("1.13.1"), BareCard("no libucp"), BareCard("old")}).value();
  EXPECT_FALSE(wires.ucx);
  EXPECT_EQ(wires.reason, "rank 1, server 1 (process 11 on h), has no UCX: no libucp");
  EXPECT_EQ(wires.why, wires.reason);
}

TEST(WiresTest, TcpWithoutAWordIfNobodyLooked) {
  const std::string lack(kNoRdmaDevice);
  const auto wires = Choose({BareCard(lack), BareCard(lack)}).value();
  EXPECT_FALSE(wires.ucx);
  EXPECT_EQ(wires.reason, "");
  const auto mixed = Choose({UcxCard("1.13.1"), BareCard(lack)}).value();
  EXPECT_FALSE(mixed.ucx);
  EXPECT_THAT(mixed.reason, HasSubstr("no RDMA device"));
}

TEST(WiresTest, TcpBetweenVersions) {
  const auto wires = Choose({UcxCard("1.13.1"), UcxCard("1.22.0")}).value();
  EXPECT_FALSE(wires.ucx);
  EXPECT_THAT(wires.reason, AllOf(HasSubstr("1.22.0"), HasSubstr("1.13.1")));
}

TEST(WiresTest, OneMembersTcpIsAllMembers) {
  std::vector<Card> cards = {UcxCard("1.13.1"), UcxCard("1.13.1")};
  cards[1].wires = "tcp";
  const auto wires = Choose(cards).value();
  EXPECT_FALSE(wires.ucx);
  EXPECT_EQ(wires.reason, "");
}

TEST(WiresTest, InsistingOnUcx) {
  std::vector<Card> cards = {UcxCard("1.13.1"), UcxCard("1.13.1")};
  cards[1].wires = "ucx";
  ASSERT_TRUE(Choose(cards).ok());
  EXPECT_TRUE(Choose(cards)->insists);
  cards[0].wires = "tcp";
  EXPECT_THAT(Choose(cards).status().ToString(),
              AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("rank 1"), HasSubstr("rank 0")));
  cards[0] = BareCard("no libucp");
  EXPECT_THAT(Choose(cards).status().ToString(),
              AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("no libucp")));
}

TEST(WiresTest, ABadMemberFailsAll) {
  std::vector<Card> cards = {UcxCard("1.13.1"), UcxCard("1.13.1")};
  cards[1].status = absl::ResourceExhaustedError("no descriptors");
  EXPECT_THAT(
      Choose(cards).status().ToString(),
      AllOf(HasSubstr("RESOURCE_EXHAUSTED"), HasSubstr("rank 1"), HasSubstr("no descriptors")));
}

TEST(ReachTest, MembersOfOneProcessShareANode) {
  const ReachPage a = ReachPage::Make();
  const ReachPage b = ReachPage::Make();
  const std::vector<ReachCard> cards = {a.card(), b.card()};
  EXPECT_EQ(ReachOf(0, cards), ReachOf(1, cards));
}

// A machine that is another's clone has its boot id, its process numbers, and other memory.
TEST(ReachTest, ClonesDoNotShareANode) {
  const ReachPage a = ReachPage::Make();
  const ReachPage b = ReachPage::Make();
  std::vector<ReachCard> cards = {a.card(), b.card()};
  ++cards[1].word;
  EXPECT_NE(ReachOf(0, cards), ReachOf(1, cards));
}

TEST(ReachTest, NobodyReachesAcrossSystemsAndNamespaces) {
  const ReachPage a = ReachPage::Make();
  const ReachPage b = ReachPage::Make();
  std::vector<ReachCard> cards = {a.card(), b.card()};
  ++cards[1].process.pid_namespace;
  EXPECT_NE(ReachOf(0, cards), ReachOf(1, cards));
  cards[1] = b.card();
  cards[1].process.boot[0] = 'x';
  EXPECT_NE(ReachOf(0, cards), ReachOf(1, cards));
}

TEST(ReachTest, APageThatIsNotThere) {
  const ReachPage a = ReachPage::Make();
  const std::vector<ReachCard> cards = {a.card(), ReachCard()};
  EXPECT_NE(ReachOf(0, cards), ReachOf(1, cards));
}

TEST(ReachTest, EqualSetsAreANode) {
  EXPECT_THAT(NodesByReach(std::vector<uint64_t>{7, 9, 7, 8, 9}), ElementsAre(0, 1, 0, 2, 1));
  EXPECT_THAT(NodesByReach({}), ElementsAre());
}

}  // namespace
}  // namespace sluice
