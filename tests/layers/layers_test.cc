// The whole repository under its rules, and the rules under bad input.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "layers/rules.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Files of the repository's own folders, from its root.
std::vector<std::string> Files() {
  const std::filesystem::path root = SLUICE_SOURCE_DIR;
  std::vector<std::string> files = {"CMakeLists.txt"};
  for (const char* folder :
       {"include", "src", "tests", "mpi_tests", "bench", "examples", "scripts", "cmake"}) {
    if (!std::filesystem::exists(root / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file()) continue;
      files.push_back(std::filesystem::relative(entry.path(), root).generic_string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(LayersTest, EveryFileKeepsTheRules) {
  const std::vector<std::string> files = Files();
  EXPECT_GT(files.size(), 50u);  // or this looks in the wrong place
  for (const std::string& file : files) {
    for (const std::string& complaint :
         Complaints(file, Read(std::filesystem::path(SLUICE_SOURCE_DIR) / file))) {
      ADD_FAILURE() << complaint;
    }
  }
}

// Complaints about one include in a source file.
std::vector<std::string> AboutInclude(std::string_view path, std::string_view include) {
  return Complaints(path, "// A file.\n#include " + std::string(include) + "\n");
}

TEST(RulesTest, LayersIncludeWhatIsBelowThem) {
  EXPECT_THAT(AboutInclude("src/mesh/a.cc", "\"tensor/run.h\""), IsEmpty());
  EXPECT_THAT(AboutInclude("src/plan/a.cc", "\"mesh/axis.h\""), IsEmpty());
  EXPECT_THAT(AboutInclude("src/engine/a.cc", "\"tensor/check.h\""), IsEmpty());
  EXPECT_THAT(AboutInclude("src/transport/a.cc", "\"plan/bucket.h\""), IsEmpty());
  EXPECT_THAT(AboutInclude("src/transport/mpi_a.cc", "<mpi.h>"), IsEmpty());
  EXPECT_THAT(AboutInclude("src/session/a.cc", "\"engine/engine.h\""), IsEmpty());
  EXPECT_THAT(AboutInclude("src/session/a.cc", "<chrono>"), IsEmpty());
  EXPECT_THAT(AboutInclude("tests/session/a.cc", "\"session/runner.h\""), IsEmpty());
}

TEST(RulesTest, LayersIncludeNothingElse) {
  EXPECT_THAT(AboutInclude("src/tensor/a.cc", "\"mesh/axis.h\""),
              ElementsAre("src/tensor/a.cc:2: tensor may not include mesh/axis.h"));
  EXPECT_THAT(AboutInclude("src/engine/a.cc", "\"device/device.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/engine/a.cc", "\"tensor/run.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/plan/a.cc", "\"engine/engine.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/device/a.cc", "\"transport/transport.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/transport/a.cc", "\"plan/plan.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/transport/a.cc", "\"session/runner.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/unknown/a.cc", "\"tensor/run.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/tensor/a.cc", "\"gtest/gtest.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("include/sluice/mpi.h", "\"tensor/run.h\""),
              Contains(HasSubstr("a private one: tensor/run.h")));
}

TEST(RulesTest, WhatDecidesKnowsNoClockThreadOrVendor) {
  for (const char* layer : {"tensor", "mesh", "plan", "engine"}) {
    const std::string path = std::string("src/") + layer + "/a.cc";
    for (const char* include : {"<thread>", "<mutex>", "<chrono>", "<atomic>", "<mpi.h>",
                                "\"absl/time/clock.h\"", "\"absl/synchronization/mutex.h\"",
                                "\"sluice/session.h\"", "\"sluice/mpi.h\"", "<unistd.h>"}) {
      EXPECT_EQ(AboutInclude(path, include).size(), 1u) << path << " " << include;
    }
  }
}

TEST(RulesTest, VendorsStayInTheirFiles) {
  EXPECT_THAT(AboutInclude("src/transport/loopback.cc", "<mpi.h>"), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/session/a.cc", "\"sluice/mpi.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/device/host_device.cc", "<cuda_runtime.h>"), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/device/cuda_device.cc", "<cuda_runtime.h>"), IsEmpty());
  EXPECT_THAT(AboutInclude("src/transport/cuda_ipc_handles.cc", "<cuda_runtime.h>"), IsEmpty());
  EXPECT_THAT(AboutInclude("src/transport/nccl_group.cc", "<cuda_runtime.h>"), IsEmpty());
  EXPECT_THAT(AboutInclude("src/transport/cuda_ipc_handles.cc", "<nccl.h>"), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("tests/device/cuda_device_test.cc", "<cuda_runtime.h>"), IsEmpty());
  EXPECT_THAT(AboutInclude("tests/fakes/fake_nccl_call.cc", "\"nccl.h\""), IsEmpty());
  EXPECT_THAT(AboutInclude("tests/session/world.cc", "<cuda_runtime.h>"), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("bench/run.cc", "<nccl.h>"), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("include/sluice/session.h", "<mpi.h>"),
              Contains(HasSubstr("a vendor's header")));
}

TEST(RulesTest, FilesSayWhatTheyAreFor) {
  EXPECT_THAT(Complaints("src/plan/a.cc", "#include <vector>\n"), Not(IsEmpty()));
  EXPECT_THAT(Complaints("src/plan/a.cc", ""), Not(IsEmpty()));
  EXPECT_THAT(Complaints("scripts/a.sh", "#!/bin/sh\nset -eu\n"), Not(IsEmpty()));
  EXPECT_THAT(Complaints("scripts/a.sh", "#!/bin/sh\n# Says hello.\necho hello\n"), IsEmpty());
  EXPECT_THAT(Complaints("README.md", "\tanything\n"), IsEmpty());
}

TEST(RulesTest, LinesLookAlike) {
  const auto line = [](const std::string& text) {
    return Complaints("src/plan/a.cc", "// A file.\n" + text + "\n");
  };
  EXPECT_THAT(line(std::string(100, 'x')), IsEmpty());
  EXPECT_THAT(line(std::string(101, 'x')), ElementsAre(HasSubstr("a.cc:2: longer")));
  EXPECT_THAT(line("\tint x;"), ElementsAre(HasSubstr("a tab")));
  EXPECT_THAT(line("int x; "), ElementsAre(HasSubstr("blanks")));
  EXPECT_THAT(line(std::string("// TO") + "DO: later"), ElementsAre(HasSubstr("unfinished")));
  EXPECT_THAT(line(std::string("// FIX") + "ME"), ElementsAre(HasSubstr("unfinished")));
}

TEST(RulesTest, GuardsFollowPaths) {
  EXPECT_EQ(GuardOf("include/sluice/mpi.h"), "SLUICE_MPI_H_");
  EXPECT_EQ(GuardOf("src/plan/bucket.h"), "SLUICE_SRC_PLAN_BUCKET_H_");
  const auto header = [](const std::string& guard) {
    return "// A header.\n#ifndef " + guard + "\n#define " + guard + "\n\n#endif  // " + guard +
           "\n";
  };
  EXPECT_THAT(Complaints("src/plan/a.h", header("SLUICE_SRC_PLAN_A_H_")), IsEmpty());
  EXPECT_THAT(Complaints("src/plan/a.h", header("PLAN_A_H_")),
              ElementsAre(HasSubstr("guard is not SLUICE_SRC_PLAN_A_H_")));
  EXPECT_THAT(Complaints("src/plan/a.h", "// A header.\n#pragma once\n"), Not(IsEmpty()));
}

}  // namespace
}  // namespace sluice
