// What a process makes of its environment: each launcher's, several at once, and broken ones.
#include "world/launch.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Launch LaunchOf(const Variables& variables) {
  return ReadLaunch([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const Variables kMpirun = {{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "8"}};
const Variables kTorchrun = {
    {"RANK", "5"}, {"WORLD_SIZE", "6"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
const Variables kSrun = {{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}, {"SLURM_STEP_ID", "0"}};

Variables Joined(Variables a, const Variables& b) {
  a.insert(b.begin(), b.end());
  return a;
}

TEST(LaunchTest, EachLauncherIsKnownByItsVariables) {
  const Variables world = {{"SLUICE_WORLD", "tcp://node1:29600"}};
  const struct {
    Variables variables;
    JobKind kind;
    int rank;
    int size;
    std::string by;
  } kKnown[] = {
      {{}, JobKind::kAlone, 0, 1, ""},
      {kMpirun, JobKind::kMpi, 3, 8, "mpirun"},
      {{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, JobKind::kMpi, 1, 2, "mpiexec"},
      {{{"PMIX_RANK", "4"}}, JobKind::kMpi, 4, 0, "a launcher with PMIx"},
      {{{"SLUICE_RANK", "7"}, {"SLUICE_SIZE", "9"}}, JobKind::kWorld, 7, 9, "SLUICE_RANK"},
      {kTorchrun, JobKind::kWorld, 5, 6, "torchrun"},
      {kSrun, JobKind::kWorld, 2, 4, "srun"},
      // Each process of a shell's loop, too: it has set the numbers, and where the ranks meet.
      {Joined({{"RANK", "2"}, {"WORLD_SIZE", "4"}}, world), JobKind::kWorld, 2, 4, "RANK"},
      {Joined({{"PMIX_RANK", "1"}, {"SLUICE_SIZE", "3"}}, world), JobKind::kWorld, 1, 3,
       "PMIx and SLUICE_SIZE"},
      // Numbers that are none count as the first rank.
      {{{"SLUICE_RANK", "one"}, {"SLUICE_SIZE", "1e3"}}, JobKind::kWorld, 0, 0, "SLUICE_RANK"},
      // Not a whole launcher: no address, a batch script, a step of one task, empty variables.
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}}, JobKind::kAlone, 0, 1, ""},
      {{{"WORLD_SIZE", "2"}}, JobKind::kAlone, 0, 1, ""},
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}, JobKind::kAlone, 0, 1, ""},
      {Joined({{"SLURM_NTASKS", "1"}}, kSrun), JobKind::kAlone, 0, 1, ""},
      {{{"OMPI_COMM_WORLD_RANK", ""}, {"SLUICE_WORLD", ""}}, JobKind::kAlone, 0, 1, ""},
  };
  for (const auto& known : kKnown) {
    SCOPED_TRACE(testing::PrintToString(known.variables));
    const Launch launch = LaunchOf(known.variables);
    EXPECT_EQ(launch.kind, known.kind);
    EXPECT_EQ(launch.rank, known.rank);
    EXPECT_EQ(launch.size, known.size);
    EXPECT_EQ(launch.by, known.by);
  }
}

TEST(LaunchTest, MpiComesBeforeOthersButNotBeforeAWorldThatIsAskedFor) {
  EXPECT_EQ(LaunchOf(Joined(kMpirun, kTorchrun)).by, "mpirun");
  EXPECT_EQ(LaunchOf(Joined(kMpirun, kSrun)).by, "mpirun");
  const Variables world = {{"SLUICE_WORLD", "tcp://node1:29600"}};
  EXPECT_EQ(LaunchOf(Joined(kMpirun, world)).kind, JobKind::kWorld);
  EXPECT_EQ(LaunchOf(Joined(kMpirun, world)).rank, 3);
  // As WorldOptionsFromEnvironment: Slurm's come last.
  EXPECT_EQ(LaunchOf(Joined(Joined(kMpirun, kSrun), world)).rank, 3);
  EXPECT_EQ(LaunchOf(Joined(Joined(kTorchrun, kSrun), world)).rank, 5);
  EXPECT_EQ(LaunchOf(Joined({{"SLUICE_RANK", "1"}}, Joined(kTorchrun, world))).rank, 1);
  EXPECT_EQ(LaunchOf(world).kind, JobKind::kWorld);
}

TEST(ChooseKindTest, TheProgramDecidesAndOtherwiseTheLauncher) {
  EXPECT_EQ(*ChooseKind(JobKind::kWorld, LaunchOf(kMpirun), true), JobKind::kWorld);
  EXPECT_EQ(*ChooseKind(JobKind::kMpi, LaunchOf(kTorchrun), true), JobKind::kMpi);
  EXPECT_EQ(*ChooseKind({}, LaunchOf(kMpirun), true), JobKind::kMpi);
  EXPECT_EQ(*ChooseKind({}, LaunchOf(kTorchrun), true), JobKind::kWorld);
  EXPECT_EQ(*ChooseKind({}, LaunchOf(kSrun), false), JobKind::kWorld);
  EXPECT_EQ(*ChooseKind({}, Launch(), true), JobKind::kAlone);
  EXPECT_EQ(*ChooseKind({}, Launch(), false), JobKind::kAlone);
}

TEST(ChooseKindTest, WithoutMpiNobodyRunsManyJobsInsteadOfOne) {
  const auto wanted = ChooseKind(JobKind::kMpi, Launch(), false);
  EXPECT_EQ(wanted.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(wanted.status().message(), HasSubstr("built without MPI"));
  const auto launcher = ChooseKind({}, LaunchOf(kMpirun), false);
  EXPECT_EQ(launcher.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(launcher.status().message(), HasSubstr("started by mpirun"));
  EXPECT_THAT(launcher.status().message(), HasSubstr("SLUICE_WORLD"));
  const Variables one = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}};
  EXPECT_EQ(*ChooseKind({}, LaunchOf(one), false), JobKind::kAlone);
}

}  // namespace
}  // namespace sluice
