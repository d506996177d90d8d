// Who is there, lost or missing, and whose word counts, by what lies at the store.
#include "world/attendance.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sluice/store.h"
#include "transport/deadline.h"
#include "world/meeting.h"
#include "world/world_options.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

StoredMember MakeMember(int64_t number, const std::string& role, int rank, int size,
                        const std::string& roles) {
  StoredMember member;
  member.id = "id" + std::to_string(number);
  member.number = number;
  member.role = role;
  member.rank = rank;
  member.size = size;
  member.roles = roles;
  member.host = "host" + std::to_string(number);
  member.pid = static_cast<int>(1000 + number);
  return member;
}

void Come(const StoredMember& member, StoreEntries* entries) {
  entries->emplace_back(HereKey("w", member.role, member.rank), MemberText(member));
  entries->emplace_back(SaidKey("w", member.role, member.rank), MemberText(member));
}

std::vector<std::string> Names(const std::vector<StoredMember>& members) {
  std::vector<std::string> names;
  names.reserve(members.size());
  for (const StoredMember& member : members) names.push_back(member.Name());
  return names;
}

TEST(MemberTest, TextAndBack) {
  const StoredMember member = MakeMember(7, "server", 3, 4, "trainer:2,server:4");
  const auto back = ParseMember(MemberText(member)).value();
  EXPECT_EQ(MemberText(back), MemberText(member));
  EXPECT_EQ(back.Describe(), "server 3 (process 1007 on host7)");
}

TEST(MemberTest, RefusesGarbage) {
  const std::string good = MemberText(MakeMember(7, "server", 3, 4, "server:4"));
  for (size_t length = 0; length + 3 < good.size(); ++length) {
    EXPECT_FALSE(ParseMember(good.substr(0, length)).ok()) << length;
  }
  for (size_t i = 0; i < good.size(); ++i) {
    if (good[i] == '\n') continue;
    std::string bad = good;
    bad[i] = '\n';
    EXPECT_FALSE(ParseMember(bad).ok()) << i;
  }
  EXPECT_FALSE(ParseMember(MemberText(MakeMember(1, "a", 4, 4, "a:4"))).ok());
  EXPECT_FALSE(ParseMember(MemberText(MakeMember(1, "a", 0, 1 << 20, "a"))).ok());
  EXPECT_FALSE(ParseMember(MemberText(MakeMember(1, "a", 0, 1, "a,,"))).ok());
  EXPECT_THAT(std::string(ParseMember("sluice-member-2\nx").status().message()),
              HasSubstr("another version"));
}

TEST(AttendanceTest, AloneItWaitsForTheOthers) {
  const StoredMember own = MakeMember(1, "trainer", 1, 2, "trainer:2,server");
  const Attendance attendance = TakeAttendance(own, {});
  EXPECT_TRUE(attendance.conflict.ok());
  EXPECT_FALSE(attendance.complete());
  EXPECT_THAT(Names(attendance.present), ElementsAre("trainer 1"));
  // Nobody has said how many servers there are.
  EXPECT_THAT(attendance.missing, ElementsAre("trainer 0", "server 0"));
}

TEST(AttendanceTest, RanksAreInDeclaredOrder) {
  StoreEntries entries;
  Come(MakeMember(1, "a", 10, 11, "z:1,a:11"), &entries);
  Come(MakeMember(2, "a", 2, 11, "z:1,a:11"), &entries);
  const StoredMember own = MakeMember(3, "z", 0, 1, "z:1,a");
  const Attendance attendance = TakeAttendance(own, entries);
  EXPECT_THAT(Names(attendance.present), ElementsAre("z 0", "a 2", "a 10"));
  EXPECT_EQ(attendance.missing.size(), 9u);
  EXPECT_EQ(RolesText(attendance.roles), "z:1,a:11");
}

TEST(AttendanceTest, CompleteWhenAllAreThere) {
  StoreEntries entries;
  Come(MakeMember(2, "server", 1, 2, "trainer,server:2"), &entries);
  Come(MakeMember(3, "server", 0, 2, "trainer,server:2"), &entries);
  const StoredMember own = MakeMember(1, "trainer", 0, 1, "trainer:1,server");
  Come(own, &entries);
  const Attendance attendance = TakeAttendance(own, entries);
  EXPECT_TRUE(attendance.complete());
  EXPECT_THAT(Names(attendance.present), ElementsAre("trainer 0", "server 0", "server 1"));
}

TEST(AttendanceTest, TheFirstIsRightAboutSizes) {
  StoreEntries entries;
  const StoredMember first = MakeMember(1, "server", 0, 4, "trainer:2,server:4");
  const StoredMember second = MakeMember(2, "trainer", 0, 2, "trainer:2,server:3");
  Come(first, &entries);
  Come(second, &entries);
  const Attendance late = TakeAttendance(second, entries);
  EXPECT_EQ(late.conflict.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(late.conflict.message()),
              testing::AllOf(HasSubstr("trainer 0 (process 1002 on host2)"), HasSubstr("server:3"),
                             HasSubstr("server 0 (process 1001 on host1)"), HasSubstr("server:4")));
  const Attendance early = TakeAttendance(first, entries);
  EXPECT_TRUE(early.conflict.ok()) << early.conflict;
  EXPECT_THAT(Names(early.present), ElementsAre("server 0"));
}

TEST(AttendanceTest, OtherRolesAndOrdersContradict) {
  for (const std::string roles :
       {"trainer:2", "server:4,trainer:2", "trainer:2,serving:4", "trainer:2,server:4,judge:1"}) {
    StoreEntries entries;
    Come(MakeMember(1, "trainer", 0, 2, roles), &entries);
    const StoredMember own = MakeMember(2, "trainer", 1, 2, "trainer:2,server:4");
    EXPECT_EQ(TakeAttendance(own, entries).conflict.code(), absl::StatusCode::kFailedPrecondition)
        << roles;
  }
}

// A member that the first contradicts does not count for those that come after both.
TEST(AttendanceTest, SizesOfThoseThatFailAreNotTaken) {
  StoreEntries entries;
  Come(MakeMember(1, "a", 0, 1, "a:1,b"), &entries);
  Come(MakeMember(2, "c", 0, 9, "a:1,b,c:9"), &entries);
  const StoredMember own = MakeMember(3, "b", 0, 1, "a,b:1");
  const Attendance attendance = TakeAttendance(own, entries);
  EXPECT_TRUE(attendance.complete()) << attendance.conflict;
  EXPECT_EQ(RolesText(attendance.roles), "a:1,b:1");
}

TEST(AttendanceTest, LostMembersAreMissingToo) {
  StoreEntries entries;
  const StoredMember lost = MakeMember(1, "a", 1, 3, "a:3");
  entries.emplace_back(SaidKey("w", "a", 1), MemberText(lost));
  const StoredMember own = MakeMember(2, "a", 0, 3, "a:3");
  Come(own, &entries);
  const Attendance attendance = TakeAttendance(own, entries);
  EXPECT_THAT(Names(attendance.present), ElementsAre("a 0"));
  EXPECT_THAT(Names(attendance.lost), ElementsAre("a 1"));
  EXPECT_THAT(attendance.missing, ElementsAre("a 1", "a 2"));
}

TEST(AttendanceTest, GarbageDoesNotCount) {
  const StoreEntries entries = {{HereKey("w", "a", 1), "garbage"}, {"w/member/", "x"}};
  const Attendance attendance = TakeAttendance(MakeMember(2, "a", 0, 2, "a:2"), entries);
  EXPECT_TRUE(attendance.conflict.ok());
  EXPECT_THAT(attendance.missing, ElementsAre("a 1"));
  EXPECT_THAT(attendance.lost, IsEmpty());
}

TEST(NamesTextTest, ShortensLongLists) {
  EXPECT_EQ(NamesText({}), "");
  EXPECT_EQ(NamesText({"a"}), "a");
  EXPECT_EQ(NamesText({"a", "b"}), "a and b");
  EXPECT_EQ(NamesText({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(NamesText({"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}),
            "1, 2, 3, 4, 5, 6, 7, 8 and 2 more");
}

// Such as a member may write there that is of another build, or broken.
TEST(MeetingTest, WordsThatSayNothingAreGarbage) {
  for (const std::string word :
       {"", "failed", "failed x on y", "failed 14\n on y", "failed 0 on y"}) {
    const std::shared_ptr<Store> store = MakeMemoryStore();
    const std::string prefix = MeetingPrefix("w", "f");
    const std::vector<StoredMember> members = {MakeMember(0, "server", 0, 2, "server:2"),
                                               MakeMember(1, "server", 1, 2, "server:2")};
    ASSERT_TRUE(store->Set(WordKey(prefix), word + " ").ok());
    Meeting meeting(store, prefix, members, 0);
    const auto cards =
        meeting.Exchange(Card(), Deadline(absl::Seconds(20)), [] { return absl::OkStatus(); });
    EXPECT_TRUE(absl::IsDataLoss(cards.status())) << cards.status();
  }
}

}  // namespace
}  // namespace sluice
