// What all tables and results have in common.
#include "report/report.h"

#include "gmock/gmock.h"
#include "report/progress_bar.h"
#include "report/spread.h"

namespace sluice::bench {
namespace {

using ::testing::HasSubstr;

TEST(Report, AMedianLiesBetweenItsQuartiles) {
  // Rounds whose ratios are 8, 0.5 and 1, while the medians' is 4.
  const TimeRatio ratio = RatioOf({8, 4, 1}, {1, 8, 1});
  EXPECT_EQ(ratio.median, 1);
  EXPECT_LE(ratio.p25, ratio.median);
  EXPECT_GE(ratio.p75, ratio.median);
  EXPECT_EQ(RatioOf({1}, {0}).median, 0);
}

TEST(Report, OptionsAreThoseThatDiffer) {
  const FlagConfig usual = {{"iters", 10}, {"plan", "relay"}, {"budget", 16}};
  const FlagConfig given = {{"iters", 3}, {"plan", "naive"}, {"budget", 16}};
  EXPECT_EQ(OptionLines({"transport=tcp"}, given, usual), "# transport=tcp iters=3 plan=naive\n");
  EXPECT_EQ(OptionLines({}, usual, usual), "");
  const std::string wide(60, 'x');
  EXPECT_EQ(OptionLines({wide, wide}, usual, usual), "# " + wide + "\n# " + wide + "\n");
}

TEST(Report, ALongCaseStandsAboveItsRow) {
  EXPECT_EQ(RowOfCase(" 1 2\n", "case"), " 1 2  case\n");
  const std::string name(98, 'n');
  EXPECT_EQ(RowOfCase(" 1 2\n", name), "# " + name + "\n 1 2\n");
}

TEST(Report, BudgetsAreComparedInWords) {
  EXPECT_EQ(BudgetWords({{0, 904, 888 << 20, 400}, {8, 8, 45 << 20, 640}}),
            "Without a budget the busiest rank needs 904 buckets and 888 MiB at once.\n"
            "With a budget of 8 it needs 8 buckets and 45 MiB at once, and 1.60 times the time.\n");
  EXPECT_EQ(BudgetWords({{0, 7, 0, 1}}),
            "Without a budget the busiest rank needs 7 buckets at once.\n");
  EXPECT_EQ(BudgetWords({}), "");
}

struct Row {
  int64_t peak;
  int64_t limit;
  double us;
};

TEST(Columns, CellsHaveTheirUnits) {
  const Columns<Row> columns = {
      {"peak", &Row::peak, {.head = "staging", .width = 20, .unit_of_cell = Unit::kBytes}},
      {"limit", &Row::limit, kLimit},
      {"us", &Row::us, {.head = "time", .width = 9, .unit_of_cell = Unit::kMicroseconds}}};
  EXPECT_THAT(columns.TableRow({12 << 10, 136 << 20, 45.34}),
              HasSubstr(" 12 KiB of 136 MiB   45.3 us\n"));
  EXPECT_THAT(columns.TableRow({0, 0, 1.3e6}), HasSubstr("0 B    1.30 s\n"));
  EXPECT_EQ(columns.ToJson({1, 2, 3}).dump(), R"({"peak":1,"limit":2,"us":3.0})");
}

TEST(ProgressBar, CanBeAskedForByAnyRankAndEndsAtOnce) {
  const std::atomic<int64_t> total{8}, done{3};
  for (const bool shown : {false, true}) {
    ProgressBar bar(shown);
    bar.Begin("case", 4, "runs");
    bar.Advance(2);
    bar.Clear();
    bar.Begin("load", 0, "");
    bar.Follow(&total, &done);
  }
}

}  // namespace
}  // namespace sluice::bench
