// Every shape of a move, with rounds allowed at every possible time. What happens is what the rules
// of engine/move.h say. It happens once, and in an order in which nothing is read before it is
// there.
#include "engine/move.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

std::string Words(const MoveShape& shape) {
  return absl::StrCat("adds ", shape.added, " by ", shape.per_sum, ", own ", shape.own,
                      ", children ", shape.children, shape.gives ? ", gives" : "",
                      shape.folds ? ", folds" : "", shape.own_lies ? ", own lies" : "",
                      shape.own_goes_last ? ", own goes last" : "",
                      shape.gives_sum ? ", gives sum" : "", shape.casts ? ", casts" : "",
                      shape.has_parent ? ", has parent" : "");
}

// The order in which contributions have to be added: that of their numbers. The exception is an
// owner's own contribution that lies in memory, and may go last: it changes places with the next.
std::vector<int> OrderOfAdding(const MoveShape& shape) {
  std::vector<int> order(static_cast<size_t>(shape.added));
  std::iota(order.begin(), order.end(), 0);
  const bool last = shape.own >= 0 && shape.own_goes_last && shape.own_lies && !shape.folds;
  if (last && shape.own % shape.per_sum == 0 && shape.per_sum > 1) {
    const size_t own = static_cast<size_t>(shape.own);
    std::swap(order[own], order[own + 1]);
  }
  return order;
}

// Messages of a move, however it collects its contributions.
int Messages(const MoveShape& shape) {
  return int{shape.gives} + shape.added - (shape.own >= 0 ? 1 : 0) + int{shape.gives_sum} +
         int{shape.has_parent} + (shape.children > 0 ? 1 : 0);
}

// Copies of the own contribution that cannot be spared. It has to lie as others do before a fold.
// It has to be in the slot to begin a sum. What is added has to be one stretch.
int PacksNeeded(const MoveShape& shape) {
  if (shape.own < 0) return 0;
  if (!shape.own_lies) return 1;
  const bool begins = shape.own % shape.per_sum == 0;
  const bool goes_last = shape.own_goes_last && shape.per_sum > 1;
  return !shape.folds && begins && !goes_last ? 1 : 0;
}

// A member's memory, by the numbers of the contributions that are in it.
struct Memory {
  std::vector<int> accumulator;  // in the order of adding
  int beside = -1;               // -1: nothing
  std::vector<int> summed;       // of sums that are complete, one after another
  int messages = 0;
  int packs = 0;
  std::vector<int> taken;
  bool gave = false;
  bool gave_sum = false;
  bool cast = false;
  bool received = false;
  bool forwarded = false;
};

// Does what a move says, and complains of what the rules forbid.
class Member {
 public:
  explicit Member(const MoveShape& shape) : shape_(shape) {}

  const Memory& memory() const { return m_; }
  const std::vector<std::string>& wrong() const { return wrong_; }

  void Do(const MoveAction& action) {
    switch (action.kind) {
      case MoveKind::kGive:
        Once(&m_.gave, shape_.gives);
        return Message(1);
      case MoveKind::kTake:
        Check(action.number != shape_.own, "takes its own");
        m_.taken.push_back(action.number);
        Message(1);
        return Bring(action);
      case MoveKind::kPackOwn:
        Check(action.number == shape_.own, "packs another's");
        ++m_.packs;
        return Bring(action);
      case MoveKind::kFold:
        return Fold();
      case MoveKind::kAdd:
        return Add(action);
      case MoveKind::kGiveSum:
        Once(&m_.gave_sum, shape_.gives_sum);
        CheckSum();
        return Message(1);
      case MoveKind::kCast:
        Once(&m_.cast, shape_.casts);
        CheckSum();
        return;
      case MoveKind::kReceive:
        Once(&m_.received, shape_.has_parent);
        // It may be received into the slot, where the sum was.
        Check(m_.gave == shape_.gives && m_.gave_sum == shape_.gives_sum, "gives too late");
        CheckSum();
        return Message(1);
      case MoveKind::kForward:
        Once(&m_.forwarded, shape_.children > 0);
        Check(m_.received == shape_.has_parent, "forwards what has not come");
        Check(m_.cast == shape_.casts, "forwards what is not cast");
        CheckSum();
        return Message(1);
      case MoveKind::kWait:
        return;
      case MoveKind::kOver:
        return CheckEnd();
    }
  }

  // All that it has done, but for what is wrong.
  std::string Key() const {
    return absl::StrCat(absl::StrJoin(m_.accumulator, ","), " ", m_.beside, " ",
                        absl::StrJoin(m_.summed, ","), " ", m_.messages, " ", m_.packs, " ",
                        absl::StrJoin(m_.taken, ","), " ", m_.gave, m_.gave_sum, m_.cast,
                        m_.received, m_.forwarded);
  }

  // Rounds of the message that comes next: of a fold, all its receives.
  int NextRounds() const {
    const bool folds_next = shape_.folds && m_.summed.empty() && m_.gave == shape_.gives;
    return folds_next ? shape_.added - (shape_.own >= 0 ? 1 : 0) : 1;
  }

 private:
  void Check(bool right, const char* what) {
    if (!right) wrong_.emplace_back(what);
  }
  void Once(bool* done, bool wanted) {
    Check(wanted, "a step that it has not");
    Check(!*done, "twice");
    *done = true;
  }
  void Message(int rounds) { m_.messages += rounds; }

  void Bring(const MoveAction& action) {
    Check(!shape_.folds || (action.number == shape_.own && !action.first), "brings what it folds");
    if (action.first) {
      Check(m_.accumulator.empty(), "over a sum");
      m_.accumulator = {action.number};
      CompleteSum();
    } else {
      Check(m_.beside < 0, "over what is not added");
      m_.beside = action.number;
    }
  }

  void Add(const MoveAction& action) {
    Check(!m_.accumulator.empty(), "adds to nothing");
    Check(!action.own || shape_.own_lies, "adds its own from where it does not lie");
    const int number = action.own ? shape_.own : m_.beside;
    Check(number >= 0, "adds nothing");
    if (!action.own) m_.beside = -1;
    m_.accumulator.push_back(number);
    // By the number, whoever adds knows whether the sum is complete.
    Check(static_cast<size_t>(action.number % shape_.per_sum) + 1 == m_.accumulator.size() &&
              static_cast<size_t>(action.number) + 1 == m_.summed.size() + m_.accumulator.size(),
          "a number that is not the place");
    CompleteSum();
  }

  void CompleteSum() {
    if (m_.accumulator.size() < static_cast<size_t>(shape_.per_sum)) return;
    m_.summed.insert(m_.summed.end(), m_.accumulator.begin(), m_.accumulator.end());
    m_.accumulator.clear();
  }

  void Fold() {
    Check(shape_.folds && m_.summed.empty() && m_.taken.empty(), "folds");
    Check(shape_.own < 0 || shape_.own_lies || m_.beside == shape_.own, "folds what does not lie");
    m_.beside = -1;
    m_.summed.resize(static_cast<size_t>(shape_.added));
    std::iota(m_.summed.begin(), m_.summed.end(), 0);
    Message(shape_.added - (shape_.own >= 0 ? 1 : 0));
  }

  void CheckSum() {
    Check(m_.summed == OrderOfAdding(shape_), "a sum that is not complete, or in another order");
    Check(m_.accumulator.empty() && m_.beside < 0, "leaves something out");
  }

  void CheckEnd() {
    CheckSum();
    Check(m_.gave == shape_.gives && m_.gave_sum == shape_.gives_sum, "gives nothing");
    Check(m_.cast == shape_.casts && m_.received == shape_.has_parent, "has no result");
    Check(m_.forwarded == (shape_.children > 0), "does not forward");
    Check(m_.messages == Messages(shape_), "other messages than its shape has");
    Check(m_.packs == PacksNeeded(shape_), "packs more or less than it has to");
    // Of each sender of a link the next message is that of the next number.
    Check(std::is_sorted(m_.taken.begin(), m_.taken.end()), "takes out of order");
  }

  const MoveShape shape_;
  Memory m_;
  std::vector<std::string> wrong_;
};

// Goes through all ways to the end: before each call any number of further rounds may be allowed.
class Search {
 public:
  explicit Search(const MoveShape& shape) : shape_(shape), rounds_(Messages(shape)) {}

  void Go() { From(Member(shape_), MoveState(), 0, 0); }
  int64_t calls() const { return calls_; }
  int64_t ends() const { return ends_; }

 private:
  // More calls than any move takes.
  static constexpr int kCallsMax = 40;

  void From(const Member& member, const MoveState& state, int limit, int calls) {
    const std::string key = absl::StrCat(member.Key(), " ", state.step, " ", state.beside, " ",
                                         state.number, " ", state.rounds, " ", limit);
    if (testing::Test::HasFailure() || !seen_.insert(key).second) return;
    ASSERT_LT(calls, kCallsMax) << "does not end: " << Words(shape_);
    for (int next = limit; next <= rounds_; ++next) Call(member, state, next, calls);
  }

  void Call(Member member, MoveState state, int limit, int calls) {
    ++calls_;
    const int needed = member.memory().messages + member.NextRounds();
    const MoveAction action = NextAction(shape_, limit, &state);
    member.Do(action);
    const std::string where = absl::StrCat(Words(shape_), "; allowed ", limit);
    ASSERT_EQ(absl::StrJoin(member.wrong(), ", "), "") << where;
    ASSERT_LE(state.rounds, limit) << where;
    ASSERT_EQ(state.rounds, member.memory().messages) << where;
    if (action.kind == MoveKind::kOver || action.kind == MoveKind::kWait) {
      EXPECT_EQ(NextAction(shape_, limit, &state), action) << where;
    }
    if (action.kind == MoveKind::kOver) {
      ++ends_;
    } else if (action.kind == MoveKind::kWait) {
      ASSERT_GT(needed, limit) << "waits for nothing: " << where;
      ASSERT_LT(limit, rounds_) << where;
      From(member, state, limit + 1, calls + 1);
    } else {
      From(member, state, limit, calls + 1);
    }
  }

  const MoveShape shape_;
  const int rounds_;
  int64_t calls_ = 0;
  int64_t ends_ = 0;
  absl::flat_hash_set<std::string> seen_;
};

// All ways of giving and adding, with up to three contributions, and with four by two and two.
std::vector<MoveShape> Collections() {
  std::vector<MoveShape> made(1);
  made.push_back({.gives = true});
  for (const int added : {1, 2, 3, 4}) {
    for (int own = -1; own < added; ++own) {
      for (int bits = 0; bits < 16; ++bits) {
        MoveShape shape = {.added = added, .own = own, .per_sum = added};
        shape.folds = (bits & 1) != 0;
        shape.own_lies = (bits & 2) != 0;
        shape.own_goes_last = (bits & 4) != 0;
        shape.gives_sum = (bits & 8) != 0;
        if (own < 0 && shape.own_lies) continue;
        if (own == 0 && added == 1 && shape.folds) continue;  // nobody to receive from
        made.push_back(shape);
        shape.per_sum = 2;
        if (added == 4 && !shape.folds) made.push_back(shape);
      }
    }
  }
  return made;
}

TEST(MoveTest, EveryShapeDoesWhatTheRulesSayWhateverItWaitsFor) {
  int64_t shapes = 0;
  int64_t calls = 0;
  for (MoveShape shape : Collections()) {
    for (shape.children = 0; shape.children <= 3; ++shape.children) {
      for (int bits = 0; bits < 4; ++bits) {
        shape.has_parent = (bits & 1) != 0;
        shape.casts = (bits & 2) != 0;
        Search search(shape);
        search.Go();
        ASSERT_FALSE(HasFailure());
        ++shapes;
        EXPECT_GT(search.ends(), 0) << Words(shape);
        calls += search.calls();
      }
    }
  }
  RecordProperty("shapes", static_cast<int>(shapes));
  RecordProperty("calls", static_cast<int>(calls));
}

// How an owner's own contribution is spared a copy, told step by step.
TEST(MoveTest, AnOwnFirstContributionIsAddedAfterTheNextFromWhereItLies) {
  const MoveShape shape = {
      .added = 3, .own = 0, .per_sum = 3, .own_lies = true, .own_goes_last = true};
  MoveState state;
  const MoveAction expected[] = {
      {.kind = MoveKind::kTake, .number = 1, .first = true},
      {.kind = MoveKind::kAdd, .number = 1, .own = true},
      {.kind = MoveKind::kTake, .number = 2},
      {.kind = MoveKind::kAdd, .number = 2},
      {.kind = MoveKind::kOver},
  };
  for (const MoveAction& action : expected) EXPECT_EQ(NextAction(shape, 2, &state), action);
}

// Of equal zeros max and min keep the first, so the one whose turn it is has to come first.
TEST(MoveTest, MaximaAndMinimaAreTakenInOrder) {
  Channel channel;
  channel.step_count = 1;
  channel.added_count = 3;
  channel.own_contribution = 0;
  Bucket bucket;
  bucket.role = Role::kOwner | Role::kContributor;
  for (const ReduceOp op :
       {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kProduct, ReduceOp::kMax, ReduceOp::kMin}) {
    Plan plan;
    plan.channels = {channel};
    plan.levels = {{3, op}};
    const bool commutes = op != ReduceOp::kMax && op != ReduceOp::kMin;
    EXPECT_EQ(ShapeOf(plan, bucket).own_goes_last, commutes);
  }
}

TEST(MoveTest, AFoldWaitsUntilAllOfItsRoundsAreAllowed) {
  const MoveShape shape = {.added = 3, .own = 1, .per_sum = 3, .folds = true};
  MoveState state;
  EXPECT_EQ(NextAction(shape, 1, &state), (MoveAction{.kind = MoveKind::kPackOwn, .number = 1}));
  EXPECT_EQ(NextAction(shape, 1, &state).kind, MoveKind::kWait);
  EXPECT_EQ(NextAction(shape, 2, &state).kind, MoveKind::kFold);
  EXPECT_EQ(state.rounds, 2);
}

}  // namespace
}  // namespace sluice
