// What the doctor says of ranks that meet without MPI.
#include <string>

#include "doctor/facts.h"
#include "doctor/findings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/job_facts.h"

namespace sluice::bench {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

JobFacts WorldJob(int ranks, int per_node, const std::string& messages) {
  JobFacts job = GoodJob(ranks, per_node);
  job.mpi = "no MPI";
  job.uses_mpi = false;
  job.fabric = "world at tcp://node0:29600";
  job.started_by = "torchrun";
  job.messages = messages;
  for (RankFacts& facts : job.ranks) facts.mpi = {};
  return job;
}

TEST(WorldTest, TheFabricIsNamedAndMpiIsNotMissed) {
  for (const char* messages : {"tcp", "ucx"}) {
    const JobFacts job = WorldJob(4, 2, messages);
    EXPECT_EQ(Problems(Examine(job)), 0) << messages;
    EXPECT_EQ(Only(job, "fabric").value, "world at tcp://node0:29600, started by torchrun");
    EXPECT_EQ(Only(job, "mpi").value, "not in use");
    EXPECT_EQ(Only(job, "mpi_threads").value, "not in use");
    EXPECT_THAT(Only(job, "wire_network").value, StartsWith(messages));
    EXPECT_THAT(Only(job, "wire_messages").value, HasSubstr(messages));
    for (const Finding& finding : Examine(job)) {
      EXPECT_THAT(finding.value, Not(HasSubstr("MPI"))) << finding.check;
    }
  }
  EXPECT_EQ(Only(GoodJob(2, 2), "fabric").value, "mpi");
}

TEST(WorldTest, PortsAreShownWithThoseWhoMayConnect) {
  JobFacts job = WorldJob(2, 2, "ucx");
  EXPECT_EQ(Only(job, "ports").value, "none is open");
  job.ranks[0].ports.loopback = {29600};
  for (RankFacts& facts : job.ranks) facts.ports.others = {"[::]:4711"};
  EXPECT_EQ(Only(job, "ports").value,
            "open to other hosts: rank 0: [::]:4711; rank 1: [::]:4711; open to this host alone: "
            "rank 0: 29600; there is no token: the store takes its own user and root, and ranks "
            "those that know the store's key");
  for (RankFacts& facts : job.ranks) facts.ports.has_token = true;
  EXPECT_THAT(Only(job, "ports").value, HasSubstr("prove that it knows the token"));
  EXPECT_EQ(Problems(Examine(job)), 0);
  job.ranks[1].ports.asks_ucx_tcp = true;
  EXPECT_EQ(Only(job, "ports").state, State::kMissing);
  EXPECT_THAT(Only(job, "ports").value, HasSubstr("UCX's TCP asks for no proof"));
}

TEST(WorldTest, MessagesStandInForDirectCopiesByTheirOwnName) {
  JobFacts job = WorldJob(2, 2, "tcp");
  for (RankFacts& facts : job.ranks) facts.wires.direct_error = "cannot be mapped";
  EXPECT_THAT(Only(job, "wire_node").value, StartsWith("tcp: messages, as direct"));
  EXPECT_EQ(Problems(Examine(job)), 1);
}

TEST(WorldTest, RdmaThatTcpLeavesAloneIsNamed) {
  JobFacts job = WorldJob(2, 1, "tcp");
  for (RankFacts& facts : job.ranks) {
    facts.wires.rdma_devices = 2;
    facts.limits.memlock_bytes = -1;
  }
  EXPECT_EQ(Only(job, "wire_network").state, State::kSlow);
  EXPECT_THAT(Only(job, "wire_network").todo, HasSubstr("UCX"));
  job.messages = "ucx";
  EXPECT_EQ(Problems(Examine(job)), 0);
}

TEST(WorldTest, WaitsLeaveCpusToOthers) {
  JobFacts job = WorldJob(3, 3, "tcp");
  for (RankFacts& facts : job.ranks) {
    facts.cpu.online = 2;
    facts.cpu.cpus = {0, 1};
  }
  EXPECT_EQ(Only(job, "yielding").state, State::kOk);
  EXPECT_EQ(Problems(Examine(job)), 1);  // the cores
}

}  // namespace
}  // namespace sluice::bench
