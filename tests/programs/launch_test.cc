// What a process makes of its environment: each launcher's, several at once, and broken ones.
#include "job/launch.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace sluice::bench {
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
    FabricKind fabric;
    int rank;
    int size;
    std::string by;
  } kKnown[] = {
      {{}, FabricKind::kAlone, 0, 1, ""},
      {kMpirun, FabricKind::kMpi, 3, 8, "mpirun"},
      {{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, FabricKind::kMpi, 1, 2, "mpiexec"},
      {{{"PMIX_RANK", "4"}}, FabricKind::kMpi, 4, 0, "a launcher with PMIx"},
      {{{"SLUICE_RANK", "7"}, {"SLUICE_SIZE", "9"}}, FabricKind::kWorld, 7, 9, "SLUICE_RANK"},
      {kTorchrun, FabricKind::kWorld, 5, 6, "torchrun"},
      {kSrun, FabricKind::kWorld, 2, 4, "srun"},
      // Each process of a shell's loop, too: it has set the numbers, and where the ranks meet.
      {Joined({{"RANK", "2"}, {"WORLD_SIZE", "4"}}, world), FabricKind::kWorld, 2, 4, "RANK"},
      {Joined({{"PMIX_RANK", "1"}, {"SLUICE_SIZE", "3"}}, world), FabricKind::kWorld, 1, 3,
       "PMIx and SLUICE_SIZE"},
      // Numbers that are none count as the first rank.
      {{{"SLUICE_RANK", "one"}, {"SLUICE_SIZE", "1e3"}}, FabricKind::kWorld, 0, 0, "SLUICE_RANK"},
      // Not a whole launcher: no address, a batch script, a step of one task, empty variables.
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}}, FabricKind::kAlone, 0, 1, ""},
      {{{"WORLD_SIZE", "2"}}, FabricKind::kAlone, 0, 1, ""},
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}, FabricKind::kAlone, 0, 1, ""},
      {Joined({{"SLURM_NTASKS", "1"}}, kSrun), FabricKind::kAlone, 0, 1, ""},
      {{{"OMPI_COMM_WORLD_RANK", ""}, {"SLUICE_WORLD", ""}}, FabricKind::kAlone, 0, 1, ""},
  };
  for (const auto& known : kKnown) {
    SCOPED_TRACE(testing::PrintToString(known.variables));
    const Launch launch = LaunchOf(known.variables);
    EXPECT_EQ(launch.fabric, known.fabric);
    EXPECT_EQ(launch.rank, known.rank);
    EXPECT_EQ(launch.size, known.size);
    EXPECT_EQ(launch.by, known.by);
  }
}

TEST(LaunchTest, MpiComesBeforeOthersButNotBeforeAWorldThatIsAskedFor) {
  EXPECT_EQ(LaunchOf(Joined(kMpirun, kTorchrun)).by, "mpirun");
  EXPECT_EQ(LaunchOf(Joined(kMpirun, kSrun)).by, "mpirun");
  const Variables world = {{"SLUICE_WORLD", "tcp://node1:29600"}};
  EXPECT_EQ(LaunchOf(Joined(kMpirun, world)).fabric, FabricKind::kWorld);
  EXPECT_EQ(LaunchOf(Joined(kMpirun, world)).rank, 3);
  // As WorldOptionsFromEnvironment: Slurm's come last.
  EXPECT_EQ(LaunchOf(Joined(Joined(kMpirun, kSrun), world)).rank, 3);
  EXPECT_EQ(LaunchOf(Joined(Joined(kTorchrun, kSrun), world)).rank, 5);
  EXPECT_EQ(LaunchOf(Joined({{"SLUICE_RANK", "1"}}, Joined(kTorchrun, world))).rank, 1);
  EXPECT_EQ(LaunchOf(world).fabric, FabricKind::kWorld);
}

TEST(ChooseFabricTest, TheFlagDecidesAndOtherwiseTheLauncher) {
  const Launch alone;
  EXPECT_EQ(*ChooseFabric("world", LaunchOf(kMpirun), true), FabricKind::kWorld);
  EXPECT_EQ(*ChooseFabric("mpi", LaunchOf(kTorchrun), true), FabricKind::kMpi);
  EXPECT_EQ(*ChooseFabric("auto", LaunchOf(kMpirun), true), FabricKind::kMpi);
  EXPECT_EQ(*ChooseFabric("auto", LaunchOf(kTorchrun), true), FabricKind::kWorld);
  EXPECT_EQ(*ChooseFabric("auto", LaunchOf(kSrun), false), FabricKind::kWorld);
  EXPECT_EQ(*ChooseFabric("auto", alone, true), FabricKind::kMpi);
  EXPECT_EQ(*ChooseFabric("auto", alone, false), FabricKind::kAlone);
}

TEST(ChooseFabricTest, WithoutMpiNobodyRunsManyJobsInsteadOfOne) {
  const auto flag = ChooseFabric("mpi", Launch(), false);
  EXPECT_EQ(flag.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(flag.status().message(), HasSubstr("built without MPI"));
  const auto launcher = ChooseFabric("auto", LaunchOf(kMpirun), false);
  EXPECT_EQ(launcher.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(launcher.status().message(), HasSubstr("started by mpirun"));
  EXPECT_THAT(launcher.status().message(), HasSubstr("SLUICE_WORLD"));
  const Variables one = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}};
  EXPECT_EQ(*ChooseFabric("auto", LaunchOf(one), false), FabricKind::kAlone);
  EXPECT_FALSE(ChooseFabric("tcp", Launch(), true).ok());
  EXPECT_FALSE(ChooseFabric("", Launch(), true).ok());
}

}  // namespace
}  // namespace sluice::bench
