// `sluice-sim deadlock` as it is called: exit codes, tables, JSON and scripts.
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "deadlock/engine_script.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/own_folder.h"
#include "simulate/commands.h"
#include "simulate/run_job.h"

namespace sluice::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Printed {
  int code = 0;
  std::string out;
  std::string err;
};

Printed RunWith(const DeadlockOptions& options) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Printed printed;
  printed.code = RunDeadlock(options);
  printed.out = ::testing::internal::GetCapturedStdout();
  printed.err = ::testing::internal::GetCapturedStderr();
  return printed;
}

DeadlockOptions Options(const std::string& rule) {
  DeadlockOptions options;
  options.rule = rule;
  options.runs = 100;
  options.seed = 1;
  return options;
}

TEST(DeadlockCommand, TellsOfStalls) {
  DeadlockOptions options = Options("plain");
  options.json_file = InOwnFolder("plain.json");
  options.script_file = InOwnFolder("plain.txt");
  const Printed printed = RunWith(options);
  EXPECT_EQ(printed.code, EXIT_SUCCESS);
  EXPECT_THAT(printed.err, IsEmpty());
  const nlohmann::json json = nlohmann::json::parse(FileText(options.json_file));
  EXPECT_EQ(json["config"]["seed"], 1);
  const nlohmann::json result = json["results"][0];
  EXPECT_EQ(result["case"], "plain");
  EXPECT_EQ(result["runs"], 100);
  EXPECT_GT(result["stalled"], 0);
  EXPECT_EQ(result["interrupted"], false);
  const std::string script = result["smallest"]["script"];
  EXPECT_THAT(printed.out, AllOf(HasSubstr("runs      100 of seed 1"), HasSubstr(script)));
  EXPECT_EQ(FileText(options.script_file), script);
  EXPECT_EQ(deadlock::RunEngineScript(script), script);
}

TEST(DeadlockCommand, TellsThatThereIsNone) {
  DeadlockOptions options = Options("escape");
  options.json_file = InOwnFolder("escape.json");
  EXPECT_EQ(RunWith(options).code, EXIT_SUCCESS);
  const nlohmann::json json = nlohmann::json::parse(FileText(options.json_file))["results"][0];
  EXPECT_EQ(json["stalled"], 0);
  EXPECT_TRUE(json["smallest"].is_null());
}

TEST(DeadlockCommand, PremisesAreNotMeantToHoldWithoutThem) {
  DeadlockOptions options = Options("escape");
  options.switch_off = "start-order";
  options.json_file = InOwnFolder("start_order.json");
  EXPECT_EQ(RunWith(options).code, EXIT_SUCCESS);
  const nlohmann::json json = nlohmann::json::parse(FileText(options.json_file))["results"][0];
  EXPECT_EQ(json["case"], "escape/start-order-off");
  EXPECT_GT(json["stalled"], 0);
}

TEST(DeadlockCommand, EqualOptionsPrintTheSame) {
  EXPECT_EQ(RunWith(Options("plain")).out, RunWith(Options("plain")).out);
}

TEST(DeadlockCommand, RefusesWhatMakesNoSense) {
  Printed printed = RunWith(Options("fair"));
  EXPECT_EQ(printed.code, 2);
  EXPECT_THAT(printed.err, HasSubstr("--rule: \"fair\" is none of plain, ordered, escape"));
  EXPECT_THAT(printed.out, IsEmpty());

  DeadlockOptions options = Options("plain");
  options.switch_off = "slots";
  EXPECT_EQ(RunWith(options).code, 2);
  options = Options("escape");
  options.switch_off = "gravity";
  EXPECT_THAT(RunWith(options).err, HasSubstr("--switch-off: \"gravity\""));
  options = Options("escape");
  options.json_file = "/no/such/folder/a.json";
  printed = RunWith(options);
  EXPECT_EQ(printed.code, 2);
  EXPECT_THAT(printed.err, HasSubstr("cannot write /no/such/folder/a.json"));
  EXPECT_THAT(printed.out, IsEmpty());
}

TEST(InterruptTest, NotesTheFirstOne) {
  const Interrupt interrupt;
  EXPECT_FALSE(interrupt.came());
  std::raise(SIGINT);
  EXPECT_TRUE(interrupt.came());
}

}  // namespace
}  // namespace sluice::bench
