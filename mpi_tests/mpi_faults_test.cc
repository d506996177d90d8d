// Errors of MPI come back as Status with their operation and ranks, and nothing hangs or leaks into
// other operations. When nothing fails, there is no allocation per operation.
#include "mpi_faults.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "patient_fabric.h"
#include "session/heap_bytes.h"
#include "sluice/mpi.h"
#include "sluice/transport.h"
#include "transport/mpi/mpi_retired.h"

namespace sluice {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kBytes = 64;

// Calls `done` until it says so. False, and a failure, if that takes too long.
template <typename Done>
bool Await(const char* what, const Done& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << what;
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

class MpiFaultsTest : public testing::Test {
 protected:
  void SetUp() override {
    // What the test before has left is not counted.
    while (PollRetiredMpiCommunicators() > never_freed_) std::this_thread::yield();
    MPI_Barrier(MPI_COMM_WORLD);
    Faults() = {};
  }
  void TearDown() override { Faults() = {}; }

  void Open() {
    fabric_ = PatientMpiFabric(MPI_COMM_WORLD).value();
    transport_ = fabric_->OpenTransport().value();
    ASSERT_TRUE(transport_->Reserve(16).ok());
    Faults() = {};
  }

  // Three messages from rank 0 to rank 1, on tags 0, 1 and 2.
  std::vector<TransportOp> Three() {
    std::vector<TransportOp> ops;
    for (int i = 0; i < 3 && rank_ < 2; ++i) {
      const auto kind = rank_ == 0 ? TransportOp::Kind::kSend : TransportOp::Kind::kReceive;
      const size_t offset = static_cast<size_t>(i) * kBytes;
      ops.push_back({kind, 1 - rank_, i, &memory_[offset], kBytes, static_cast<uint64_t>(i)});
    }
    return ops;
  }
  void StartThree() { ASSERT_TRUE(transport_->Start(Three()).ok()); }

  // Polls until nothing is outstanding; the outcomes of cookies 0, 1, 2.
  std::vector<absl::Status> Finish() {
    std::vector<absl::Status> outcomes(3);
    TransportEvent events[4];
    Await("operations do not end", [&] {
      if (transport_->outstanding() == 0) return true;
      const absl::StatusOr<int> count = transport_->Poll(absl::MakeSpan(events));
      EXPECT_TRUE(count.ok()) << count.status();
      for (int i = 0; i < count.value_or(0); ++i) outcomes[events[i].cookie] = events[i].status;
      return !count.ok();
    });
    return outcomes;
  }

  void Close() {
    transport_.reset();
    fabric_.reset();
  }

  // So many communicators are freed, once all ranks use them no more.
  static void ExpectFreed(int communicators) {
    Await("communicators are not freed", [communicators] {
      PollRetiredMpiCommunicators();
      return Faults().comm_free.calls >= communicators;
    });
    EXPECT_EQ(Faults().comm_free.calls, communicators);
  }
  static void ExpectNotFreed() {
    for (int i = 0; i < 200; ++i) PollRetiredMpiCommunicators();
    EXPECT_EQ(Faults().comm_free.calls, 0) << "freed while it may be in use";
  }

  static inline int never_freed_ = 0;  // by this rank: others failed to retire them
  const int rank_ = WorldRank();
  const int size_ = WorldSize();
  std::vector<std::byte> memory_ = std::vector<std::byte>(3 * kBytes);
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Transport> transport_;
};

TEST_F(MpiFaultsTest, SendThatFailsEndsWithAnError) {
  Open();
  if (rank_ == 0) Faults().issend = {2, MPI_ERR_OTHER};
  if (rank_ == 1) {
    // The second message never comes.
    Faults().irecv = {2, MPI_ERR_OTHER};
  }
  StartThree();
  const std::vector<absl::Status> outcomes = Finish();
  EXPECT_TRUE(outcomes[0].ok()) << outcomes[0];
  EXPECT_TRUE(outcomes[2].ok()) << outcomes[2];
  if (rank_ > 1) return;
  EXPECT_EQ(outcomes[1].code(), absl::StatusCode::kInternal) << outcomes[1];
  EXPECT_THAT(std::string(outcomes[1].message()),
              AllOf(HasSubstr(rank_ == 0 ? "MPI_Issend failed: MPI_ERR_OTHER"
                                         : "MPI_Irecv failed: MPI_ERR_OTHER"),
                    HasSubstr(rank_ == 0 ? "send of 64 bytes from rank 0 to rank 1, tag 1"
                                         : "receive of 64 bytes from rank 0 to rank 1, tag 1")));
}

TEST_F(MpiFaultsTest, OperationThatFailsUnderWayLeavesTheOthersAlone) {
  Open();
  if (rank_ == 1) Faults().fail_completion = 2;
  StartThree();
  int failed = 0;
  for (const absl::Status& outcome : Finish()) {
    if (outcome.ok()) continue;
    ++failed;
    EXPECT_THAT(std::string(outcome.message()),
                AllOf(HasSubstr("MPI_Irecv failed: MPI_ERR_OTHER"), HasSubstr("from rank 0")));
  }
  EXPECT_EQ(failed, rank_ == 1 ? 1 : 0);
}

TEST_F(MpiFaultsTest, PollThatFailsSaysForWhat) {
  Open();
  if (rank_ == 1) {
    // Never met by a send, so that something is outstanding to the end.
    const TransportOp op = {TransportOp::Kind::kReceive, 0, 7, memory_.data(), kBytes, 0};
    ASSERT_TRUE(transport_->Start({op}).ok());
    Faults().testsome = {1, MPI_ERR_INTERN};
    TransportEvent event;
    const absl::Status status = transport_->Poll(absl::MakeSpan(&event, 1)).status();
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("MPI_Testsome failed"), HasSubstr("1 operations of rank 1"),
                      HasSubstr("from rank 0 to rank 1, tag 7")));
  }
  Close();
  ExpectFreed(1);
}

// Three receives of one channel, and a message that comes when one of them has been taken back.
class MpiWithdrawTest : public MpiFaultsTest {
 protected:
  void StartAll(Transport& transport) {
    ASSERT_TRUE(transport.Reserve(3).ok());
    if (rank_ == 0) {
      std::fill_n(memory_.begin(), kBytes, std::byte{9});
      Word(1, false);
      ASSERT_TRUE(
          transport.Start({{TransportOp::Kind::kSend, 1, 7, memory_.data(), kBytes, 0}}).ok());
      Word(1, true);  // comes after the message
    } else if (rank_ == 1) {
      for (uint64_t i = 0; i < 3; ++i) {
        std::byte* const data = &memory_[static_cast<size_t>(i) * kBytes];
        ASSERT_TRUE(transport.Start({{TransportOp::Kind::kReceive, 0, 7, data, kBytes, i}}).ok());
      }
      Faults().after_cancel = [] {
        Word(0, true);
        Word(0, false);
      };
    }
  }

  // The message has met the first receive; the others' memory is as it was.
  void ExpectFirstWritten() const {
    for (size_t i = 0; i < memory_.size(); ++i) {
      ASSERT_EQ(memory_[i], i < kBytes ? std::byte{9} : std::byte{0}) << "byte " << i;
    }
  }

  static void Word(int peer, bool send) {
    if (send) {
      MPI_Send(nullptr, 0, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
    } else {
      MPI_Recv(nullptr, 0, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
};

TEST_F(MpiWithdrawTest, AMessageThatComesMeanwhileMeetsTheFirstReceive) {
  Open();
  StartAll(*transport_);
  if (rank_ == 1) transport_->Withdraw();
  const std::vector<absl::Status> outcomes = Finish();
  EXPECT_TRUE(outcomes[0].ok()) << outcomes[0];
  if (rank_ == 1) {
    ExpectFirstWritten();
    EXPECT_EQ(outcomes[1].code(), absl::StatusCode::kCancelled) << outcomes[1];
    EXPECT_EQ(outcomes[2].code(), absl::StatusCode::kCancelled) << outcomes[2];
  }
  Close();
  ExpectFreed(1);
}

TEST_F(MpiWithdrawTest, AMessageThatComesWhileItsTransportEndsMeetsTheFirstReceive) {
  Open();
  StartAll(*transport_);
  Close();
  ExpectFreed(1);
  if (rank_ == 1) ExpectFirstWritten();
}

TEST_F(MpiFaultsTest, CommunicatorIsFreedOnceByTheLast) {
  Open();
  transport_.reset();
  ExpectNotFreed();
  fabric_.reset();
  ExpectFreed(1);
  Open();
  fabric_.reset();
  ExpectNotFreed();
  transport_.reset();
  ExpectFreed(1);
}

TEST_F(MpiFaultsTest, ACommunicatorThatOneRankUsesIsFreedByNone) {
  Open();
  auto second = fabric_->OpenTransport().value();
  if (rank_ != 0) second.reset();
  ExpectNotFreed();
  MPI_Barrier(MPI_COMM_WORLD);
  second.reset();
  ExpectFreed(1);
  Close();
  ExpectFreed(2);
}

// Its messages are thrown away by a rank that has not asked for them, so that they end and their
// memory is free; and nobody frees the communicator before.
TEST_F(MpiFaultsTest, SendsThatNobodyAsksForEndWhenTheirTransportsHaveEnded) {
  Open();
  for (const size_t bytes : {size_t{8}, size_t{5000}, size_t{100'000}, size_t{3} << 20}) {
    auto second = fabric_->OpenTransport().value();
    ASSERT_TRUE(second->Reserve(4).ok());
    auto memory = std::make_shared<std::vector<std::byte>>(bytes);
    const std::weak_ptr<const void> kept = memory;
    if (rank_ == 0) {
      for (uint64_t i = 0; i < 4; ++i) {
        ASSERT_TRUE(
            second->Start({{TransportOp::Kind::kSend, 1, 3, memory->data(), bytes, i}}).ok());
      }
      second->KeepUntilOver(std::move(memory));
    }
    memory.reset();
    if (rank_ == 1) {
      ExpectNotFreed();
      MPI_Barrier(MPI_COMM_WORLD);
      second.reset();
    } else {
      second.reset();
      ExpectNotFreed();
      EXPECT_EQ(kept.expired(), rank_ != 0);
      MPI_Barrier(MPI_COMM_WORLD);
    }
    ExpectFreed(1);
    EXPECT_TRUE(kept.expired());
    Faults() = {};
  }
  Close();
  ExpectFreed(1);
}

TEST_F(MpiFaultsTest, EachFurtherTransportHasACommunicatorThatIsFreedOnce) {
  Open();
  std::vector<std::unique_ptr<Transport>> others;
  others.reserve(3);
  for (int i = 0; i < 3; ++i) {
    others.push_back(fabric_->OpenTransport().value());
  }
  EXPECT_EQ(Faults().comm_idup.calls, 3);
  others.erase(others.begin() + 1);
  ExpectFreed(1);
  Close();
  ExpectFreed(2);
  others.clear();
  ExpectFreed(4);
}

TEST_F(MpiFaultsTest, ATransportWithReceivesThatNothingMeetsTakesThemBack) {
  Open();
  auto second = fabric_->OpenTransport();
  auto third = fabric_->OpenTransport();
  ASSERT_TRUE(second.ok() && third.ok());
  ASSERT_TRUE((*second)->Reserve(1).ok());
  // Never met by a send.
  const TransportOp op = {
      TransportOp::Kind::kReceive, (rank_ + 1) % size_, 7, memory_.data(), kBytes, 0};
  ASSERT_TRUE((*second)->Start({op}).ok());
  second->reset();
  ExpectFreed(1);
  third->reset();
  ExpectFreed(2);
  Close();
  ExpectFreed(3);
}

TEST_F(MpiFaultsTest, FurtherDuplicationThatFailsLeavesTheFirstTransportAlone) {
  Open();
  Faults().comm_idup = {1, MPI_ERR_NO_MEM};
  const absl::Status status = fabric_->OpenTransport().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("MPI_Comm_idup failed: MPI_ERR_NO_MEM"));
  StartThree();
  for (const absl::Status& outcome : Finish()) EXPECT_TRUE(outcome.ok()) << outcome;
  Close();
  ExpectNotFreed();
}

TEST_F(MpiFaultsTest, FurtherDuplicationHasADeadline) {
  MPI_Barrier(MPI_COMM_WORLD);  // all are there, so nobody is late to the first call
  MpiFabricOptions options;
  options.timeout = absl::Seconds(3);
  auto fabric = MakeMpiFabric(MPI_COMM_WORLD, options).value();
  ASSERT_TRUE(fabric->OpenTransport().ok());
  Faults() = {};
  if (rank_ == 0) {
    ++never_freed_;
    return fabric.reset();
  }
  const absl::Status status = fabric->OpenTransport().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("not all of its ranks have called"));
  fabric.reset();
  ExpectNotFreed();  // while it is being duplicated
}

TEST_F(MpiFaultsTest, DuplicationThatFailsIsAnError) {
  Faults().comm_idup = {1, MPI_ERR_NO_MEM};
  const absl::Status status = MakeMpiFabric(MPI_COMM_WORLD).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("MPI_Comm_idup failed: MPI_ERR_NO_MEM"));
}

TEST_F(MpiFaultsTest, DuplicationHasADeadline) {
  // A communicator of its own, as its last collective call stays unmatched.
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (rank_ == 0) return;
  MpiFabricOptions options;
  options.timeout = absl::Milliseconds(50);
  const absl::Status status = MakeMpiFabric(comm, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), HasSubstr("not all of its ranks have called"));
}

TEST_F(MpiFaultsTest, RanksThatSayNothingAreNamed) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank_ == 0) Faults().issend = {1, MPI_ERR_OTHER};
  MpiFabricOptions options;
  options.timeout = absl::Seconds(3);
  const absl::Status status = MakeMpiFabric(MPI_COMM_WORLD, options).status();
  if (rank_ == 0) {
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("MPI_Issend failed"), HasSubstr("record from rank 0 to rank 1")));
  } else {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(status.message()), HasSubstr("nothing has come from rank 0"));
  }
}

// What the gather that is under way comes to.
absl::StatusOr<bool> PollGather(Fabric& fabric) {
  std::vector<std::byte> all;
  absl::StatusOr<bool> complete = false;
  Await("the gather does not end", [&] {
    complete = fabric.PollAllGather(&all, nullptr);
    return !complete.ok() || *complete;
  });
  return complete;
}

TEST_F(MpiFaultsTest, GatherThatFailsStaysFailed) {
  struct Case {
    MpiFault MpiFaults::*fault;
    const char* what;
  };
  for (const auto& [fault, call] : {Case{&MpiFaults::irecv, "MPI_Irecv failed"},
                                    Case{&MpiFaults::testsome, "MPI_Testsome failed"},
                                    Case{&MpiFaults::iprobe, "MPI_Iprobe failed"}}) {
    Open();
    MPI_Barrier(MPI_COMM_WORLD);  // nobody has begun a gather that another one hears of already
    const std::vector<std::byte> record(8);
    ASSERT_TRUE(fabric_->StartAllGather(record).ok());
    Faults().*fault = {1, MPI_ERR_OTHER};
    const absl::Status status = PollGather(*fabric_).status();
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(call), HasSubstr("all-gather"), HasSubstr("rank")));
    std::vector<std::byte> all;
    EXPECT_EQ(fabric_->PollAllGather(&all, nullptr).status(), status);
    EXPECT_EQ(fabric_->StartAllGather(record), status);
    Close();
    ExpectFreed(1);
  }
}

TEST_F(MpiFaultsTest, GatherSaysWhichSendFailed) {
  absl::Status status;
  // Beside a build, hints of the gather in Open may be under way, for which records wait: again.
  for (int all_failed = 0; all_failed == 0;) {
    Open();
    Faults().issend = {1, MPI_ERR_OTHER};
    status = fabric_->StartAllGather(std::vector<std::byte>(8));
    const int failed = status.ok() ? 0 : 1;
    MPI_Allreduce(&failed, &all_failed, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    Close();
    ExpectFreed(1);
  }
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("MPI_Issend failed"),
                    HasSubstr(absl::StrCat("all-gather record from rank ", rank_, " to rank ",
                                           (rank_ + 1) % size_))));
}

TEST_F(MpiFaultsTest, GatherSaysWhichMessageFailed) {
  Open();
  MPI_Barrier(MPI_COMM_WORLD);
  ASSERT_TRUE(fabric_->StartAllGather(std::vector<std::byte>(8)).ok());
  Faults().fail_completion = 1;
  EXPECT_THAT(std::string(PollGather(*fabric_).status().message()),
              AllOf(HasSubstr("failed"), HasSubstr("all-gather record from rank ")));
  Close();
  ExpectFreed(1);
}

TEST_F(MpiFaultsTest, GatherThatNeverEndsDoesNotKeepTheFabric) {
  Open();
  if (rank_ == 0) {
    ASSERT_TRUE(fabric_->StartAllGather(std::vector<std::byte>(8)).ok());
  }
  Close();
  ExpectFreed(1);
}

TEST_F(MpiFaultsTest, PostThatFailsSaysForWhomAndLeavesTheOthersAlone) {
  Open();
  const std::vector<std::byte> post(40, std::byte{3});
  int src = -1;
  std::vector<std::byte> record;
  if (rank_ == 0) {
    Faults().issend = {1, MPI_ERR_OTHER};  // to rank 1
    const absl::Status status = fabric_->Post(1, post);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr("MPI_Issend failed"), HasSubstr("post of 40 bytes from rank 0 to rank 1")));
    for (int dst = 2; dst < size_; ++dst) EXPECT_TRUE(fabric_->Post(dst, post).ok());
  } else if (rank_ == 1) {
    EXPECT_FALSE(fabric_->PollPost(&src, &record));
  } else {
    ASSERT_TRUE(Await("the post has not come", [&] { return fabric_->PollPost(&src, &record); }));
    EXPECT_EQ(src, 0);
    EXPECT_EQ(record, post);
  }
  Close();
}

TEST_F(MpiFaultsTest, OperationsDoNotAllocate) {
  Open();
  int64_t allocations = 0;
  int src = -1;
  std::vector<std::byte> record;
  for (int round = 0; round < 100; ++round) {
    const std::vector<TransportOp> ops = Three();
    const int64_t allocations_before = session_test::AllocationCount();
    if (rank_ < 2) {
      ASSERT_TRUE(transport_->Start(ops).ok());
    }
    TransportEvent events[4];
    while (transport_->outstanding() > 0) {
      const absl::StatusOr<int> count = transport_->Poll(absl::MakeSpan(events));
      ASSERT_TRUE(count.ok()) << count.status();
      ASSERT_FALSE(fabric_->PollPost(&src, &record));
    }
    allocations += session_test::AllocationCount() - allocations_before;
  }
  EXPECT_EQ(allocations, 0);
}

}  // namespace
}  // namespace sluice
