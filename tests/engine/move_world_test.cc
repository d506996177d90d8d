// Moves of several members at once, in every order of events. Two buckets of one channel, whose
// messages meet by their order on each link, each come to their end with their own bytes.
#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/move.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

constexpr int kBuckets = 2;

// A member of the channel; the others by their numbers.
struct Neighbours {
  std::vector<int> adds;  // where its contributions come from; itself among them, perhaps
  int owner = -1;         // to whom it gives its contribution, or its sum
  int parent = -1;
  std::vector<int> children;
};
using Members = std::vector<Neighbours>;

MoveShape ShapeOf(const Members& members, int self) {
  const Neighbours& role = members[static_cast<size_t>(self)];
  MoveShape shape;
  shape.added = static_cast<int32_t>(role.adds.size());
  shape.per_sum = std::max(1, shape.added);
  const auto own = std::find(role.adds.begin(), role.adds.end(), self);
  if (own != role.adds.end()) shape.own = static_cast<int32_t>(own - role.adds.begin());
  shape.children = static_cast<int32_t>(role.children.size());
  shape.gives = role.owner >= 0 && role.adds.empty();
  shape.gives_sum = role.owner >= 0 && !role.adds.empty();
  shape.own_goes_last = true;
  shape.has_parent = role.parent >= 0;
  return shape;
}

// What crosses from one member to another on its way up, to who adds, or down, to children.
struct Link {
  bool up;
  int from;
  int to;

  friend auto operator<=>(const Link&, const Link&) = default;
};

// The messages of a link at both ends: whose bucket's they are, and how many have ended. The n-th
// one of one end meets the n-th of the other.
struct Ends {
  std::array<std::vector<int>, 2> begun;  // sent, and asked for
  std::array<size_t, 2> ended{};

  size_t met() const { return std::min(begun[0].size(), begun[1].size()); }
};

// The moves of all members, copied for each order of events.
class World {
 public:
  World(const Members& members, const std::vector<std::array<MoveShape, kBuckets>>& shapes)
      : members_(&members), shapes_(&shapes), moves_(members.size()) {}

  // A bucket comes to its move at a member, or its copy there ends; or a message does at one end.
  struct Event {
    int member = 0;
    int bucket = 0;
    std::optional<Link> link;
    size_t end = 0;
  };
  std::vector<Event> Events() const {
    std::vector<Event> events;
    for (size_t m = 0; m < moves_.size(); ++m) {
      for (size_t b = 0; b < kBuckets; ++b) {
        const Move& move = moves_[m][b];
        const bool may_come = !move.here && (b == 0 || moves_[m][b - 1].here);
        if (may_come || move.copies > 0) {
          events.push_back({static_cast<int>(m), static_cast<int>(b), {}, 0});
        }
      }
    }
    for (const auto& [link, ends] : links_) {
      for (const size_t end : {0, 1}) {
        const size_t number = ends.ended[end];
        if (number == ends.met()) continue;
        events.push_back({end == 0 ? link.from : link.to, ends.begun[end][number], link, end});
      }
    }
    return events;
  }
  void Happen(const Event& event) {
    Move& move = At(event.member, event.bucket);
    if (event.link) {
      Ends& ends = links_[*event.link];
      const size_t number = ends.ended[event.end]++;
      if (ends.begun[0][number] != ends.begun[1][number]) mixed_ = true;
      if (--move.messages > 0) return;
    } else if (move.here) {
      move.copies = 0;
    }
    move.here = true;
    Continue(event.member, event.bucket);
  }

  bool over() const {
    return std::all_of(moves_.begin(), moves_.end(), [](const auto& buckets) {
      return std::all_of(buckets.begin(), buckets.end(),
                         [](const Move& move) { return move.over; });
    });
  }
  // Both ends of each link have come to as many messages.
  bool even() const {
    return std::all_of(links_.begin(), links_.end(), [](const auto& link) {
      return link.second.ended[0] == kBuckets && link.second.ended[1] == kBuckets;
    });
  }
  bool mixed() const { return mixed_; }

  std::string Key() const {
    std::string key;
    for (const auto& buckets : moves_) {
      for (const Move& move : buckets) {
        absl::StrAppend(&key, move.state.step, ",", move.state.beside, ",", move.state.number, ",",
                        move.state.rounds, ",", move.copies, ",", move.messages, ",", move.here,
                        move.over, move.waits, ";");
      }
    }
    for (const auto& [link, ends] : links_) {
      absl::StrAppend(&key, link.up, link.from, link.to, " ", ends.begun[0].size(), " ",
                      ends.begun[1].size(), " ", ends.ended[0], " ", ends.ended[1], ";");
    }
    return key;
  }

 private:
  struct Move {
    MoveState state;
    int copies = 0;    // under way
    int messages = 0;  // likewise
    bool here = false;
    bool over = false;
    bool waits = false;
  };

  Move& At(int member, int bucket) {
    return moves_[static_cast<size_t>(member)][static_cast<size_t>(bucket)];
  }

  // As a session does: a move, then the later one that waited for it.
  void Continue(int member, int bucket) {
    Move& move = At(member, bucket);
    const int limit = bucket == 0 || At(member, bucket - 1).over
                          ? std::numeric_limits<int>::max()
                          : At(member, bucket - 1).state.rounds;
    while (move.copies == 0 && move.messages == 0 && !move.over) {
      const MoveShape& shape = (*shapes_)[static_cast<size_t>(member)][static_cast<size_t>(bucket)];
      const MoveAction action = NextAction(shape, limit, &move.state);
      move.waits = action.kind == MoveKind::kWait;
      if (move.waits) break;
      Do(member, bucket, action);
    }
    if (bucket + 1 < kBuckets && !move.waits && At(member, bucket + 1).waits) {
      Continue(member, bucket + 1);
    }
  }

  void Do(int member, int bucket, const MoveAction& action) {
    const Neighbours& role = (*members_)[static_cast<size_t>(member)];
    switch (action.kind) {
      case MoveKind::kGive:
      case MoveKind::kGiveSum:
        return Post({true, member, role.owner}, 0, bucket);
      case MoveKind::kTake:
        return Post({true, role.adds[static_cast<size_t>(action.number)], member}, 1, bucket);
      case MoveKind::kFold:
        for (const int from : role.adds) {
          if (from != member) Post({true, from, member}, 1, bucket);
        }
        return;
      case MoveKind::kReceive:
        return Post({false, role.parent, member}, 1, bucket);
      case MoveKind::kForward:
        for (const int to : role.children) Post({false, member, to}, 0, bucket);
        return;
      case MoveKind::kPackOwn:
      case MoveKind::kAdd:
      case MoveKind::kCast:
        At(member, bucket).copies = 1;
        return;
      case MoveKind::kWait:
        return;
      case MoveKind::kOver:
        At(member, bucket).over = true;
        return;
    }
  }

  // Begins a message at one end.
  void Post(const Link& link, size_t end, int bucket) {
    ++At(end == 0 ? link.from : link.to, bucket).messages;
    links_[link].begun[end].push_back(bucket);
  }

  const Members* members_;
  const std::vector<std::array<MoveShape, kBuckets>>* shapes_;
  std::vector<std::array<Move, kBuckets>> moves_;
  std::map<Link, Ends> links_;
  bool mixed_ = false;
};

// Goes through all orders of events from a world; each state once.
class Search {
 public:
  void From(const World& world) {
    if (testing::Test::HasFailure() || !seen_.insert(world.Key()).second) return;
    ASSERT_FALSE(world.mixed()) << "a message met another bucket's";
    const std::vector<World::Event> events = world.Events();
    if (events.empty()) {
      EXPECT_TRUE(world.over()) << "stuck: " << world.Key();
      EXPECT_TRUE(world.even()) << "ends of a link differ: " << world.Key();
      ++ends_;
    }
    for (const World::Event& event : events) {
      World next = world;
      next.Happen(event);
      From(next);
    }
  }
  int64_t states() const { return static_cast<int64_t>(seen_.size()); }
  int64_t ends() const { return ends_; }

 private:
  absl::flat_hash_set<std::string> seen_;
  int64_t ends_ = 0;
};

// Each bucket of an adder folds or not, and has its own contribution in memory or not.
void GoThrough(const Members& members) {
  std::vector<size_t> adders;
  for (size_t m = 0; m < members.size(); ++m) {
    if (!members[m].adds.empty()) adders.push_back(m);
  }
  const size_t bits = adders.size() * kBuckets * 2;
  int64_t states = 0;
  for (size_t choice = 0; choice < size_t{1} << bits; ++choice) {
    std::vector<std::array<MoveShape, kBuckets>> shapes(members.size());
    for (size_t m = 0; m < members.size(); ++m) {
      shapes[m].fill(ShapeOf(members, static_cast<int>(m)));
    }
    size_t bit = 0;
    for (const size_t adder : adders) {
      for (MoveShape& shape : shapes[adder]) {
        shape.folds = (choice >> bit++ & 1) != 0;
        shape.own_lies = (choice >> bit++ & 1) != 0;
        shape.casts = !shape.gives_sum && !shape.folds;
      }
    }
    Search search;
    search.From(World(members, shapes));
    ASSERT_FALSE(testing::Test::HasFailure()) << "choice " << choice;
    EXPECT_GT(search.ends(), 0);
    states += search.states();
  }
  testing::Test::RecordProperty("states", static_cast<int>(states));
}

// Who gives to `owner`, and gets the result.
Neighbours Giver(int owner, int parent, std::vector<int> children = {}) {
  Neighbours made;
  made.owner = owner;
  made.parent = parent;
  made.children = std::move(children);
  return made;
}

// Who adds; -1: nobody.
Neighbours Adder(std::vector<int> adds, int owner, int parent, std::vector<int> children) {
  Neighbours made = Giver(owner, parent, std::move(children));
  made.adds = std::move(adds);
  return made;
}

TEST(MoveWorldTest, AnOwnerWithTwoContributorsThatGetTheResult) {
  GoThrough({Adder({1, 0, 2}, -1, -1, {1, 2}), Giver(0, 0), Giver(0, 0)});
}

TEST(MoveWorldTest, AnOwnerWhoseOwnContributionIsFirst) {
  GoThrough({Adder({0, 1, 2}, -1, -1, {1}), Giver(0, 0, {2}), Giver(0, 1)});
}

TEST(MoveWorldTest, SumsThatPassFromAdderToAdder) {
  GoThrough({Adder({1, 0}, -1, -1, {1}), Adder({1, 2}, 0, 0, {2}), Giver(1, 1)});
}

}  // namespace
}  // namespace sluice
