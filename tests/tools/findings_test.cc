// Starts, cores and limits: each fault is found, named and told what to do about, and no other is.
#include "doctor/findings.h"

#include <functional>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "doctor/facts.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/job_facts.h"

namespace sluice::bench {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(FindingsTest, NothingIsWrongWithGoodJobs) {
  for (const auto& [ranks, per_node] : {std::pair{1, 1}, {3, 3}, {8, 4}}) {
    const Findings findings = Examine(GoodJob(ranks, per_node));
    EXPECT_EQ(Problems(findings), 0) << ranks;
    for (const Finding& finding : findings) {
      EXPECT_THAT(finding.todo, IsEmpty()) << finding.check;
      EXPECT_THAT(finding.ranks, IsEmpty()) << finding.check;
      EXPECT_FALSE(finding.value.empty()) << finding.check;
    }
  }
}

TEST(FindingsTest, EveryCheckIsThereAndOnce) {
  std::vector<std::string> checks;
  for (const Finding& finding : Examine(GoodJob(2, 2))) checks.push_back(finding.check);
  EXPECT_THAT(checks,
              ElementsAre("build", "fabric", "mpi", "mpi_threads", "ranks", "nodes", "wire_rank",
                          "wire_node", "wire_messages", "wire_network", "gpus", "wire_gpu_ipc",
                          "wire_gpu_nccl", "cores", "binding", "yielding", "cache", "ptrace",
                          "memfd", "dev_shm", "memlock", "open_files", "io_uring", "ports"));
}

// One fault of each rank, or of some, and where it shows.
struct Fault {
  std::string check;
  State state;
  std::function<void(RankFacts*)> make;
};

TEST(FindingsTest, EachFaultOfARankShowsAtItsCheckAlone) {
  const Fault faults[] = {
      {"mpi", State::kMissing, [](RankFacts* f) { f->mpi.lacks = "ranks may stand still"; }},
      {"mpi_threads", State::kMissing, [](RankFacts* f) { f->mpi.has_all_threads = false; }},
      {"ranks", State::kMissing, [](RankFacts* f) { f->mpi.launched = 16; }},
      {"wire_messages", State::kSlow, [](RankFacts* f) { f->mpi.btl = "self,tcp"; }},
      {"wire_messages", State::kSlow, [](RankFacts* f) { f->mpi.btl = "^vader"; }},
      {"wire_messages", State::kSlow, [](RankFacts* f) { f->mpi.single_copy = "none"; }},
      {"gpus", State::kMissing, [](RankFacts* f) { f->gpu.nvidia_devices = 2; }},
      {"binding", State::kSlow, [](RankFacts* f) { f->cpu.numa_nodes = 2; }},
      {"cache", State::kMissing, [](RankFacts* f) { f->cpu.knows_cache = false; }},
      {"memfd", State::kMissing, [](RankFacts* f) { f->wires.memfd_error = "memfd_create"; }},
      {"dev_shm", State::kMissing, [](RankFacts* f) { f->limits.shm_bytes = -1; }},
      {"dev_shm", State::kSlow, [](RankFacts* f) { f->limits.shm_bytes = 1 << 20; }},
      {"memlock", State::kSlow, [](RankFacts* f) { f->wires.rdma_devices = 1; }},
      {"open_files", State::kMissing, [](RankFacts* f) { f->limits.files = 32; }},
      {"open_files", State::kSlow, [](RankFacts* f) { f->limits.files_hard = 1000; }},
      {"io_uring", State::kSlow, [](RankFacts* f) { f->limits.uring_error = "no io_uring"; }},
  };
  for (const Fault& fault : faults) {
    JobFacts job = GoodJob(4, 4);
    fault.make(&job.ranks[1]);
    fault.make(&job.ranks[2]);
    const Findings problems = ProblemsOf(job, fault.check);
    ASSERT_THAT(problems, SizeIs(1)) << fault.check;
    EXPECT_EQ(problems[0].state, fault.state) << fault.check;
    EXPECT_EQ(problems[0].ranks, "ranks 1-2") << fault.check;
    EXPECT_FALSE(problems[0].todo.empty()) << fault.check;
    EXPECT_EQ(Problems(Examine(job)), 1) << fault.check;
    // The ranks with nothing wrong are named beside them.
    for (const Finding& finding : Examine(job)) {
      if (finding.check == fault.check && finding.state == State::kOk) {
        EXPECT_EQ(finding.ranks, "ranks 0,3") << fault.check;
      }
    }
  }
}

TEST(FindingsTest, BuildsThatAreNotFastAreNamed) {
  JobFacts job = GoodJob(1, 1);
  for (const char* build : {"gcc 12, debug", "gcc 12, release, sanitized"}) {
    job.build = build;
    EXPECT_EQ(Only(job, "build").state, State::kSlow) << build;
  }
}

TEST(FindingsTest, NodesAreGrouped) {
  EXPECT_EQ(Only(GoodJob(5, 2), "nodes").value,
            "3 (node0: ranks 0-1; node1: ranks 2-3; node2: rank 4)");
}

TEST(FindingsTest, OneMachineInTwoNodesIsToldWhy) {
  JobFacts job = GoodJob(4, 2);
  for (RankFacts& facts : job.ranks) facts.machine = "one";
  EXPECT_THAT(Only(job, "nodes").value, HasSubstr("differ in host name"));
  EXPECT_EQ(Only(job, "nodes").state, State::kSlow);
  job.ranks[3].host = job.ranks[2].host = job.ranks[0].host;
  job.ranks[3].pid_namespace = job.ranks[2].pid_namespace = 8;
  EXPECT_THAT(Only(job, "nodes").value, HasSubstr("differ in namespace of process numbers"));
  // Who says it by a flag wants it so.
  job.nodes_are_given = true;
  EXPECT_EQ(Only(job, "nodes").state, State::kOk);
}

TEST(FindingsTest, MoreRanksThanCpusAreOversubscribed) {
  JobFacts job = GoodJob(3, 3);
  for (RankFacts& facts : job.ranks) {
    facts.cpu.online = 2;
    facts.cpu.cpus = {0, 1};
    facts.mpi.oversubscribed = "1";
  }
  EXPECT_THAT(Only(job, "cores").value, HasSubstr("3 ranks share 2 CPUs"));
  EXPECT_EQ(Only(job, "cores").state, State::kSlow);
  EXPECT_THAT(Only(job, "cores").todo, HasSubstr("at most 2 ranks"));
  EXPECT_EQ(Only(job, "yielding").state, State::kOk);
  EXPECT_THAT(Only(job, "cache").value, HasSubstr("1.3 MiB"));
  for (RankFacts& facts : job.ranks) facts.mpi.oversubscribed = "0";
  EXPECT_EQ(Only(job, "yielding").state, State::kSlow);
  for (RankFacts& facts : job.ranks) facts.mpi.yield_when_idle = "1";
  EXPECT_EQ(Only(job, "yielding").state, State::kOk);
  job.mpi = "MPICH Version: 4.0.2";
  EXPECT_EQ(Only(job, "yielding").state, State::kSlow);
}

TEST(FindingsTest, RanksThatAreBoundToTheSameCpuAreNamed) {
  JobFacts job = GoodJob(4, 4);
  job.ranks[3].cpu.cpus = job.ranks[1].cpu.cpus;
  const Finding cores = Only(job, "cores");
  EXPECT_EQ(cores.value, "ranks 1,3 may run on the same 1 of 4 CPUs alone");
  EXPECT_EQ(cores.state, State::kSlow);
  EXPECT_NE(Only(job, "yielding").value, "");
}

TEST(FindingsTest, AQuotaCountsOnlyBelowTheRanks) {
  JobFacts job = GoodJob(4, 4);
  for (RankFacts& facts : job.ranks) facts.cpu.quota = 3.5;
  EXPECT_EQ(Only(job, "cores").state, State::kOk);
  for (RankFacts& facts : job.ranks) facts.cpu.quota = 2;
  EXPECT_THAT(Only(job, "cores").value, HasSubstr("2.0 CPUs"));
  EXPECT_EQ(Only(job, "cores").state, State::kSlow);
}

TEST(FindingsTest, NodesWithDifferentCoresAreNamed) {
  JobFacts job = GoodJob(4, 2);
  job.ranks[3].cpu.cpus = job.ranks[2].cpu.cpus;
  const Findings problems = ProblemsOf(job, "cores");
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_EQ(problems[0].ranks, "ranks 2-3");
}

TEST(FindingsTest, StagingNearTheRankIsFine) {
  JobFacts job = GoodJob(2, 2);
  for (RankFacts& facts : job.ranks) {
    facts.cpu.numa_nodes = 2;
    facts.cpu.is_placed = true;
  }
  EXPECT_EQ(Only(job, "binding").state, State::kOk);
}

TEST(FindingsTest, LockedMemoryMattersToRdmaAlone) {
  JobFacts job = GoodJob(2, 2);
  for (RankFacts& facts : job.ranks) facts.wires.rdma_devices = 1;
  EXPECT_EQ(Only(job, "memlock").state, State::kSlow);
  for (RankFacts& facts : job.ranks) facts.limits.memlock_bytes = -1;
  EXPECT_EQ(Only(job, "memlock").state, State::kOk);
}

TEST(FindingsTest, FactsComeBackFromTheirText) {
  RankFacts facts = GoodJob(1, 1).ranks[0];
  facts.host =
      "b\xfc"
      "cher";  // not UTF-8
  facts.wires.refused = {1, 5};
  facts.cpu.quota = 1.5;
  facts.gpu.error = "say \"no\"";
  facts.limits.uring_error = "no io_uring";
  facts.ports.others = {"[::]:4711"};
  const auto back = RankFactsOf(ToText(facts)).value();
  EXPECT_EQ(back.wires.refused, facts.wires.refused);
  EXPECT_EQ(back.cpu.cpus, facts.cpu.cpus);
  EXPECT_EQ(back.cpu.quota, 1.5);
  EXPECT_EQ(back.gpu.error, facts.gpu.error);
  EXPECT_EQ(back.limits.uring_error, facts.limits.uring_error);
  EXPECT_EQ(back.ports.others, facts.ports.others);
  EXPECT_EQ(back.limits.memlock_bytes, facts.limits.memlock_bytes);
  EXPECT_EQ(RankFactsOf("{}").status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(RankFactsOf("[").status().code(), absl::StatusCode::kInternal);
}

TEST(TableTest, LinesFitAndTheLastOneCounts) {
  JobFacts job = GoodJob(4, 4);
  for (RankFacts& facts : job.ranks)
    facts.limits.uring_error = absl::StrCat(std::string(300, 'x'), " and more");
  job.ranks[2].mpi.has_all_threads = false;
  const std::string text = FindingsText(Examine(job));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    // A word that is too long stays whole.
    if (line.find("xxx") == std::string::npos) {
      EXPECT_LE(line.size(), 100u) << line;
    }
  }
  EXPECT_THAT(text, HasSubstr("missing  mpi threads      rank 2: MPI_THREAD_MULTIPLE was asked"));
  EXPECT_THAT(text, HasSubstr("\n                          What to do: "));
  EXPECT_THAT(text, EndsWith("# To do: 2 (1 slow, 1 missing)\n"));
  EXPECT_THAT(FindingsText(Examine(GoodJob(1, 1))), EndsWith("as fast as it can be here.\n"));
}

TEST(TableTest, JsonHasEachFinding) {
  const Findings findings = {{"cores", "3 ranks", State::kSlow, "fewer", "ranks 0-2"}};
  EXPECT_EQ(FindingsJson(findings).dump(),
            R"([{"check":"cores","value":"3 ranks","state":"slow","todo":"fewer",)"
            R"("ranks":"ranks 0-2"}])");
}

}  // namespace
}  // namespace sluice::bench
