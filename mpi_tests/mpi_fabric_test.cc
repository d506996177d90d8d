// What an MPI fabric makes of its communicator: ranks, nodes, and keeping out of the user's way.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "patient_fabric.h"
#include "sluice/mpi.h"
#include "sluice/transport.h"

namespace sluice {
namespace {

using testing::Each;
using testing::ElementsAreArray;
using testing::HasSubstr;

std::vector<int> GatherInts(Fabric& fabric, int value) {
  std::vector<int> values(static_cast<size_t>(fabric.size()), -1);
  const auto record =
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&value), sizeof(value));
  EXPECT_TRUE(fabric.StartAllGather(record).ok());
  std::vector<std::byte> all;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  while (!fabric.PollAllGather(&all, nullptr).value_or(false)) {
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "the gather does not end";
      return values;
    }
    std::this_thread::yield();
  }
  EXPECT_EQ(all.size(), values.size() * sizeof(int));
  std::memcpy(values.data(), all.data(), all.size());
  return values;
}

TEST(MpiFabricTest, HasTheRanksOfItsCommunicator) {
  // Two groups, each with its ranks in reverse.
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, WorldRank() % 2, -WorldRank(), &half);
  const auto fabric = PatientMpiFabric(half);
  MPI_Comm_free(&half);  // the fabric has one of its own
  ASSERT_TRUE(fabric.ok()) << fabric.status();
  std::vector<int> expected;
  for (int rank = WorldSize() - 1; rank >= 0; --rank) {
    if (rank % 2 == WorldRank() % 2) expected.push_back(rank);
  }
  EXPECT_EQ((*fabric)->size(), static_cast<int>(expected.size()));
  EXPECT_EQ(expected[static_cast<size_t>((*fabric)->rank())], WorldRank());
  EXPECT_THAT(GatherInts(**fabric, WorldRank()), ElementsAreArray(expected));
}

TEST(MpiFabricTest, WorksOnOneRank) {
  const auto fabric = MakeMpiFabric(MPI_COMM_SELF).value();
  EXPECT_THAT(GatherInts(*fabric, WorldRank()), ElementsAreArray({WorldRank()}));
  int src = -1;
  std::vector<std::byte> record;
  EXPECT_FALSE(fabric->PollPost(&src, &record));
}

TEST(MpiFabricTest, RanksOfOneHostShareANode) {
  const auto fabric = PatientMpiFabric(MPI_COMM_WORLD).value();
  EXPECT_THAT(fabric->node_of_rank(), Each(0));
}

TEST(MpiFabricTest, SaysWhichLibraryCarriesMessages) {
  const auto fabric = MakeMpiFabric(MPI_COMM_SELF).value();
  const WireReport wire = fabric->DescribeWire(0);
  EXPECT_EQ(wire.wire, "mpi");
  EXPECT_THAT(wire.library, HasSubstr("MP"));
  EXPECT_FALSE(wire.why.empty());
}

TEST(MpiFabricTest, NodesCanBeImagined) {
  MpiFabricOptions options;
  options.ranks_per_node = 2;
  const auto fabric = MakeMpiFabric(MPI_COMM_WORLD, options).value();
  for (int rank = 0; rank < fabric->size(); ++rank) {
    EXPECT_EQ(fabric->node_of_rank()[static_cast<size_t>(rank)], rank / 2);
  }
}

TEST(MpiFabricTest, AllRanksHearOfABadOptionOnOne) {
  for (const int bad : {0, -3}) {
    MpiFabricOptions options;
    if (WorldRank() == WorldSize() - 1) options.ranks_per_node = bad;
    const auto fabric = MakeMpiFabric(MPI_COMM_WORLD, options);
    EXPECT_EQ(fabric.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(fabric.status().message()),
                HasSubstr(absl::StrCat("ranks_per_node is ", bad, " on rank ", WorldSize() - 1)));
  }
}

TEST(MpiFabricTest, RanksWithDifferentOptionsAreNamed) {
  MpiFabricOptions options;
  options.ranks_per_node = WorldRank() == WorldSize() - 1 ? 4 : 2;
  const auto fabric = MakeMpiFabric(MPI_COMM_WORLD, options);
  if (WorldSize() == 1) {
    EXPECT_TRUE(fabric.ok()) << fabric.status();
    return;
  }
  EXPECT_EQ(fabric.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(fabric.status().message()),
              HasSubstr(absl::StrCat("2 on rank 0, but 4 on rank ", WorldSize() - 1)));
}

TEST(MpiFabricTest, RefusesCommunicatorsThatAreNone) {
  EXPECT_EQ(MakeMpiFabric(MPI_COMM_NULL).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(MpiFabricTest, RefusesThreadsThatMayNotCallMpi) {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  absl::Status status;
  std::thread([&status] { status = MakeMpiFabric(MPI_COMM_SELF).status(); }).join();
  EXPECT_EQ(status.code(), level >= MPI_THREAD_SERIALIZED ? absl::StatusCode::kOk
                                                          : absl::StatusCode::kFailedPrecondition);
}

TEST(MpiFabricTest, SaysWhichLevelOtherThreadsNeed) {
  const auto fabric = PatientMpiFabric(MPI_COMM_WORLD).value();
  const absl::Status status = fabric->CheckOtherThread();
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  if (level == MPI_THREAD_MULTIPLE) {
    EXPECT_TRUE(status.ok()) << status;
    return;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("MPI_THREAD_MULTIPLE"));
  if (level == MPI_THREAD_FUNNELED) {
    EXPECT_THAT(std::string(status.message()), HasSubstr("initialized with MPI_THREAD_FUNNELED"));
  }
}

TEST(MpiFabricTest, LeavesTheUsersMessagesAlone) {
  int from_anyone = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&from_anyone, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
  {
    const auto fabric = PatientMpiFabric(MPI_COMM_WORLD);
    EXPECT_TRUE(fabric.ok()) << fabric.status();
    if (fabric.ok()) {
      EXPECT_EQ(GatherInts(**fabric, WorldRank()).size(), static_cast<size_t>(WorldSize()));
    }
  }
  int complete = 1;
  MPI_Test(&request, &complete, MPI_STATUS_IGNORE);
  EXPECT_EQ(complete, 0);
  // Nobody's message to the next rank comes before everybody has looked.
  MPI_Barrier(MPI_COMM_WORLD);
  const int own = WorldRank();
  MPI_Send(&own, 1, MPI_INT, (WorldRank() + 1) % WorldSize(), 3, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(from_anyone, (WorldRank() + WorldSize() - 1) % WorldSize());
}

TEST(MpiFabricTest, LeavesTheUsersErrorHandlerAlone) {
  ASSERT_TRUE(PatientMpiFabric(MPI_COMM_WORLD).ok());
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  EXPECT_EQ(handler, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
}

// What MPI does over TCP when a peer has just died.
int WriteToNobody() {
  std::array<int, 2> ends = {-1, -1};
  EXPECT_EQ(pipe(ends.data()), 0);
  close(ends[0]);
  const int error = write(ends[1], "x", 1) < 0 ? errno : 0;
  close(ends[1]);
  return error;
}

TEST(MpiFabricTest, WritingToADeadPeerDoesNotEndTheProcess) {
  signal(SIGPIPE, SIG_DFL);
  ASSERT_TRUE(PatientMpiFabric(MPI_COMM_WORLD).ok());
  EXPECT_EQ(WriteToNobody(), EPIPE);
}

volatile sig_atomic_t broken_pipes = 0;

TEST(MpiFabricTest, LeavesTheUsersSignalHandlerAlone) {
  broken_pipes = 0;
  signal(SIGPIPE, [](int) { broken_pipes = broken_pipes + 1; });
  ASSERT_TRUE(PatientMpiFabric(MPI_COMM_WORLD).ok());
  EXPECT_EQ(WriteToNobody(), EPIPE);
  EXPECT_EQ(broken_pipes, 1);
  signal(SIGPIPE, SIG_DFL);
}

TEST(MpiFabricTest, TwoFabricsDoNotMix) {
  const auto first = PatientMpiFabric(MPI_COMM_WORLD);
  const auto second = PatientMpiFabric(MPI_COMM_WORLD);
  ASSERT_TRUE(first.ok() && second.ok());
  const std::vector<std::byte> post = {std::byte{1}, std::byte{2}};
  for (int dst = 1; dst < WorldSize() && WorldRank() == 0; ++dst) {
    EXPECT_TRUE((*first)->Post(dst, post).ok());
  }
  int src = -1;
  std::vector<std::byte> record;
  for (int round = 0; round < 10; ++round) {
    EXPECT_THAT(GatherInts(**second, round), Each(round));
    EXPECT_THAT(GatherInts(**first, -round), Each(-round));
    EXPECT_FALSE((*second)->PollPost(&src, &record));
  }
  if (WorldRank() != 0) {
    ASSERT_TRUE((*first)->PollPost(&src, &record));  // it was sent before ten gathers
    EXPECT_EQ(src, 0);
    EXPECT_EQ(record, post);
  }
}

TEST(MpiFabricTest, TransportsCanBeOpenedManyTimes) {
  const auto fabric = PatientMpiFabric(MPI_COMM_WORLD).value();
  for (int i = 0; i < 100; ++i) {
    const auto transport = fabric->OpenTransport();
    ASSERT_TRUE(transport.ok()) << transport.status();
    EXPECT_THAT(GatherInts(*fabric, i), Each(i));
  }
}

TEST(MpiFabricTest, CanBeMadeManyTimes) {
  for (int i = 0; i < 100; ++i) {
    const auto fabric = PatientMpiFabric(MPI_COMM_WORLD).value();
    EXPECT_THAT(GatherInts(*fabric, i), Each(i));
  }
}

}  // namespace
}  // namespace sluice
