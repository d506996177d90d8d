// How many messages ranks send each other to agree: counted in MPI's own calls, over whole
// sessions.
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "session/job.h"
#include "session/specs.h"
#include "session_mpi_rank.h"
#include "transport/mpi/mpi_communicator.h"
#include "transport/passing_fabric.h"
#include "transport/tree_gather.h"

namespace sluice::session_test {
namespace {

// Messages of gathers that this rank has sent. Hints are apart: how many there are depends on how
// long ranks wait.
std::atomic<int> records = 0;
std::atomic<int> hints = 0;

void Count(const void* data, int bytes, int tag) {
  uint32_t words[2] = {};
  if (tag != kMpiGatherTag || bytes < static_cast<int>(sizeof(words))) return;
  std::memcpy(words, data, sizeof(words));
  ++(words[1] == 1 ? records : hints);
}

int MostMessages(int size) {
  int messages = 0;
  for (int64_t unit = 1; unit < size; unit *= TreeGather::kRadix) {
    messages += TreeGather::kRadix - 1;
  }
  return std::min(messages, size - 1);
}

// A fabric that counts its gathers, and hands on everything else.
class CountingFabric final : public PassingFabric {
 public:
  CountingFabric(std::unique_ptr<Fabric> fabric, int* gathers)
      : PassingFabric(std::move(fabric)), gathers_(gathers) {}

  absl::Status StartAllGather(absl::Span<const std::byte> record) override {
    ++*gathers_;
    return PassingFabric::StartAllGather(record);
  }

 private:
  int* const gathers_;
};

TEST(ControlMessagesMpiTest, AWholeSessionSendsFewMessagesToAgree) {
  records = 0;
  int gathers = 1;  // in which the fabric is made
  Rank self = MpiRank(MPI_COMM_WORLD);
  EXPECT_LE(records, MostMessages(self.size));
  self.fabric = std::make_unique<CountingFabric>(std::move(self.fabric), &gathers);
  {
    const auto session = OpenSession(self, SessionOptions());
    Bound bound = CompileBound(session.get(), Ring(self.size, 4096));
    RecordProperty("gathers_create_compile", gathers);
    RecordProperty("messages_create_compile", records);
    RunOnce(session.get(), &bound, 1);
    RunOnce(session.get(), &bound, 2);
    EXPECT_TRUE(session->Close().ok());
  }
  EXPECT_GE(gathers, 4);
  EXPECT_LE(records, gathers * MostMessages(self.size));
  if (self.rank == 0) {
    std::printf("%d ranks: %d gathers, %d messages of records, %d hints\n", self.size, gathers,
                records.load(), hints.load());
  }
  self.meet();
}

}  // namespace
}  // namespace sluice::session_test

int MPI_Issend(const void* data, int count, MPI_Datatype type, int dst, int tag, MPI_Comm comm,
               MPI_Request* request) {
  sluice::session_test::Count(data, count, tag);
  return PMPI_Issend(data, count, type, dst, tag, comm, request);
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int dst, int tag, MPI_Comm comm,
              MPI_Request* request) {
  sluice::session_test::Count(data, count, tag);
  return PMPI_Isend(data, count, type, dst, tag, comm, request);
}
