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
  for (const char* folder : {"include", "src", "python/src", "tests", "mpi_tests", "bench", "tools",
                             "examples", "scripts", "cmake"}) {
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
  EXPECT_THAT(AboutInclude("src/mesh/a.cc", "\"tensor/stretch.h\""), IsEmpty());
  EXPECT_THAT(AboutInclude("src/plan/a.cc", "\"mesh/axis.h\""), IsEmpty());
  EXPECT_THAT(AboutInclude("src/engine/a.cc", "\"tensor/check.h\""), IsEmpty());
  EXPECT_THAT(AboutInclude("src/trace/a.cc", "\"plan/bucket.h\""), IsEmpty());
  EXPECT_THAT(AboutInclude("src/transport/mpi/a.cc", "<mpi.h>"), IsEmpty());
  EXPECT_THAT(AboutInclude("src/session/transfer/a.cc", "\"engine/engine.h\""), IsEmpty());
  EXPECT_THAT(AboutInclude("src/session/a.cc", "<chrono>"), IsEmpty());
  EXPECT_THAT(AboutInclude("tests/session/a.cc", "\"session/transfer/runner.h\""), IsEmpty());
}

TEST(RulesTest, LayersIncludeNothingElse) {
  EXPECT_THAT(AboutInclude("src/tensor/a.cc", "\"mesh/axis.h\""),
              ElementsAre("src/tensor/a.cc:2: tensor may not include mesh/axis.h"));
  EXPECT_THAT(AboutInclude("src/engine/a.cc", "\"device/device.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/engine/a.cc", "\"tensor/stretch.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/plan/a.cc", "\"engine/engine.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/device/a.cc", "\"transport/op_check.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/transport/a.cc", "\"plan/plan.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/transport/a.cc", "\"session/transfer/runner.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/unknown/a.cc", "\"tensor/stretch.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/tensor/a.cc", "\"gtest/gtest.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("include/sluice/mpi.h", "\"tensor/stretch.h\""),
              Contains(HasSubstr("a private one: tensor/stretch.h")));
}

TEST(RulesTest, FoldersBelowALayerAreLayersOfTheirOwn) {
  EXPECT_THAT(AboutInclude("src/plan/a.cc", "\"plan/shard/cursor.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/plan/shard/a.cc", "\"plan/plan.h\""), IsEmpty());
  EXPECT_THAT(AboutInclude("src/device/a.cc", "\"device/cuda/cuda_device.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/storage/a.cc", "\"storage/file/file_source.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/storage/http/a.cc", "\"storage/file/file_source.h\""),
              Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/transport/mpi/a.cc", "\"transport/op_check.h\""), IsEmpty());
  EXPECT_THAT(AboutInclude("src/transport/mpi/a.cc", "\"transport/direct/direct_work.h\""),
              Not(IsEmpty()));
}

TEST(RulesTest, MachinesOfASessionDoNotKnowEachOther) {
  for (const char* other : {"transfer/runner.h", "checkpoint/checkpoint_work.h"}) {
    const std::string header = std::string("session/") + other;
    EXPECT_THAT(AboutInclude("src/session/stream/a.cc", "\"" + header + "\""),
                ElementsAre("src/session/stream/a.cc:2: session/stream may not include " + header));
  }
  EXPECT_THAT(AboutInclude("src/session/checkpoint/a.cc", "\"session/stream/stream_work.h\""),
              Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/session/transfer/a.cc", "\"session/shard/read_desk.h\""),
              Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/session/shard/a.cc", "\"session/stream/delivery.h\""),
              Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/session/base/a.cc", "\"session/peers/watch.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/session/base/a.cc", "\"session/session_impl.h\""), Not(IsEmpty()));
}

TEST(RulesTest, BenchmarkCommandsDoNotKnowEachOther) {
  EXPECT_THAT(AboutInclude("bench/stream/a.cc", "\"reshard/options.h\""),
              ElementsAre("bench/stream/a.cc:2: another command's header: reshard/options.h"));
  EXPECT_THAT(AboutInclude("bench/stream/baselines/a.cc", "\"shards/shards.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("bench/job/a.cc", "\"checkpoint/report.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("tools/doctor/a.cc", "\"stream/options.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("tools/doctor/a.cc", "\"doctor/options.h\""), IsEmpty());
  EXPECT_THAT(AboutInclude("bench/stream/baselines/a.cc", "\"stream/options.h\""), IsEmpty());
  EXPECT_THAT(AboutInclude("bench/stream/a.cc", "\"job/command.h\""), IsEmpty());
  EXPECT_THAT(AboutInclude("bench/sluice_bench.cc", "\"stream/stream.h\""), IsEmpty());
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

TEST(RulesTest, TheLibraryDoesNotWaitByTheWallClock) {
  const std::string text = "// A file.\nconst absl::Time start = absl::Now();\n";
  EXPECT_THAT(Complaints("src/session/a.cc", text), ElementsAre(HasSubstr("may step")));
  EXPECT_THAT(Complaints("python/src/a.cc", text), ElementsAre(HasSubstr("may step")));
  EXPECT_THAT(Complaints("bench/sync/a.cc", text), IsEmpty());
}

TEST(RulesTest, VendorsStayInTheirFiles) {
  EXPECT_THAT(AboutInclude("src/transport/loopback/loopback.cc", "<mpi.h>"), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/session/a.cc", "\"sluice/mpi.h\""), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/device/host_device.cc", "<cuda_runtime.h>"), Not(IsEmpty()));
  EXPECT_THAT(AboutInclude("src/device/cuda/cuda_device.cc", "<cuda_runtime.h>"), IsEmpty());
  EXPECT_THAT(AboutInclude("src/transport/cuda_ipc/cuda_ipc_handles.cc", "<cuda_runtime.h>"),
              IsEmpty());
  EXPECT_THAT(AboutInclude("src/transport/nccl/group.cc", "<cuda_runtime.h>"), IsEmpty());
  EXPECT_THAT(AboutInclude("src/transport/cuda_ipc/cuda_ipc_handles.cc", "<nccl.h>"),
              Not(IsEmpty()));
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

TEST(RulesTest, SentencesOfTheLibraryBeginWithANounOrAVerb) {
  const auto refused = ElementsAre(HasSubstr("noun or a verb"));
  EXPECT_THAT(Complaints("src/plan/a.cc", "// What can be planned.\n"), refused);
  for (const char* text : {"// Who reads it.\n", "// A file. Whoever reads it knows.\n",
                           "// A file (`a`).\n// Of a.\n", "// A file\n//\n// Where it lies.\n",
                           "// A file.\nint a;  // those\n  // Those of a.\n"}) {
    for (const char* path : {"include/sluice/a.cc", "src/mesh/a.cc", "python/src/a.cc"}) {
      EXPECT_THAT(Complaints(path, text), refused) << path << ": " << text;
    }
    EXPECT_THAT(Complaints("tests/a.cc", text), IsEmpty()) << text;
  }
  for (const char* text : {"// Validates specs.\n", "// A list\n// Of Things.\n",
                           "// A file. Who\n// is it? Nobody.\n"}) {
    EXPECT_THAT(Complaints("src/mesh/a.cc", text), IsEmpty()) << text;
  }
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
