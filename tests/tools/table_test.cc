// Findings as text of a screen's width, and as JSON.
#include "doctor/table.h"

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "doctor/findings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/job_facts.h"

namespace sluice::bench {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

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
