// What ranks tell each other beside their transfers, without a session: alarms, questions, answers.
#include "session/peers/watch.h"

#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "transport/loopback/loopback.h"
#include "transport/passing_fabric.h"

namespace sluice {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr absl::Duration kTimeout =
    absl::Nanoseconds(800);  // silent after 100, asked again after 25

// Says what a test tells it to.
class ScriptedWitness final : public Witness {
 public:
  BucketReport Report(const BucketQuestion& question) const override {
    asked.push_back(question);
    return report;
  }
  int64_t last_run() const override { return last; }
  BucketReport report;
  int64_t last = 0;
  mutable std::vector<BucketQuestion> asked;
};

BucketId Bucket(uint64_t run, uint64_t src, uint64_t dst) {
  BucketIdFields fields;
  fields.run = run;
  fields.src = src;
  fields.dst = dst;
  return BucketId(fields);
}

const BucketQuestion kQuestion = {Bucket(3, 0, 1), 2, 0};

// Knows of ranks that have left.
class LeftFabric final : public PassingFabric {
 public:
  using PassingFabric::PassingFabric;
  bool HasLeft(int rank) const override { return left.count(rank) > 0; }
  std::set<int> left;
};

// Ranks in one thread, with a clock that a test turns.
class WatchTest : public testing::Test {
 protected:
  struct RankEnd {
    std::unique_ptr<LeftFabric> fabric;
    std::unique_ptr<Watch> watch;
    ScriptedWitness witness;
  };

  void Open(int size) {
    for (auto& fabric : MakeLoopbackFabrics(std::vector<int>(static_cast<size_t>(size), 0))) {
      RankEnd& end = ranks_.emplace_back();
      end.fabric = std::make_unique<LeftFabric>(std::move(fabric));
      end.watch = std::make_unique<Watch>(end.fabric.get(), kTimeout);
      end.watch->set_witness(&end.witness);
    }
  }

  Watch& watch(int rank) { return *ranks_[static_cast<size_t>(rank)].watch; }
  ScriptedWitness& witness(int rank) { return ranks_[static_cast<size_t>(rank)].witness; }

  absl::Status Poll(int rank) { return watch(rank).Poll(now_ns_); }
  void Ask(int rank, const BucketQuestion& question, const std::vector<int>& members) {
    watch(rank).Ask(question, members, now_ns_);
  }
  // Rank 1 answers, and rank 0 hears of it.
  void AnswerAndHear() {
    for (const int rank : {1, 0}) EXPECT_TRUE(Poll(rank).ok());
  }
  void AskAndHear(const std::vector<int>& members) {
    Ask(0, kQuestion, members);
    AnswerAndHear();
  }
  std::string Describe(int rank) { return watch(rank).Describe(now_ns_).text(); }

  std::deque<RankEnd> ranks_;  // stay where they are
  int64_t now_ns_ = 1000;
};

TEST_F(WatchTest, TheFirstAlarmReachesAllAndStays) {
  Open(4);
  watch(1).RaiseAlarm(absl::DataLossError("the first"));
  watch(1).RaiseAlarm(absl::InternalError("not told"));
  watch(2).RaiseAlarm(absl::InternalError("the second"));
  for (int rank = 0; rank < 4; ++rank) EXPECT_TRUE(Poll(rank).ok());
  EXPECT_EQ(watch(0).alarm(),
            MakeError(StatusCode::kDataLoss, RankInWords(1), " failed: the first"));
  EXPECT_EQ(watch(3).alarm().message(), watch(0).alarm().message());
  EXPECT_EQ(watch(1).alarm(),
            MakeError(StatusCode::kInternal, RankInWords(2), " failed: the second"));
  EXPECT_EQ(watch(2).alarm(),
            MakeError(StatusCode::kDataLoss, RankInWords(1), " failed: the first"));
  watch(3).RaiseAlarm(absl::AbortedError("the third"));
  EXPECT_TRUE(Poll(0).ok());
  EXPECT_EQ(watch(0).alarm(),
            MakeError(StatusCode::kDataLoss, RankInWords(1), " failed: the first"));
}

// What helps depends on whether somebody keeps silent, and is still there.
TEST_F(WatchTest, RanksThatHaveClosedTheirSessionsAreNamed) {
  Open(3);
  Ask(0, kQuestion, {1, 2});
  EXPECT_EQ(Describe(0), "rank 1 has not answered; rank 2 has not answered");
  EXPECT_THAT(watch(0).Advise(now_ns_), HasSubstr("needs the option progress_thread"));
  ranks_[0].fabric->left = {1, 2};
  EXPECT_EQ(Describe(0), "rank 1 has closed its session; rank 2 has closed its session");
  EXPECT_THAT(watch(0).Advise(now_ns_), HasSubstr("all ranks make the same calls"));
  watch(0).StopAsking();
  EXPECT_EQ(watch(0).Advise(now_ns_), "");
}

TEST_F(WatchTest, LongAlarmsAreCut) {
  Open(2);
  watch(0).RaiseAlarm(absl::InternalError(std::string(kMaxAlarmBytes + 500, 'x')));
  EXPECT_TRUE(Poll(1).ok());
  EXPECT_EQ(watch(1).alarm(), MakeError(StatusCode::kInternal, RankInWords(0),
                                        " failed: ", std::string(kMaxAlarmBytes, 'x')));
}

TEST_F(WatchTest, AnAlarmHasTheFieldsOfItsCause) {
  Open(3);
  const std::string name = "x' of rank 9, bucket 7 of epoch 5";
  watch(1).RaiseAlarm(DisagreementError(TensorInWords(name), " of ", RankInWords(2), ": ",
                                        std::string(2 * kMaxAlarmBytes, 'x')));
  EXPECT_TRUE(Poll(0).ok());
  EXPECT_EQ(FieldsOf(watch(0).alarm()),
            (ErrorFields{.ranks = {1, 2}, .tensor = name, .is_disagreement = true}));
}

TEST_F(WatchTest, ThereIsNoAlarmWithoutOne) {
  Open(1);
  EXPECT_TRUE(Poll(0).ok());
  EXPECT_TRUE(watch(0).alarm().ok());
  watch(0).RaiseAlarm(absl::InternalError("to nobody"));
  EXPECT_TRUE(Poll(0).ok());
  EXPECT_TRUE(watch(0).alarm().ok());
}

TEST_F(WatchTest, EveryMemberAnswersFromItsOwnState) {
  Open(4);
  witness(1).report.state = BucketState::kWaitsForBudget;
  witness(1).report.oldest = Bucket(2, 3, 1);
  witness(2).report.state = BucketState::kInStage;
  witness(2).report.stage = Stage::kMoving;
  witness(2).report.oldest = kQuestion.id;
  Ask(0, kQuestion, {0, 1, 2, 3});
  for (int rank : {1, 2}) {
    EXPECT_TRUE(Poll(rank).ok());
    ASSERT_EQ(witness(rank).asked.size(), 1u);
    EXPECT_EQ(witness(rank).asked[0], kQuestion);
  }
  EXPECT_TRUE(Poll(0).ok());
  EXPECT_EQ(
      Describe(0),
      "rank 1 has not admitted it: it waits for the budget; its oldest bucket is run 2 window "
      "0 round 0 phase 0, rank 3 -> 1, n 0; rank 2 has it in stage moving; rank 3 has not "
      "answered");
  EXPECT_TRUE(witness(0).asked.empty()) << "a rank does not ask itself";
}

TEST_F(WatchTest, ARankWithoutAWitnessSaysThatItIsThere) {
  Open(2);
  watch(1).set_witness(nullptr);
  AskAndHear({1});
  EXPECT_EQ(Describe(0), "rank 1 answers, but does not know of it");
}

TEST_F(WatchTest, AMemberIsAskedAgainForItsNewState) {
  Open(2);
  AskAndHear({1});
  witness(1).report.state = BucketState::kNotFed;
  now_ns_ += 24;
  Ask(0, kQuestion, {1});
  EXPECT_TRUE(Poll(1).ok());
  EXPECT_EQ(witness(1).asked.size(), 1u) << "too early";
  ++now_ns_;
  AskAndHear({1});
  EXPECT_EQ(Describe(0), "rank 1 has not come to it");
}

TEST_F(WatchTest, AMemberThatDoesNotAnswerGetsOneQuestion) {
  Open(3);
  for (int i = 0; i < 100; ++i) {
    // Another bucket now and then: still the first question alone is on its way.
    Ask(0, {Bucket(3, 0, static_cast<uint64_t>(i / 10)), 2, 0}, {1});
    now_ns_ += 50;
  }
  EXPECT_EQ(Describe(0), "rank 1 has not answered");
  EXPECT_TRUE(Poll(1).ok());
  ASSERT_EQ(witness(1).asked.size(), 1u);
  EXPECT_EQ(witness(1).asked[0].id, Bucket(3, 0, 0));
  // Its late answer is about another bucket, and lets the present question go.
  EXPECT_TRUE(Poll(0).ok());
  EXPECT_EQ(Describe(0), "rank 1 has not answered");
  Ask(0, {Bucket(3, 0, 9), 2, 0}, {1});
  AnswerAndHear();
  EXPECT_EQ(Describe(0), "rank 1 answers, but does not know of it");
}

TEST_F(WatchTest, AnAlarmFindsRoomBesideQuestionsAndAnswers) {
  Open(2);
  // Both ask, and neither polls.
  for (int i = 0; i < 20; ++i) {
    Ask(0, {Bucket(3, 0, static_cast<uint64_t>(i)), 2, 0}, {1});
    Ask(1, {Bucket(3, 1, static_cast<uint64_t>(i)), 2, 0}, {0});
    now_ns_ += 200;
  }
  EXPECT_TRUE(Poll(0).ok());  // and answers
  watch(0).RaiseAlarm(absl::InternalError("full"));
  EXPECT_TRUE(Poll(1).ok());
  EXPECT_EQ(watch(1).alarm(), MakeError(StatusCode::kInternal, RankInWords(0), " failed: full"));
}

// A rank that closes many streams while another is busy.
TEST_F(WatchTest, AlarmsThatFindNoRoomComeLater) {
  Open(3);
  constexpr int kStreams = 20;
  for (int stream = 0; stream < kStreams; ++stream) {
    watch(0).RaiseStreamAlarm(stream, absl::CancelledError("closed"));
  }
  for (const int rank : {1, 2}) {
    std::set<int> heard;
    for (int i = 0; i < kStreams; ++i) {
      EXPECT_TRUE(Poll(rank).ok());
      for (const auto& alarm : watch(rank).TakeStreamAlarms()) heard.insert(alarm.stream);
      EXPECT_TRUE(Poll(0).ok());
    }
    EXPECT_EQ(heard.size(), static_cast<size_t>(kStreams)) << "rank " << rank;
  }
}

TEST_F(WatchTest, AMemberThatFallsSilentIsNotTakenForItsLastAnswer) {
  Open(2);
  witness(1).report.state = BucketState::kNotFed;
  AskAndHear({1});
  now_ns_ += 100;
  Ask(0, kQuestion, {1});
  EXPECT_EQ(Describe(0), "rank 1 has not come to it") << "it may answer yet";
  now_ns_ += 500;
  EXPECT_EQ(Describe(0),
            "rank 1 has not answered for 500ns; before, it said that it has not come to it");
}

TEST_F(WatchTest, ASilentRankIsNamedToThoseThatWaitForItInvisibly) {
  Open(3);
  // Rank 1 waits for rank 2, which is gone; rank 0 waits for rank 1.
  const BucketId held = Bucket(3, 2, 1);
  Ask(1, {held, 2, 0}, {1, 2});
  now_ns_ += 100;
  witness(1).report.state = BucketState::kWaitsForBudget;
  witness(1).report.oldest = held;
  AskAndHear({0, 1});
  EXPECT_THAT(Describe(0),
              AllOf(HasSubstr("rank 1 has not admitted it: it waits for the budget"),
                    HasSubstr("its oldest bucket is run 3 window 0 round 0 phase 0, rank 2 -> 1"),
                    EndsWith("held up by rank 2, which does not answer")));
}

TEST_F(WatchTest, ASilentMemberOfTheSameBucketIsNamedToo) {
  Open(3);
  Ask(1, kQuestion, {0, 1, 2});
  now_ns_ += 100;
  witness(1).report.state = BucketState::kInStage;
  witness(1).report.stage = Stage::kMoving;
  witness(1).report.oldest = kQuestion.id;
  EXPECT_TRUE(Poll(0).ok());
  EXPECT_TRUE(Poll(1).ok());
  AskAndHear({1});
  EXPECT_EQ(Describe(0), "rank 1 has it in stage moving, held up by rank 2, which does not answer");
}

TEST_F(WatchTest, WordOfASilentRankTravelsAlongThoseThatWait) {
  constexpr int kSize = 6;
  Open(kSize);
  // Each rank waits for the next, and the last is gone.
  for (int round = 0; round < 2 * kSize; ++round) {
    for (int rank = 0; rank + 1 < kSize; ++rank) {
      const auto self = static_cast<uint64_t>(rank);
      Ask(rank, {Bucket(3, self, self + 1), 2, 0}, {rank, rank + 1});
    }
    for (int rank = 0; rank + 1 < kSize; ++rank) EXPECT_TRUE(Poll(rank).ok());
    now_ns_ += 100;
  }
  for (int rank = 0; rank + 2 < kSize; ++rank) {
    EXPECT_THAT(Describe(rank), EndsWith("held up by rank 5, which does not answer"));
  }
}

TEST_F(WatchTest, WordOfARankThatSpeaksAgainDiesOut) {
  Open(3);
  const auto turn = [this](bool with_last) {
    Ask(0, kQuestion, {0, 1, 2});
    Ask(1, kQuestion, {0, 1, 2});
    for (int i = 0; i < 2; ++i) {
      for (int rank = 0; rank < (with_last ? 3 : 2); ++rank) EXPECT_TRUE(Poll(rank).ok());
    }
    now_ns_ += 100;
  };
  for (int i = 0; i < 3; ++i) turn(false);
  EXPECT_THAT(Describe(0), HasSubstr("held up by rank 2"));
  for (int i = 0; i < 12; ++i) turn(true);
  EXPECT_THAT(Describe(0), Not(HasSubstr("held up")));
}

TEST_F(WatchTest, AMemberThatGetsOnIsHeardOf) {
  Open(2);
  for (const int64_t moves : {7, 7, 9, 9, 12}) {
    const bool is_more = moves > witness(1).report.moves && witness(1).report.moves > 0;
    witness(1).report.moves = moves;
    AskAndHear({1});
    EXPECT_EQ(watch(0).TakeMoves(), is_more) << moves;
    EXPECT_FALSE(watch(0).TakeMoves()) << "told once";
    now_ns_ += 100;
  }
}

// Each rank waits for the next, and the last for the first.
class WatchRingTest : public WatchTest {
 protected:
  static constexpr int kSize = 5;
  static constexpr int kOne = kSize - 2;  // of which there is word

  WatchRingTest() { Open(kSize); }

  // How often each rank has heard of it in `turns` turns, by what it takes after each.
  std::vector<int> Heard(int turns, const std::function<bool(int rank)>& take) {
    std::vector<int> heard(kSize);
    for (int turn = 0; turn < turns; ++turn) {
      for (int rank = 0; rank < kSize; ++rank) {
        const auto self = static_cast<uint64_t>(rank);
        Ask(rank, {Bucket(3, self, (self + 1) % kSize), 2, 0}, {rank, (rank + 1) % kSize});
      }
      for (int i = 0; i < 2; ++i) {
        for (int rank = 0; rank < kSize; ++rank) EXPECT_TRUE(Poll(rank).ok());
      }
      for (int rank = 0; rank < kSize; ++rank) {
        heard[static_cast<size_t>(rank)] += take(rank) ? 1 : 0;
      }
      now_ns_ += 100;
    }
    return heard;
  }
  static void ExpectAllHear(std::vector<int> heard) {
    EXPECT_EQ(heard[kOne], 0) << "it knows of its own";
    heard.erase(heard.begin() + kOne);
    EXPECT_THAT(heard, testing::Each(testing::Gt(2 * kSize)));
  }
};

TEST_F(WatchRingTest, WordOfMovesTravelsAlongThoseThatWaitAndDiesOut) {
  const auto take = [this](int rank) { return watch(rank).TakeMoves(); };
  ExpectAllHear(Heard(4 * kSize, [&](int rank) {
    if (rank == kOne) ++witness(kOne).report.moves;
    return take(rank);
  }));
  Heard(kSize, take);
  EXPECT_THAT(Heard(4 * kSize, take), testing::Each(0)) << "nobody moves, and all ask";
}

TEST_F(WatchRingTest, WordOfALateRankTravelsAlongThoseThatWaitAndDiesOut) {
  const auto take = [this](int rank) { return watch(rank).TakeLateness(now_ns_); };
  witness(kOne).report.is_late = true;
  ExpectAllHear(Heard(4 * kSize, take));
  EXPECT_THAT(Describe(0), EndsWith("; rank 3, which holds up others, is late"));
  EXPECT_THAT(Describe(kOne - 1), Not(HasSubstr("holds up others"))) << "it was asked itself";
  witness(kOne).report.is_late = false;
  Heard(kSize, take);
  EXPECT_THAT(Heard(4 * kSize, take), testing::Each(0)) << "nobody is late, and all ask";
}

TEST_F(WatchTest, AMemberThatIsLateSaysSoOnceForEachQuestion) {
  Open(2);
  for (const bool is_late : {true, true, false, true, false}) {
    witness(1).report.is_late = is_late;
    AskAndHear({1});
    EXPECT_EQ(watch(0).TakeLateness(now_ns_), is_late);
    EXPECT_FALSE(watch(0).TakeLateness(now_ns_)) << "told once";
    now_ns_ += 100;
  }
}

TEST_F(WatchTest, LatenessWithAnotherQuestionIsNoWord) {
  Open(2);
  witness(1).report.is_late = true;
  Ask(0, kQuestion, {1});
  EXPECT_TRUE(Poll(1).ok());
  watch(0).StopAsking();
  Ask(0, {Bucket(4, 0, 1), 2, 0}, {1});
  EXPECT_TRUE(Poll(0).ok());
  EXPECT_FALSE(watch(0).TakeLateness(now_ns_));
}

TEST_F(WatchTest, ASilentMemberIsNotExcusedByALateOne) {
  Open(3);
  witness(1).report.is_late = true;
  const auto turn = [this](bool with_last) {
    Ask(0, kQuestion, {1, 2});
    EXPECT_TRUE(Poll(1).ok());
    if (with_last) {
      EXPECT_TRUE(Poll(2).ok());
    }
    EXPECT_TRUE(Poll(0).ok());
    now_ns_ += 100;
    return watch(0).TakeLateness(now_ns_);
  };
  EXPECT_TRUE(turn(true));
  EXPECT_FALSE(turn(false));
  EXPECT_FALSE(turn(false));
  EXPECT_TRUE(turn(true)) << "it had only been slow";
}

TEST_F(WatchTest, DescribesSomeOfThoseThatWereAsked) {
  Open(4);
  Ask(0, kQuestion, {1, 2, 3});
  EXPECT_TRUE(Poll(2).ok());
  EXPECT_TRUE(Poll(0).ok());
  const std::vector<int> only = {0, 2, 3};
  EXPECT_EQ(watch(0).Describe(now_ns_, &only).text(),
            "rank 2 answers, but does not know of it; rank 3 has not answered");
}

TEST_F(WatchTest, DifferentTransfersOfOneRunAreAnErrorAtOnceOnBoth) {
  Open(4);
  witness(0).report.state = BucketState::kOtherTransfer;
  witness(0).report.transfer = 1;
  Ask(3, kQuestion, {0, 3});
  const absl::Status expected = DisagreementError("run 3 is transfer 1 on ", RankInWords(0),
                                                  " and transfer 2 on ", RankInWords(3),
                                                  ": all ranks must start the same "
                                                  "transfers in the same order");
  EXPECT_EQ(Poll(0), expected);
  EXPECT_EQ(Poll(3), expected);
  EXPECT_EQ(Poll(3), expected) << "and stays";
  EXPECT_EQ(Describe(3), "rank 0 has started transfer 1 as run 3");
}

TEST_F(WatchTest, ProgressForgetsTheAnswers) {
  Open(2);
  EXPECT_EQ(Describe(0), "");
  AskAndHear({1});
  watch(0).StopAsking();
  EXPECT_EQ(Describe(0), "");
  // The same bucket again is a question of its own.
  Ask(0, kQuestion, {1});
  EXPECT_EQ(Describe(0), "rank 1 has not answered");
  EXPECT_TRUE(Poll(1).ok());
  EXPECT_EQ(witness(1).asked.size(), 2u);
}

TEST_F(WatchTest, OfManyMembersOneThatIsLateIsFound) {
  constexpr int kMembers = 2 * static_cast<int>(Watch::kMaxMembersAsked) + 20;
  Open(kMembers);
  std::vector<int> members(ranks_.size());
  std::iota(members.begin(), members.end(), 0);
  witness(kMembers - 1).report.is_late = true;
  int heard = 0;
  for (int i = 0; i < 10; ++i) {
    Ask(0, kQuestion, members);
    for (int rank = 1; rank < kMembers; ++rank) EXPECT_TRUE(Poll(rank).ok());
    for (int j = 0; j < kMembers; ++j) EXPECT_TRUE(Poll(0).ok());
    heard += watch(0).TakeLateness(now_ns_) ? 1 : 0;
    now_ns_ += 100;
  }
  EXPECT_EQ(heard, 8) << "from the third time on";
}

TEST_F(WatchTest, OfManyMembersTheFirstAreAsked) {
  Open(static_cast<int>(Watch::kMaxMembersAsked) + 4);
  std::vector<int> members(ranks_.size());
  std::iota(members.begin(), members.end(), 0);
  Ask(0, kQuestion, members);
  EXPECT_TRUE(Poll(64).ok());
  EXPECT_TRUE(Poll(65).ok());
  EXPECT_EQ(witness(64).asked.size(), 1u);
  EXPECT_EQ(witness(65).asked.size(), 0u);
  EXPECT_THAT(Describe(0), EndsWith("rank 64 has not answered; 3 more members were not asked"));
}

TEST_F(WatchTest, PostsOfAnotherFormatArePassedOver) {
  Open(2);
  Fabric& fabric = *ranks_[0].fabric;
  EXPECT_TRUE(fabric.Post(1, {}).ok());
  EXPECT_TRUE(fabric.Post(1, std::vector<std::byte>(sizeof(AlarmRecord), std::byte{7})).ok());
  AlarmRecord other;
  other.header.format += 1;
  EXPECT_TRUE(fabric.Post(1, BytesOf(other)).ok());
  EXPECT_TRUE(Poll(1).ok());
  EXPECT_TRUE(watch(1).alarm().ok());
  // An answer that nobody asked for.
  EXPECT_TRUE(fabric.Post(1, BytesOf(AnswerRecord())).ok());
  EXPECT_TRUE(Poll(1).ok());
  EXPECT_EQ(Describe(1), "");
}

TEST_F(WatchTest, AQuietPollSaysNothing) {
  Open(2);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(Poll(0).ok());
  int src = -1;
  std::vector<std::byte> post;
  EXPECT_FALSE(ranks_[1].fabric->PollPost(&src, &post));
}

}  // namespace
}  // namespace sluice
