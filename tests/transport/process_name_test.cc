// Processes that end, by each way of looking, and whose numbers go to others; nodes.
#include "transport/process_name.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "transport/introduction.h"
#include "transport/rank_processes.h"

namespace sluice {
namespace {

using testing::ElementsAre;

// A process that waits for its end. Its parent takes note of that with Reap.
class Child {
 public:
  Child() {
    int said[2] = {-1, -1};
    EXPECT_EQ(pipe(said), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const ProcessName name = OwnProcessName();
      static_cast<void>(!write(said[1], &name, sizeof(name)));
      while (true) pause();
    }
    EXPECT_EQ(read(said[0], &name_, sizeof(name_)), static_cast<ssize_t>(sizeof(name_)));
    close(said[0]);
    close(said[1]);
  }
  ~Child() {
    if (!dead_) Kill();
    Reap();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  const ProcessName& name() const { return name_; }
  // It is left as a zombie.
  void Kill() {
    dead_ = true;
    kill(pid_, SIGKILL);
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  void Reap() {
    if (!reaped_) waitpid(pid_, nullptr, 0);
    reaped_ = true;
  }

 private:
  pid_t pid_ = -1;
  bool dead_ = false;
  bool reaped_ = false;
  ProcessName name_;
};

class ProcessHandleTest : public testing::TestWithParam<ProcessHandle::Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, ProcessHandleTest,
                         testing::Values(ProcessHandle::Way::kAny, ProcessHandle::Way::kProc));

TEST_P(ProcessHandleTest, SeesTheEnd) {
  Child child;
  const ProcessHandle handle(child.name(), GetParam());
  EXPECT_TRUE(handle.can_look());
  EXPECT_FALSE(handle.HasEnded());
  child.Kill();
  EXPECT_TRUE(handle.HasEnded()) << "as a zombie";
  child.Reap();
  EXPECT_TRUE(handle.HasEnded());
}

TEST_P(ProcessHandleTest, OfAProcessThatHadEndedBefore) {
  Child child;
  child.Kill();
  EXPECT_TRUE(ProcessHandle(child.name(), GetParam()).HasEnded());
  child.Reap();
  EXPECT_TRUE(ProcessHandle(child.name(), GetParam()).HasEnded());
}

// Another process has the number by now: one that began at another time.
TEST_P(ProcessHandleTest, OfAnEarlierProcessOfTheSameNumber) {
  Child child;
  ProcessName earlier = child.name();
  --earlier.start_ticks;
  EXPECT_TRUE(ProcessHandle(earlier, GetParam()).HasEnded());
}

TEST_P(ProcessHandleTest, TheOwnProcessDoesNotEnd) {
  EXPECT_FALSE(ProcessHandle(OwnProcessName(), GetParam()).HasEnded());
}

// What Check says at last, if it says anything within `looks` looks.
absl::Status CheckOften(RankProcesses* processes, int looks) {
  absl::Status status;
  for (int i = 0; i < looks && status.ok(); ++i) {
    status = processes->Check();
    usleep(1000);
  }
  return status;
}

TEST(RankProcessesTest, NamesWhoHasEnded) {
  Child first, second;
  const std::vector<ProcessName> names = {first.name(), OwnProcessName(), second.name()};
  RankProcesses processes(1, names, {7, 7, 7});
  EXPECT_TRUE(CheckOften(&processes, 50).ok());
  second.Kill();
  const absl::Status status = CheckOften(&processes, 120'000);
  EXPECT_THAT(status,
              Fails(absl::StatusCode::kUnavailable,
                    "rank 2, process " + std::to_string(second.name().pid) + ", has ended"));
  EXPECT_FALSE(processes.HasEnded(0));
  EXPECT_TRUE(processes.HasEnded(2));
}

// Nothing is sent to an ended rank, though its last words may still come.
TEST(RankProcessesTest, AnEndedRankIsGoneBeforeItIsNamed) {
  Child first;
  Child second;
  const std::vector<ProcessName> names = {OwnProcessName(), first.name(), second.name()};
  RankProcesses processes(0, names, {0, 0, 0});
  if (processes.exit_fd() < 0) GTEST_SKIP() << "pidfd_open is refused";
  EXPECT_FALSE(processes.IsGone(1));
  EXPECT_FALSE(processes.IsGone(2));
  second.Kill();
  usleep(1000);  // for the next look
  EXPECT_TRUE(processes.IsGone(2));
  EXPECT_FALSE(processes.IsGone(1));
  EXPECT_FALSE(processes.IsGone(0));
  const absl::Status status = CheckOften(&processes, 120'000);
  EXPECT_THAT(status, Fails(absl::StatusCode::kUnavailable, "rank 2"));
  EXPECT_TRUE(processes.IsGone(2));
}

TEST(RankProcessesTest, LeavesOtherNodesAndOtherNamespacesAlone) {
  Child other_node, other_namespace, other_boot;
  std::vector<ProcessName> names = {OwnProcessName(), other_node.name(), other_namespace.name(),
                                    other_boot.name()};
  ++names[2].pid_namespace;
  names[3].boot[0] = '?';
  RankProcesses processes(0, names, {0, 1, 0, 0});
  other_node.Kill();
  other_namespace.Kill();
  other_boot.Kill();
  EXPECT_TRUE(CheckOften(&processes, 300).ok());
}

Introduction On(const char* host, const char* boot, uint64_t pid_namespace) {
  Introduction introduction;
  std::strncpy(introduction.host.data(), host, introduction.host.size() - 1);
  std::strncpy(introduction.process.boot.data(), boot, introduction.process.boot.size() - 1);
  introduction.process.pid_namespace = pid_namespace;
  return introduction;
}

TEST(IntroductionTest, ANodeIsAHostNameASystemAndANamespace) {
  const std::vector<Introduction> all = {On("a", "x", 1), On("b", "x", 1), On("a", "x", 1),
                                         On("a", "y", 1), On("a", "x", 2), On("b", "x", 1)};
  EXPECT_THAT(NodesOf(all), ElementsAre(0, 1, 0, 2, 3, 1));
}

TEST(IntroductionTest, NodesByNumbersOfRanks) {
  std::vector<Introduction> all = {On("a", "x", 1), On("b", "x", 1), On("c", "x", 1)};
  for (Introduction& each : all) each.ranks_per_node = 2;
  EXPECT_THAT(*PlannedNodesOf(all), ElementsAre(0, 0, 1));
  all[2].ranks_per_node = 3;
  EXPECT_EQ(PlannedNodesOf(all).status().message(),
            "ranks_per_node is 2 on rank 0, but 3 on rank 2");
  all[2].ranks_per_node.reset();
  const absl::Status differ = PlannedNodesOf(all).status();
  EXPECT_EQ(differ.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(differ.message(), "ranks_per_node is 2 on rank 0, but not set on rank 2");
}

TEST(IntroductionTest, NodesWithoutRanksAreRefused) {
  std::vector<Introduction> all = {On("a", "x", 1), On("b", "x", 1)};
  EXPECT_THAT(*PlannedNodesOf(all), ElementsAre(0, 1));
  for (const int none : {0, -1}) {
    all[1].ranks_per_node = none;
    const absl::Status status = PlannedNodesOf(all).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              absl::StrCat("ranks_per_node is ", none, " on rank 1 but must be at least 1"));
  }
}

}  // namespace
}  // namespace sluice
