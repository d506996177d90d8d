// What launchers leave in the environment, and what nonsense in it is called.
#include "world/environment.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "world/world_options.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

absl::StatusOr<WorldOptions> From(const Variables& variables) {
  return WorldOptionsFrom([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  });
}

bool Has(const Variables& variables) {
  return HasWorld([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  });
}

Variables With(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

const Variables& Own() {
  static const auto* const kOwn = new Variables{
      {"SLUICE_WORLD", "tcp://node1:4711"}, {"SLUICE_RANK", "2"}, {"SLUICE_SIZE", "4"}};
  return *kOwn;
}
const Variables& Torchrun() {
  static const auto* const kTorchrun = new Variables{
      {"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}};
  return *kTorchrun;
}
const Variables& Slurm() {
  static const auto* const kSlurm = new Variables{{"SLURM_PROCID", "3"},
                                                  {"SLURM_NTASKS", "8"},
                                                  {"SLURM_JOB_ID", "1234"},
                                                  {"SLURM_STEP_ID", "5"},
                                                  {"SLURM_STEP_NODELIST", "gpu[07-09,12],cpu3"},
                                                  {"SLURM_LAUNCH_NODE_IPADDR", "10.9.9.9"}};
  return *kSlurm;
}

TEST(EnvironmentTest, OwnVariables) {
  const auto options = From(Own()).value();
  EXPECT_EQ(options.store, "tcp://node1:4711");
  EXPECT_EQ(options.rank, 2);
  EXPECT_EQ(options.size, 4);
  EXPECT_EQ(options.role, "member");
  EXPECT_TRUE(options.roles.empty());
  EXPECT_FALSE(options.serve.has_value());
  EXPECT_EQ(options.timeout, absl::InfiniteDuration());
}

TEST(EnvironmentTest, AllOwnVariables) {
  const auto options = From(With(Own(), {{"SLUICE_TOKEN", "x"},
                                         {"SLUICE_ROLE", "server"},
                                         {"SLUICE_ROLES", "trainer:2,server"},
                                         {"SLUICE_WORLD_NAME", "night.3"},
                                         {"SLUICE_WORLD_TIMEOUT", "90s"},
                                         {"SLUICE_WIRES", "tcp"},
                                         {"SLUICE_BIND", "10.0.0.7"},
                                         {"SLUICE_SERVE", "1"}}))
                           .value();
  EXPECT_EQ(options.token, "x");
  EXPECT_EQ(options.role, "server");
  EXPECT_EQ(RolesText(options.roles), "trainer:2,server");
  EXPECT_EQ(RolesText(DeclaredRoles(options)), "trainer:2,server:4");
  EXPECT_EQ(options.name, "night.3");
  EXPECT_EQ(options.timeout, absl::Seconds(90));
  EXPECT_EQ(options.store_timeout, absl::Seconds(90));
  EXPECT_EQ(options.wires, "tcp");
  EXPECT_EQ(options.bind, "10.0.0.7");
  EXPECT_EQ(options.serve, true);
}

TEST(EnvironmentTest, WhatIsSetByTheCallerCountsBeforeTheProcess) {
  Variables set = With(Own(), {{"SLUICE_ROLE", ""}, {"SLUICE_ROLES", "trainer:2,server:4"}});
  EXPECT_THAT(WorldOptionsFromEnvironment(set).status().message(),
              HasSubstr("which is this one: set the role"));
  set["SLUICE_ROLE"] = "server";
  const auto options = WorldOptionsFromEnvironment(set).value();
  EXPECT_EQ(options.role, "server");
  EXPECT_EQ(options.store, "tcp://node1:4711");
  EXPECT_EQ(options.rank, 2);
  EXPECT_EQ(options.size, 4);
}

// The port of MASTER_PORT is torch's own store's.
TEST(EnvironmentTest, Torchrun) {
  auto options = From(Torchrun());
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->store, "tcp://10.0.0.1:29501");
  EXPECT_EQ(options->rank, 1);
  EXPECT_EQ(options->size, 3);
  EXPECT_EQ(options->serve, false);
  options = From(With(Torchrun(), {{"RANK", "0"}}));
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->serve, true);
  options = From(With(Torchrun(), {{"MASTER_ADDR", "fd00::1"}}));
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->store, "tcp://[fd00::1]:29501");
  options = From(With(Torchrun(), {{"SLUICE_WORLD", "tcp://store:1"}}));
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->store, "tcp://store:1");
  EXPECT_FALSE(options->serve.has_value());
}

// Task 0 runs on the first node of the step; the node that called srun may be another one.
TEST(EnvironmentTest, Slurm) {
  const auto options = From(Slurm()).value();
  EXPECT_EQ(options.store, "tcp://gpu07:28643");
  EXPECT_EQ(options.rank, 3);
  EXPECT_EQ(options.size, 8);
  EXPECT_EQ(options.serve, false);
  const auto named = From(With(Slurm(), {{"SLURM_STEP_NODELIST", ""}})).value();
  EXPECT_EQ(named.store, "tcp://10.9.9.9:28643");
}

// Each names the variable.
TEST(EnvironmentTest, OpenMpiAndPmix) {
  const Variables store = {{"SLUICE_WORLD", "tcp://a:1"}};
  const auto open_mpi =
      From(With(store, {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}})).value();
  EXPECT_EQ(open_mpi.rank, 1);
  EXPECT_EQ(open_mpi.size, 2);
  const auto hydra = From(With(store, {{"PMI_RANK", "4"}, {"PMI_SIZE", "5"}})).value();
  EXPECT_EQ(hydra.rank, 4);
  const auto pmix = From(With(store, {{"PMIX_RANK", "1"}, {"SLUICE_SIZE", "3"}})).value();
  EXPECT_EQ(pmix.rank, 1);
  EXPECT_EQ(pmix.size, 3);
}

// A batch script has SLURM_PROCID too, and what mpirun starts in it inherits the variable.
TEST(EnvironmentTest, TheInnerLauncherCounts) {
  Variables batch = Slurm();
  batch.erase("SLURM_STEP_ID");
  EXPECT_FALSE(Has(batch));
  const auto inside = From(With(Slurm(), {{"OMPI_COMM_WORLD_RANK", "0"},
                                          {"OMPI_COMM_WORLD_SIZE", "2"},
                                          {"SLUICE_WORLD", "tcp://a:1"}}))
                          .value();
  EXPECT_EQ(inside.size, 2);
}

TEST(EnvironmentTest, AnyRank) {
  const auto given = From(With(Own(), {{"SLUICE_RANK", "any"}})).value();
  EXPECT_EQ(given.rank, kAnyRank);
  EXPECT_EQ(given.size, 4);
  const Variables declared = {{"SLUICE_RANK", "any"}, {"SLUICE_SIZE", ""}, {"SLUICE_ROLE", "b"}};
  const auto options = From(With(With(Own(), declared), {{"SLUICE_ROLES", "a:1,b:7"}})).value();
  EXPECT_EQ(options.rank, kAnyRank);
  EXPECT_EQ(options.size, 7);
  const absl::Status none = From(With(Own(), declared)).status();
  EXPECT_THAT(std::string(none.message()), HasSubstr("how many members role \"b\" has"));
}

TEST(EnvironmentTest, NonsenseIsNamed) {
  const std::vector<std::pair<Variables, std::string>> cases = {
      {{}, "SLUICE_RANK"},
      {{{"SLUICE_RANK", "0"}}, "SLUICE_SIZE is not"},
      {{{"SLUICE_SIZE", "2"}}, "SLUICE_RANK is not"},
      {{{"SLUICE_RANK", "0"}, {"SLUICE_SIZE", "1"}}, "SLUICE_WORLD is not set"},
      {With(Own(), {{"SLUICE_RANK", "4"}}), "SLUICE_RANK is 4, but SLUICE_SIZE is 4"},
      {With(Own(), {{"SLUICE_RANK", "-1"}}), "SLUICE_RANK is \"-1\""},
      {With(Own(), {{"SLUICE_RANK", "one"}}), "SLUICE_RANK is \"one\""},
      {With(Own(), {{"SLUICE_SIZE", "0"}}), "SLUICE_SIZE is \"0\""},
      {With(Own(), {{"SLUICE_SIZE", "99999999999"}}), "SLUICE_SIZE"},
      {With(Own(), {{"SLUICE_ROLE", "a b"}}), "SLUICE_ROLE: "},
      {With(Own(), {{"SLUICE_ROLES", "a,,b"}}), "SLUICE_ROLES: "},
      {With(Own(), {{"SLUICE_ROLES", "a:0"}}), "SLUICE_ROLES: "},
      {With(Own(), {{"SLUICE_ROLES", "a:x"}}), "SLUICE_ROLES: "},
      {With(Own(), {{"SLUICE_ROLES", "a,a"}}), "SLUICE_ROLES: "},
      {With(Own(), {{"SLUICE_ROLES", "a,b"}}), "which is this one: set the role"},
      {With(Own(), {{"SLUICE_ROLES", "a,b"}, {"SLUICE_ROLE", "c"}}), "SLUICE_ROLES: "},
      {With(Own(), {{"SLUICE_ROLES", "a:3"}}), "SLUICE_ROLES: "},
      {With(Own(), {{"SLUICE_WIRES", "rdma"}}), "SLUICE_WIRES is \"rdma\""},
      {With(Own(), {{"SLUICE_WORLD_TIMEOUT", "soon"}}), "SLUICE_WORLD_TIMEOUT is \"soon\""},
      {With(Own(), {{"SLUICE_WORLD_TIMEOUT", "-1s"}}), "SLUICE_WORLD_TIMEOUT"},
      {With(Own(), {{"SLUICE_SERVE", "yes"}}), "SLUICE_SERVE is \"yes\""},
      {With(Own(), {{"SLUICE_WORLD_NAME", "a/b"}}), "SLUICE_WORLD_NAME: "},
      {With(Own(), {{"SLUICE_TOKEN", "x"}, {"SLUICE_TOKEN_FILE", "y"}}), "SLUICE_TOKEN_FILE"},
      {With(Torchrun(), {{"WORLD_SIZE", ""}}), "WORLD_SIZE is not"},
      {With(Torchrun(), {{"MASTER_ADDR", ""}}), "MASTER_ADDR is not"},
      {With(Torchrun(), {{"MASTER_PORT", ""}}), "MASTER_PORT is not set"},
      {With(Torchrun(), {{"MASTER_PORT", "65535"}}), "MASTER_PORT is \"65535\""},
      {With(Torchrun(), {{"SLUICE_ROLES", "a,b"}, {"SLUICE_ROLE", "a"}}),
       "where they meet: set the store's address"},
      {With(Torchrun(), {{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "3"}}),
       "RANK is 1 of 3, and OMPI_COMM_WORLD_RANK is 2 of 3"},
      {With(Slurm(), {{"SLURM_JOB_ID", "x"}}), "SLURM_JOB_ID is \"x\""},
  };
  for (const auto& [variables, text] : cases) {
    const auto options = From(variables);
    EXPECT_EQ(options.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(options.status().message()), HasSubstr(text));
  }
}

TEST(EnvironmentTest, SaysWhetherThereIsAWorld) {
  EXPECT_FALSE(Has({}));
  EXPECT_TRUE(Has(Own()));
  EXPECT_TRUE(Has(Torchrun()));
  EXPECT_TRUE(Has(Slurm()));
  EXPECT_FALSE(Has({{"SLUICE_WORLD", "tcp://a:1"}}));
  EXPECT_FALSE(Has({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}));
}

TEST(EnvironmentTest, FirstHostOfANodeList) {
  EXPECT_EQ(FirstOfNodeList("node1"), "node1");
  EXPECT_EQ(FirstOfNodeList("node1,node2"), "node1");
  EXPECT_EQ(FirstOfNodeList("node[007-009,12],other3"), "node007");
  EXPECT_EQ(FirstOfNodeList("rack[1,3]n[04-05]-ib,x"), "rack1n04-ib");
  EXPECT_EQ(FirstOfNodeList("node["), "node");
  EXPECT_EQ(FirstOfNodeList("node[]x"), "nodex");
  EXPECT_EQ(FirstOfNodeList(""), "");
}

}  // namespace
}  // namespace sluice
