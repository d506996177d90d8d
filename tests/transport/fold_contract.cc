// The contract of receives that fold several sends, for transports that take them.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "device/reduction.h"
#include "main/fails.h"
#include "transport/contract_content.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

constexpr int kTag = 5;
// What each rank folds of what it and the others of its node contribute.
struct Case {
  std::vector<int> offsets;  // each source: by how many ranks of the node it is after the owner
  size_t elements = 1000;
  ReduceOp op = ReduceOp::kSum;
  DType dtype = DType::kF32;
  int64_t divisor = 1;
  std::vector<RowLay> lays = {{}};  // of the sources, in turn
  RowLay to = {};
  WriteHint stores = WriteHint::kPlain;

  size_t bytes() const { return elements * static_cast<size_t>(DTypeBytes(dtype)); }
  const RowLay& LayOf(size_t source) const { return lays[source % lays.size()]; }
};

// A fold with what it points to: to be kept until it has ended.
struct Folding {
  Fold fold;
  std::vector<FoldSource> sources;
  std::byte* to = nullptr;
  TransportOp op;
};

std::vector<int> NodeOf(const ContractRank& r) {
  const auto nodes = const_cast<ContractRank&>(r).fabric().node_of_rank();
  std::vector<int> members;
  for (int rank = 0; rank < r.size(); ++rank) {
    if (nodes[static_cast<size_t>(rank)] == nodes[static_cast<size_t>(r.rank())]) {
      members.push_back(rank);
    }
  }
  return members;
}

size_t PlaceOf(const std::vector<int>& members, int rank) {
  size_t place = 0;
  while (members[place] != rank) ++place;
  return place;
}

std::vector<std::byte> Contribution(const Case& test, int owner, size_t source) {
  return ElementContent(test.elements, static_cast<size_t>(DTypeBytes(test.dtype)),
                        static_cast<uint64_t>(owner) * 100 + source);
}

// One contribution added to what is there after the other.
std::vector<std::byte> Expected(const Case& test, int owner) {
  std::vector<std::byte> sum = Contribution(test, owner, 0);
  for (size_t source = 1; source < test.offsets.size(); ++source) {
    const std::vector<std::byte> next = Contribution(test, owner, source);
    Reduce({test.op, test.dtype, next.data(), sum.data(), static_cast<int64_t>(test.elements),
            source + 1 == test.offsets.size() ? test.divisor : 1});
  }
  return sum;
}

std::byte* Spread(ContractRank& r, const RowLay& lay, const std::vector<std::byte>& content) {
  const std::vector<std::byte> spread = SpreadContent(lay, content);
  std::byte* const data = r.Buffer(spread.size());
  r.Write(data, spread);
  return data;
}

int RankAt(const Case& test, const std::vector<int>& members, int owner, size_t source) {
  const size_t place = PlaceOf(members, owner) + static_cast<size_t>(test.offsets[source]);
  return members[place % members.size()];
}

// The fold that this rank owns; its sends have the tags `tag`, `tag` + 1, and so on.
std::shared_ptr<Folding> MakeFold(ContractRank& r, const Case& test, int tag) {
  const std::vector<int> members = NodeOf(r);
  auto folding = std::make_shared<Folding>();
  const FoldSource* first = nullptr;
  for (size_t i = 0; i < test.offsets.size(); ++i) {
    const int rank = RankAt(test, members, r.rank(), i);
    const RowLay& lay = test.LayOf(i);
    FoldSource source;
    if (rank != r.rank()) {
      source.peer = rank;
      source.tag = tag + static_cast<int>(i);
    } else {
      source.data = Spread(r, lay, Contribution(test, r.rank(), i));
      source.row_bytes = lay.row_bytes;
      source.stride_bytes = lay.stride_bytes;
    }
    folding->sources.push_back(source);
  }
  for (const FoldSource& source : folding->sources) {
    if (source.peer >= 0 && first == nullptr) first = &source;
  }
  folding->fold = {test.op, test.dtype, test.divisor, folding->sources};
  folding->to = Spread(r, test.to, std::vector<std::byte>(test.bytes(), kContractGap));
  TransportOp& op = folding->op;
  op = r.Receive(first->peer, first->tag, folding->to, test.bytes());
  op.row_bytes = test.to.row_bytes;
  op.stride_bytes = test.to.stride_bytes;
  op.stores = test.stores;
  op.fold = &folding->fold;
  return folding;
}

TransportOp MakeSend(ContractRank& r, const Case& test, int owner, size_t source, int tag) {
  const RowLay& lay = test.LayOf(source);
  TransportOp send = r.Send(owner, tag + static_cast<int>(source),
                            Spread(r, lay, Contribution(test, owner, source)), test.bytes());
  send.row_bytes = lay.row_bytes;
  send.stride_bytes = lay.stride_bytes;
  return send;
}

void CheckFold(const ContractRank& r, const Case& test, const Folding& folding) {
  ASSERT_TRUE(r.Ended(folding.op.cookie));
  EXPECT_TRUE(r.Outcome(folding.op.cookie).ok()) << r.Outcome(folding.op.cookie);
  const std::vector<std::byte> expected = SpreadContent(test.to, Expected(test, r.rank()));
  EXPECT_TRUE(AreSame(r.Read(folding.to, expected.size()), expected))
      << test.offsets.size() << " sources of " << test.elements << " elements";
}

void ExpectUntouched(const ContractRank& r, const Case& test, const Folding& folding) {
  const std::vector<std::byte> expected(test.to.Extent(test.bytes()), kContractGap);
  EXPECT_TRUE(AreSame(r.Read(folding.to, expected.size()), expected)) << "written too early";
}

// All ranks of a node fold what the others send them, several times over, all at once.
void FoldEverywhere(ContractRank& r, const Case& test, int times = 1) {
  const std::vector<int> members = NodeOf(r);
  if (members.size() < 2) return;
  const int sources = static_cast<int>(test.offsets.size());
  r.Reserve(times * (2 * sources + 1));
  std::vector<std::shared_ptr<Folding>> foldings;
  std::vector<TransportOp> ops;
  for (int n = 0; n < times; ++n) {
    const int tag = kTag + n * sources;
    foldings.push_back(MakeFold(r, test, tag));
    ops.push_back(foldings.back()->op);
    for (const int owner : members) {
      for (size_t i = 0; i < test.offsets.size() && owner != r.rank(); ++i) {
        if (RankAt(test, members, owner, i) != r.rank()) continue;
        ops.push_back(MakeSend(r, test, owner, i, tag));
      }
    }
  }
  r.Start(ops);
  r.UntilAllEnded();
  EXPECT_EQ(r.transport().outstanding(), 0);
  for (const auto& folding : foldings) CheckFold(r, test, *folding);
}

// The roles in tests where one rank owns a fold of what two others send: false for all other ranks,
// and where there are not three on a node.
struct Roles {
  int owner = -1;
  int first = -1;
  int second = -1;

  bool Find(const ContractRank& r) {
    const std::vector<int> members = NodeOf(r);
    if (members.size() < 3) return false;
    owner = members[0];
    first = members[1];
    second = members[2];
    return r.rank() == owner || r.rank() == first || r.rank() == second;
  }
};
const std::vector<int> kBoth = {1, 2};

TEST_P(FoldContract, FoldsAnyNumberOfAnySize) {
  const std::vector<std::vector<int>> sources = {{1, 0},    {0, 1},    {1, 2},         {1, 0, 2},
                                                 {0, 1, 2}, {1, 2, 0}, {1, 1, 0, 2, 2}};
  for (const auto& offsets : sources) {
    for (const size_t elements : {0, 1, 1000, 50001}) {
      Run([&](ContractRank& r) { FoldEverywhere(r, {offsets, elements}); });
    }
  }
}

TEST_P(FoldContract, FoldsSeveralMessagesOfOnePeer) {
  Run([](ContractRank& r) { FoldEverywhere(r, {{1, 1, 1}, 20000}); });
}

TEST_P(FoldContract, GivesTheBitsOfReductions) {
  const std::vector<Case> cases = {{{1, 0, 2}, 20001, ReduceOp::kSum, DType::kBF16},
                                   {{2, 1}, 20001, ReduceOp::kMax, DType::kF32},
                                   {{0, 1, 2}, 20001, ReduceOp::kMin, DType::kF16},
                                   {{1, 2, 0}, 20001, ReduceOp::kAvg, DType::kI32, 3},
                                   {{1, 2}, 20001, ReduceOp::kAvg, DType::kBF16, 2},
                                   {{1, 1, 2, 2}, 20001, ReduceOp::kProduct, DType::kU8},
                                   {{1, 0}, 20001, ReduceOp::kSum, DType::kI64},
                                   {{1, 2, 1, 2, 1}, 20001, ReduceOp::kAvg, DType::kF64, 5}};
  for (Case test : cases) {
    for (const WriteHint stores : {WriteHint::kPlain, WriteHint::kStreaming}) {
      test.stores = stores;
      Run([&](ContractRank& r) { FoldEverywhere(r, test); });
    }
  }
}

TEST_P(FoldContract, FoldsRowsAsTheyLie) {
  constexpr size_t kRow = 768;
  constexpr size_t kElements = 128 * kRow / 4;  // long enough for several pieces
  // 512 bytes meet rows of 768 only after 1536.
  const std::vector<RowLay> lays = {{}, {kRow, 1000}, {512, 520}, {kRow * 4, kRow * 4}, {4, 6}};
  for (size_t i = 0; i < lays.size(); ++i) {
    Case test = {{1, 0, 2}, kElements};
    test.lays = {lays[i], lays[(i + 1) % lays.size()], lays[(i + 3) % lays.size()]};
    for (const RowLay& to : {RowLay{}, lays[1], lays[2]}) {
      test.to = to;
      test.stores = i % 2 == 0 ? WriteHint::kStreaming : WriteHint::kPlain;
      Run([&](ContractRank& r) { FoldEverywhere(r, test); });
    }
  }
}

TEST_P(FoldContract, HoldsManyAtOnce) {
  Run([](ContractRank& r) { FoldEverywhere(r, {{1, 0, 2}, 1200}, 200); });
}

TEST_P(FoldContract, CountsItsSends) {
  Run([](ContractRank& r) {
    if (NodeOf(r).size() < 2) return;
    const Case three = {{1, 0, 1, 1}, 10};
    const Case four = {{1, 1, 1, 1}, 10};
    r.Reserve(4);
    const auto refused = MakeFold(r, four, kTag);
    EXPECT_THAT(r.transport().Start({&refused->op, 1}),
                Fails(absl::StatusCode::kResourceExhausted, "5 more"));
    EXPECT_EQ(r.transport().outstanding(), 0);
    r.Forget(refused->op);
    const auto folding = MakeFold(r, three, kTag);
    r.Start({folding->op});
    EXPECT_EQ(r.transport().outstanding(), 4);
    r.transport().Withdraw();
    r.UntilAllEnded();
    EXPECT_EQ(r.transport().outstanding(), 0);
    EXPECT_THAT(r.Outcome(folding->op.cookie),
                Fails(absl::StatusCode::kCancelled, "in a fold of 4"));
  });
}

void ExpectOutcome(const ContractRank& r, const TransportOp& op, absl::StatusCode code) {
  EXPECT_EQ(r.Outcome(op.cookie).code(), code) << r.Outcome(op.cookie);
}

// Between two plain receives of one peer and tag, of which the later does not wait for the fold's
// other message; and nothing is written before that has come.
TEST_P(FoldContract, MeetsItsSendsInOrder) {
  Run([](ContractRank& r) {
    Roles roles;
    if (!roles.Find(r)) return;
    const Case test = {kBoth, 50000};
    r.Reserve(8);
    if (r.rank() == roles.second) {
      UntilTold(r, roles.owner);
      r.Start({MakeSend(r, test, roles.owner, 1, kTag)});
      return r.UntilAllEnded();
    }
    if (r.rank() == roles.first) {
      r.Start({r.Send(roles.owner, kTag, r.FilledBuffer(40000, 1), 40000),
               MakeSend(r, test, roles.owner, 0, kTag),
               r.Send(roles.owner, kTag, r.FilledBuffer(90000, 2), 90000)});
      return r.UntilAllEnded();
    }
    const TransportOp before = r.Receive(roles.first, kTag, r.Buffer(40000), 40000);
    const auto folding = MakeFold(r, test, kTag);
    const TransportOp after = r.Receive(roles.first, kTag, r.Buffer(90000), 90000);
    r.Start({before, folding->op, after});
    r.UntilEnded(before.cookie);
    r.UntilEnded(after.cookie);
    r.ExpectSilence(100);
    ExpectUntouched(r, test, *folding);
    EXPECT_TRUE(r.Matches(before.data, 40000, 1));
    EXPECT_TRUE(r.Matches(after.data, 90000, 2));
    Tell(r, roles.second);
    r.UntilAllEnded();
    CheckFold(r, test, *folding);
  });
}

// The message at fault comes first, and the other one later, or the other way round.
void MeetABadMessage(ContractRank& r, bool bad_is_last, bool bad_rows) {
  Roles roles;
  if (!roles.Find(r)) return;
  const Case test = {kBoth, 30000};
  r.Reserve(12);
  if (r.rank() == roles.first) {  // at fault
    if (bad_is_last) UntilTold(r, roles.owner);
    TransportOp send = MakeSend(r, test, roles.owner, 0, kTag);
    if (bad_rows) send.row_bytes = send.stride_bytes = 6;
    if (!bad_rows) send.bytes -= 4;
    r.Start({send, r.Send(roles.owner, kTag, r.FilledBuffer(3000, 3), 3000)});
    r.UntilAllEnded();
    return ExpectOutcome(r, send,
                         bad_rows ? absl::StatusCode::kUnavailable : absl::StatusCode::kDataLoss);
  }
  if (r.rank() == roles.second) {
    if (!bad_is_last) UntilTold(r, roles.owner);
    const TransportOp send = MakeSend(r, test, roles.owner, 1, kTag);
    r.Start({send, r.Send(roles.owner, kTag + 1, r.FilledBuffer(3000, 4), 3000)});
    r.UntilAllEnded();
    return ExpectOutcome(r, send, absl::StatusCode::kUnavailable);
  }
  const auto folding = MakeFold(r, test, kTag);
  const TransportOp plain[] = {r.Receive(roles.first, kTag, r.Buffer(3000), 3000),
                               r.Receive(roles.second, kTag + 1, r.Buffer(3000), 3000)};
  r.Start({folding->op, plain[0], plain[1]});
  if (bad_is_last) {
    r.UntilEnded(plain[1].cookie);  // which follows the good message
    EXPECT_FALSE(r.Ended(folding->op.cookie));
    Tell(r, roles.first);
  } else {
    // It does not wait for the message that is still to come.
    r.UntilEnded(folding->op.cookie);
    Tell(r, roles.second);
  }
  r.UntilAllEnded();
  EXPECT_EQ(r.transport().outstanding(), 0);
  EXPECT_THAT(r.Outcome(folding->op.cookie),
              Fails(bad_rows ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kDataLoss,
                    absl::StrCat("from rank ", roles.first)));
  ExpectUntouched(r, test, *folding);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(r.Matches(plain[i].data, 3000, 3 + i));
}

TEST_P(FoldContract, RefusesAMessageOfAnotherLength) {
  Run([](ContractRank& r) { MeetABadMessage(r, false, false); });
  Run([](ContractRank& r) { MeetABadMessage(r, true, false); });
}

TEST_P(FoldContract, RefusesRowsThatEndInsideAnElement) {
  Run([](ContractRank& r) { MeetABadMessage(r, false, true); });
}

TEST_P(FoldContract, WithdrawEndsWhatHasNotMetAll) {
  Run([](ContractRank& r) {
    Roles roles;
    if (!roles.Find(r)) return;
    const Case test = {kBoth, 30000};
    r.Reserve(8);
    if (r.rank() == roles.first) {
      const TransportOp send = MakeSend(r, test, roles.owner, 0, kTag);
      r.Start({send});
      Tell(r, roles.owner);
      r.UntilAllEnded();
      return ExpectOutcome(r, send, absl::StatusCode::kUnavailable);
    }
    if (r.rank() == roles.second) {
      UntilTold(r, roles.owner);
      const TransportOp late = MakeSend(r, test, roles.owner, 1, kTag);
      r.MayNeverEnd(late.cookie);
      r.Start({late});
      return r.ExpectSilence(100);
    }
    const auto folding = MakeFold(r, test, kTag);
    r.Start({folding->op});
    UntilTold(r, roles.first);
    r.transport().Withdraw();
    r.UntilAllEnded();
    Tell(r, roles.second);
    r.UntilAllEnded();
    r.ExpectSilence(100);
    ExpectOutcome(r, folding->op, absl::StatusCode::kCancelled);
    ExpectUntouched(r, test, *folding);
  });
}

// What a failed fold has not met yet can be taken back like a receive.
TEST_P(FoldContract, WithdrawEndsWhatAFailedFoldStillAwaits) {
  Run([](ContractRank& r) {
    Roles roles;
    if (!roles.Find(r) || r.rank() == roles.second) return;
    const Case test = {kBoth, 30000};
    r.Reserve(8);
    if (r.rank() == roles.first) {
      r.Start({r.Send(roles.owner, kTag, r.FilledBuffer(8, 1), 8)});
      return r.UntilAllEnded();
    }
    const auto folding = MakeFold(r, test, kTag);
    r.Start({folding->op});
    r.UntilAllEnded();
    ExpectOutcome(r, folding->op, absl::StatusCode::kDataLoss);
    EXPECT_EQ(r.transport().outstanding(), 1);
    r.transport().Withdraw();
    EXPECT_EQ(r.transport().outstanding(), 0);
  });
}

TEST_P(FoldContract, WithdrawLeavesWhatHasMetAllAlone) {
  Run([](ContractRank& r) {
    Roles roles;
    if (!roles.Find(r)) return;
    const Case test = {kBoth, size_t{3} << 20};  // several polls
    r.Reserve(8);
    if (r.rank() != roles.owner) {
      const size_t source = r.rank() == roles.first ? 0 : 1;
      r.Start({MakeSend(r, test, roles.owner, source, kTag)});
      Tell(r, roles.owner);
      return r.UntilAllEnded();
    }
    UntilTold(r, roles.first);
    UntilTold(r, roles.second);
    const auto folding = MakeFold(r, test, kTag);
    r.Start({folding->op});  // meets what is there
    r.Poll(1);
    EXPECT_FALSE(r.Ended(folding->op.cookie));
    r.transport().Withdraw();
    r.UntilAllEnded();
    CheckFold(r, test, *folding);
  });
}

}  // namespace
}  // namespace sluice
