// What carries bytes between whom, and the reason where nothing better does.
#include <cerrno>
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

TEST(WiresTest, DirectCopiesServeANode) {
  const Finding wire = Only(GoodJob(4, 2), "wire_node");
  EXPECT_THAT(wire.value, StartsWith("direct: one copy"));
  EXPECT_EQ(wire.state, State::kOk);
  EXPECT_THAT(Only(GoodJob(4, 2), "wire_network").value, StartsWith("mpi: messages"));
  EXPECT_THAT(Only(GoodJob(2, 2), "wire_network").value, StartsWith("none"));
}

JobFacts RefusedJob(int yama_scope) {
  JobFacts job = GoodJob(4, 4);
  job.limit = {
      .rank = 0, .pid = 70, .peer = 2, .peer_pid = 72, .error = EPERM, .yama_scope = yama_scope};
  for (RankFacts& facts : job.ranks) facts.mpi.single_copy = "none";
  job.ranks[0].wires.refused = {2, 3};
  job.ranks[1].wires.refused = {2, 3};
  job.ranks[3].wires.refused = {0, 1};
  return job;
}

TEST(WiresTest, ARefusalNamesRanksAndWhatTheKernelSaid) {
  const Finding wire = Only(RefusedJob(-1), "wire_node");
  EXPECT_EQ(wire.state, State::kSlow);
  EXPECT_THAT(wire.value, StartsWith("direct for memory of AllocateShared, and mpi"));
  EXPECT_THAT(wire.value, HasSubstr("rank 0 copy to and from memory of rank 2: "));
  EXPECT_THAT(wire.value, HasSubstr("Operation not permitted"));
  EXPECT_THAT(wire.value, HasSubstr("So it is with ranks 0-1,3"));
  EXPECT_THAT(wire.todo, HasSubstr("--cap-add=SYS_PTRACE"));
  EXPECT_THAT(wire.todo, HasSubstr("AllocateShared"));
}

TEST(WiresTest, YamaIsNamedWhereItRefuses) {
  JobFacts job = RefusedJob(2);
  for (RankFacts& facts : job.ranks) facts.limits.yama_scope = 2;
  EXPECT_THAT(Only(job, "wire_node").todo, HasSubstr("sysctl kernel.yama.ptrace_scope=1"));
  // One cause, one thing to do.
  EXPECT_EQ(Only(job, "ptrace").state, State::kOk);
  EXPECT_EQ(Problems(Examine(job)), 1);
}

TEST(WiresTest, ARankAloneIsToldOfWhatWouldRefuse) {
  JobFacts job = GoodJob(1, 1);
  job.ranks[0].limits.yama_scope = 2;
  EXPECT_EQ(Only(job, "ptrace").state, State::kSlow);
  job.ranks[0].limits.may_trace = true;
  EXPECT_EQ(Only(job, "ptrace").state, State::kOk);
  job.ranks[0].limits.yama_scope = 3;
  EXPECT_EQ(Only(job, "ptrace").state, State::kSlow);
  job = GoodJob(1, 1);
  job.ranks[0].wires.own_copy_error = EPERM;
  EXPECT_EQ(Only(job, "wire_node").state, State::kSlow);
  EXPECT_THAT(Only(job, "wire_node").value, HasSubstr("Operation not permitted"));
  EXPECT_EQ(Problems(Examine(job)), 1);
}

TEST(WiresTest, MemoryThatCannotBeMappedMeansMessages) {
  JobFacts job = GoodJob(2, 2);
  for (RankFacts& facts : job.ranks) {
    facts.wires.direct_error = "memory shared by process 7 cannot be mapped: it is gone";
  }
  const Finding wire = Only(job, "wire_node");
  EXPECT_EQ(wire.state, State::kSlow);
  EXPECT_THAT(wire.value, HasSubstr("process 7 cannot be mapped"));
}

TEST(WiresTest, MessagesOfANodeTakeTwoCopiesWhereOneIsRefusedOrSwitchedOff) {
  JobFacts job = GoodJob(2, 2);
  for (RankFacts& facts : job.ranks) facts.wires.own_copy_error = EPERM;
  EXPECT_THAT(Only(job, "wire_messages").value, HasSubstr("two copies"));
  EXPECT_EQ(Only(job, "wire_messages").state, State::kSlow);
  for (RankFacts& facts : job.ranks) facts.mpi.single_copy = "none";
  EXPECT_EQ(Only(job, "wire_messages").state, State::kOk);
  EXPECT_THAT(Only(job, "wire_messages").value, HasSubstr("two copies"));
  for (RankFacts& facts : job.ranks) facts.wires.own_copy_error = 0;
  EXPECT_EQ(Only(job, "wire_messages").state, State::kSlow);
  // With user namespaces apart Open MPI does not even try.
  for (RankFacts& facts : job.ranks) {
    facts.mpi.single_copy = "";
    facts.wires.direct_error = "cannot be mapped";
  }
  EXPECT_EQ(Only(job, "wire_messages").state, State::kOk);
}

TEST(WiresTest, RdmaThatMpiLeavesAloneIsNamed) {
  JobFacts job = GoodJob(2, 1);
  for (RankFacts& facts : job.ranks) {
    facts.wires.rdma_devices = 2;
    facts.limits.memlock_bytes = -1;
    facts.mpi.components = "btl self tcp vader, pml ob1";
  }
  EXPECT_EQ(Only(job, "wire_network").state, State::kSlow);
  for (RankFacts& facts : job.ranks) facts.mpi.components = "btl self, pml ucx";
  EXPECT_EQ(Only(job, "wire_network").state, State::kOk);
}

JobFacts GpuJob(int ranks, int per_node) {
  JobFacts job = GoodJob(ranks, per_node);
  for (RankFacts& facts : job.ranks) {
    facts.gpu = {.built_in = "CUDA 13.0, NCCL 2.28.9",
                 .has_cuda = true,
                 .has_nccl = true,
                 .visible = 1,
                 .nvidia_devices = 1,
                 .device = "cuda:0",
                 .error = ""};
  }
  job.cuda_ipc.was_tried = per_node >= ranks;
  job.nccl.was_tried = true;
  return job;
}

TEST(WiresTest, TransportsBetweenGpusAreThoseThatCouldBeOpened) {
  JobFacts job = GpuJob(2, 2);
  EXPECT_THAT(Only(job, "wire_gpu_ipc").value, StartsWith("cuda_ipc"));
  EXPECT_THAT(Only(job, "wire_gpu_nccl").value, StartsWith("nccl"));
  EXPECT_EQ(Problems(Examine(job)), 0);
  // A GPU for each is no difference.
  job.ranks[0].gpu.device = "cuda:0 (NVIDIA H100)";
  job.ranks[1].gpu.device = "cuda:1 (NVIDIA H100)";
  EXPECT_THAT(Only(job, "gpus").value, StartsWith("1 visible, NVIDIA H100; built with"));
  job.nccl.error = "ranks 0 and 1 share the GPU";
  EXPECT_EQ(Only(job, "wire_gpu_nccl").state, State::kSlow);
  EXPECT_THAT(Only(job, "wire_gpu_nccl").value, HasSubstr("ranks 0 and 1 share the GPU"));
  EXPECT_EQ(Only(GpuJob(2, 1), "wire_gpu_ipc").state, State::kOk);
}

TEST(WiresTest, AGpuThatCannotBeUsedIsMissing) {
  JobFacts job = GpuJob(2, 2);
  job.ranks[1].gpu.device = "";
  job.ranks[1].gpu.error = "the CUDA driver is for CUDA 11 at most";
  const Findings problems = ProblemsOf(job, "gpus");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].ranks, "rank 1");
  EXPECT_EQ(problems[0].state, State::kMissing);
  EXPECT_THAT(problems[0].value, HasSubstr("for CUDA 11 at most"));
  EXPECT_EQ(Only(job, "wire_gpu_nccl").state, State::kOk);
}

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
