// `sluice-sim peak` and `scale` as they are called: exit codes, JSON, CSV, and equal bytes for
// equal seeds.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/own_folder.h"
#include "simulate/commands.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

struct Printed {
  int code = 0;
  std::string out;
  std::string err;
};

template <typename Options>
Printed Call(int (*command)(Options*), Options options) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  Printed printed;
  printed.code = command(&options);
  printed.out = ::testing::internal::GetCapturedStdout();
  printed.err = ::testing::internal::GetCapturedStderr();
  return printed;
}

// The results of a run that ends well.
template <typename Options>
Json Results(int (*command)(Options*), Options options) {
  options.sim.json_file = InOwnFolder("results.json");
  const Printed printed = Call(command, options);
  EXPECT_EQ(printed.code, EXIT_SUCCESS) << printed.err;
  return Json::parse(FileText(options.sim.json_file));
}

ScaleOptions Scale(const std::string& family, const std::string& ranks,
                   const std::string& budgets) {
  ScaleOptions options;
  options.family = family;
  options.ranks_text = ranks;
  options.sim.budgets_text = budgets;
  return options;
}

TEST(ScaleCommand, WritesWhatItSays) {
  ScaleOptions options = Scale("all-to-all", "8:32:2", "0,4");
  options.sim.json_file = InOwnFolder("scale.json");
  options.sim.csv_file = InOwnFolder("scale.csv");
  const Printed printed = Call(RunScale, options);
  EXPECT_EQ(printed.code, EXIT_SUCCESS) << printed.err;
  EXPECT_THAT(printed.out, HasSubstr("network model ports (50 GB/s per port"));
  const Json json = Json::parse(FileText(options.sim.json_file));
  EXPECT_EQ(json["config"]["network"], "ports");
  ASSERT_EQ(json["results"].size(), 6u);
  for (const Json& row : json["results"]) {
    const int ranks = row["ranks"];
    const bool free = row["budget"] == 0;
    EXPECT_EQ(row["family"], "all-to-all-" + std::to_string(ranks));
    EXPECT_EQ(row["max_in_flight"], 2);
    EXPECT_EQ(row["buckets"], ranks * ranks);
    // One channel to and from each other rank, and the rank's own.
    EXPECT_EQ(row["channels_max"], 2 * ranks - 1);
    EXPECT_EQ(row["peak"]["max"], free ? 2 * ranks - 1 : 4);
    EXPECT_LE(row["peak"]["median"], row["peak"]["max"]);
    EXPECT_LE(row["peak"]["mean"], row["peak"]["max"]);
    // Within a node rows cross as they lie.
    EXPECT_EQ(row["peak"]["bytes_max"] > 0, ranks > 8);
    EXPECT_GE(row["ratio_to_link_bound"], 1.0);
    EXPECT_EQ(row["ratio_to_no_budget"] == 1.0, free);
    EXPECT_GT(row["time_us"]["median"], 0.0);
    EXPECT_EQ(row["stalled"], false);
    EXPECT_FALSE(row.contains("costs"));
  }
  const std::string csv = FileText(options.sim.csv_file);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 7);
}

TEST(ScaleCommand, EqualSeedsGiveEqualBytes) {
  ScaleOptions options = Scale("pp-ep-tp-dp", "16", "0,2");
  options.sim.start_skew_us = 50;
  const auto json_of = [&options](uint64_t seed) {
    options.sim.seed = seed;
    options.sim.json_file = InOwnFolder("seed.json");
    const Printed printed = Call(RunScale, options);
    EXPECT_EQ(printed.code, EXIT_SUCCESS) << printed.err;
    return printed.out + FileText(options.sim.json_file);
  };
  const std::string first = json_of(5);
  EXPECT_EQ(json_of(5), first);
  EXPECT_NE(json_of(6), first);
}

TEST(ScaleCommand, TellsWhatItCost) {
  ScaleOptions options = Scale("peers", "64", "8");
  options.of.peers = 9;
  options.sim.costs = true;
  const Json costs = Results(RunScale, options)["results"][0]["costs"];
  EXPECT_EQ(costs["distinct_plans"], 8);
  EXPECT_GT(costs["plan_bytes_per_rank"], 0);
}

TEST(ScaleCommand, RefusesWhatMakesNoSense) {
  const auto refused = [](const ScaleOptions& options, const std::string& why) {
    const Printed printed = Call(RunScale, options);
    EXPECT_EQ(printed.code, 2);
    EXPECT_THAT(printed.err, HasSubstr(why));
    EXPECT_EQ(printed.out, "");
  };
  refused(Scale("none", "16", "8"), "there is no family 'none'");
  refused(Scale("fsdp-tp", "16,24", "8"), "24 ranks; the family has powers of two");
  refused(Scale("peers", "16:4:2", "8"), "FROM at most TO");
  refused(Scale("peers", "16:64", "8"), "FROM:TO:FACTOR");
  refused(Scale("peers", "sixteen", "8"), "--ranks");
  refused(Scale("peers", "131073", "8"), "2 to 131072");
  refused(Scale("peers", "16", "-1"), "--budget-buckets");
  refused(Scale("peers", "16", "8;9"), "--budget-buckets");
  const auto refused_with = [&](auto change, const std::string& why) {
    ScaleOptions options = Scale("peers", "16", "8");
    change(&options);
    refused(options, why);
  };
  refused_with([](ScaleOptions* o) { o->sim.network_name = "tokenring"; },
               "there is no network model 'tokenring'");
  refused_with([](ScaleOptions* o) { o->sim.port_rate_gb = 0; }, "port_rate");
  refused_with([](ScaleOptions* o) { o->pair_bytes_text = "many"; }, "--pair-bytes");
  refused_with([](ScaleOptions* o) { o->sim.bucket_bytes_text = "4"; }, "--bucket-bytes");
  refused_with([](ScaleOptions* o) { o->sim.json_file = "/nowhere/out.json"; },
               "/nowhere/out.json");
}

TEST(PeakCommand, RunsAPresetWithItsBudgets) {
  PeakOptions options;
  options.workload.preset = "etha-1-no_partial";
  options.sim.budgets_text = "0,1,2,4,8";
  options.sim.network_name = "h100";
  const Json json = Results(RunPeak, options);
  EXPECT_EQ(json["config"]["network"], "h100");
  ASSERT_EQ(json["results"].size(), 5u);
  for (const Json& row : json["results"]) {
    EXPECT_EQ(row["family"], "etha-1-no_partial");
    EXPECT_EQ(row["ranks"], 16);
    if (row["budget"] > 0) {
      EXPECT_LE(row["peak"]["max"], row["budget"]);
    }
  }
}

// To eight replicas of another node.
TEST(PeakCommand, WithoutRelaysItTakesLonger) {
  const auto makespan = [](const std::string& plan) {
    PeakOptions options;
    options.workload.preset = "etha-3-no_partial";
    options.sim.budgets_text = "16";
    options.sim.network_name = "h100";
    options.sim.plan = plan;
    const Json json = Results(RunPeak, options);
    EXPECT_EQ(json["config"]["plan"], plan);
    return json["results"][0]["time_us"]["median"].get<double>();
  };
  EXPECT_GT(makespan("naive"), 2 * makespan("relay"));
}

TEST(PeakCommand, WithoutJoiningEachChunkIsABucket) {
  const auto row = [](bool no_coalesce, const std::string& budget) {
    PeakOptions options;
    options.workload.inline_flags.shape = "64,64";
    options.workload.inline_flags.src = "4:S(0)";
    options.workload.inline_flags.dst = "4@4-7:S(1)";
    options.workload.tensors = 20;
    options.sim.budgets_text = budget;
    options.sim.no_coalesce = no_coalesce;
    options.sim.json_file = InOwnFolder("apart.json");
    const Printed printed = Call(RunPeak, options);
    EXPECT_EQ(printed.code, EXIT_SUCCESS) << printed.err;
    EXPECT_EQ(printed.out.find("each chunk a bucket") != std::string::npos, no_coalesce);
    const Json json = Json::parse(FileText(options.sim.json_file));
    EXPECT_EQ(json["config"]["coalesce"], !no_coalesce);
    return json["results"][0];
  };
  for (const char* budget : {"0", "1", "8"}) {
    const Json joined = row(false, budget);
    const Json apart = row(true, budget);
    EXPECT_EQ(joined["buckets"], 16);
    EXPECT_EQ(apart["buckets"], 16 * 20);
    EXPECT_EQ(joined["payload_bytes"], apart["payload_bytes"]);
    EXPECT_GT(apart["time_us"]["median"], joined["time_us"]["median"]);
  }
}

TEST(ScaleCommand, WithoutJoiningThereAreAsManyBytesInMoreBuckets) {
  const auto row = [](bool no_coalesce) {
    ScaleOptions options = Scale("pp-ep-tp-dp", "16", "8");
    options.sim.no_coalesce = no_coalesce;
    return Results(RunScale, options)["results"][0];
  };
  EXPECT_GT(row(true)["buckets"], row(false)["buckets"]);
  EXPECT_EQ(row(true)["payload_bytes"], row(false)["payload_bytes"]);
}

TEST(PeakCommand, ReplicasOfASystemAreCasesOfOneRun) {
  PeakOptions options;
  options.workload.model_file = InOwnFolder("model.json");
  options.workload.system_file = InOwnFolder("system.json");
  std::ofstream(options.workload.model_file)
      << R"({"model.layers.0.q_proj.weight": {"shape": [64, 64], "dtype": "BF16"}})";
  std::ofstream(options.workload.system_file) << R"({"train": {"num_gpus": 2, "fsdp_size": 2},
             "generation": {"num_gpus": 2, "tp_size": 2}})";
  options.workload.replicas = "1,4";
  options.sim.budgets_text = "0,8";
  const Json json = Results(RunPeak, options);
  EXPECT_EQ(json["config"]["replicas"], "1,4");
  ASSERT_EQ(json["results"].size(), 4u);
  EXPECT_EQ(json["results"][0]["family"], "model/system/x1");
  EXPECT_EQ(json["results"][0]["ranks"], 4);
  EXPECT_EQ(json["results"][3]["family"], "model/system/x4");
  EXPECT_EQ(json["results"][3]["ranks"], 16);
  EXPECT_EQ(json["results"][3]["payload_bytes"], 4 * 64 * 64 * 2);
  for (const char* wrong : {"0", "1,x", "200000"}) {
    options.workload.replicas = wrong;
    const Printed refused = Call(RunPeak, options);
    EXPECT_EQ(refused.code, 2) << wrong;
    EXPECT_THAT(refused.err, HasSubstr("--replicas"));
  }
}

TEST(PeakCommand, ZeroIsAutomatic) {
  PeakOptions options;
  options.workload.preset = "etha-1-no_partial";
  options.sim.budgets_text = "0,4";
  options.sim.bucket_bytes_text = "0";
  options.sim.max_in_flight = 0;
  const Json json = Results(RunPeak, options);
  EXPECT_EQ(json["config"]["bucket_bytes"], 0);
  ASSERT_EQ(json["results"].size(), 2u);
  for (const Json& row : json["results"]) {
    EXPECT_GE(row["bucket_bytes"], 256 << 10);
    EXPECT_GE(row["max_in_flight"], 1);
  }
}

TEST(PeakCommand, RefusesWhatMakesNoSense) {
  PeakOptions options;
  options.sim.budgets_text = "8";
  EXPECT_EQ(Call(RunPeak, options).code, 2);
  options.workload.cases_file = InOwnFolder("cases.json");
  std::ofstream(options.workload.cases_file) << R"json({"id": "wrong", "shape": [4],
                 "source": {"mesh": [2], "ranks": [0, 0], "placements": ["S(0)"]},
                 "target": {"mesh": [1], "ranks": [1], "placements": ["R"]}})json";
  const Printed printed = Call(RunPeak, options);
  EXPECT_EQ(printed.code, 2);
  EXPECT_THAT(printed.err, HasSubstr("case \"wrong\""));
}

TEST(ParseRankCounts, ReadsListsAndSweeps) {
  EXPECT_THAT(*ParseRankCounts("16:300:4"), ElementsAre(16, 64, 256));
  EXPECT_THAT(*ParseRankCounts("3,100,7"), ElementsAre(3, 100, 7));
  EXPECT_FALSE(ParseRankCounts("").ok());
  EXPECT_FALSE(ParseRankCounts("1:2:1").ok());
}

}  // namespace
}  // namespace sluice::bench
