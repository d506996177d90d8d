// Flags that several commands have, as they are typed.
#include "job/flags.h"

#include <CLI/CLI.hpp>
#include <string>

#include "gmock/gmock.h"
#include "job/help.h"

namespace sluice::bench {
namespace {

using ::testing::HasSubstr;

struct Parsed {
  bool fold = false;
  bool hedge = false;
  Check check = Check::kAll;
  double timeout_s = 30;
  int slots = 7;
  std::string error;
};

Parsed Parse(const std::string& flags) {
  Parsed parsed;
  CLI::App app;
  AddSwitch(&app, "--fold", &parsed.fold, "");
  AddSwitch(&app, "--hedge", &parsed.hedge, "");
  AddCheck(
      &app, "--check", [&parsed](Check check) { parsed.check = check; }, "");
  AddSeconds(&app, "--timeout-s", &parsed.timeout_s, "");
  OrAuto(app.add_option("--slots", parsed.slots)->check(CLI::Range(0, 9)));
  try {
    app.parse(flags);
  } catch (const CLI::ParseError& error) {
    parsed.error = error.what();
  }
  return parsed;
}

TEST(Flags, ASwitchStandsAloneOrTakesANumber) {
  const struct {
    const char* flags;
    bool fold;
    bool hedge;
  } kCases[] = {
      {"", false, false},
      {"--fold --hedge", true, true},
      {"--hedge --fold", true, true},
      {"--fold 1 --hedge 1", true, true},
      {"--fold=1 --hedge=1", true, true},
      {"--fold 0 --hedge 0", false, false},
      {"--fold=0 --hedge --slots 3", false, true},
  };
  for (const auto& expected : kCases) {
    const Parsed parsed = Parse(expected.flags);
    EXPECT_EQ(parsed.error, "") << expected.flags;
    EXPECT_EQ(parsed.fold, expected.fold) << expected.flags;
    EXPECT_EQ(parsed.hedge, expected.hedge) << expected.flags;
  }
  EXPECT_THAT(Parse("--hedge 2").error, HasSubstr("--hedge: \"2\""));
  EXPECT_THAT(Parse("--fold maybe").error, HasSubstr("--fold: \"maybe\""));
}

TEST(Flags, ACheckHasNamesAndTheNumbersOfOld) {
  EXPECT_EQ(Parse("--check none").check, Check::kNone);
  EXPECT_EQ(Parse("--check 0").check, Check::kNone);
  EXPECT_EQ(Parse("--check sample").check, Check::kSample);
  EXPECT_EQ(Parse("--check none --timeout-s 1").check, Check::kNone);
  for (const char* all : {"", "--check all", "--check 1", "--check full"}) {
    EXPECT_EQ(Parse(all).check, Check::kAll) << all;
  }
  EXPECT_THAT(Parse("--check 2").error, HasSubstr("--check: \"2\""));
  EXPECT_NE(Parse("--check").error, "");
}

TEST(Flags, SecondsMayHaveAFraction) {
  EXPECT_EQ(Parse("--timeout-s 2.5").timeout_s, 2.5);
  EXPECT_EQ(Parse("--timeout-s 2147483647").timeout_s, 2147483647);
  for (const char* wrong : {"0", "-1", "nan", "inf", "soon"}) {
    EXPECT_THAT(Parse(std::string("--timeout-s=") + wrong).error, HasSubstr("--timeout-s"))
        << wrong;
  }
}

TEST(Flags, AutomaticIsANumberToo) {
  EXPECT_EQ(Parse("--slots auto").slots, 0);
  EXPECT_EQ(Parse("--slots 9").slots, 9);
  EXPECT_NE(Parse("--slots 10").error, "");
  EXPECT_NE(Parse("--slots automatic").error, "");
}

// What is said of `flags` that cannot be read.
std::string SaidOf(const std::string& flags) {
  CLI::App app("", "program");
  CLI::App* command = app.add_subcommand("move");
  std::string dtype;
  command->add_option("-d,--dtype", dtype);
  command->add_option("--timeout-s", dtype);
  try {
    app.parse(flags);
  } catch (const CLI::ParseError& error) {
    return std::string(FlagsStatus(app, error).message());
  }
  return "";
}

TEST(Flags, AnUnknownOneIsNamedWithTheOneThatWasMeant) {
  EXPECT_EQ(SaidOf("move --dtpe=float -c 1"),
            "there is no flag --dtpe; did you mean --dtype? See program move --help");
  EXPECT_EQ(SaidOf("move --timeout 3"),
            "there is no flag --timeout; did you mean --timeout-s? See program move --help");
  EXPECT_EQ(SaidOf("move -c 1 -q 2"), "there is no flag -c; see program move --help");
  EXPECT_EQ(SaidOf("move --tmeout 3"),
            "there is no flag --tmeout; did you mean --timeout-s? See program move --help");
  EXPECT_EQ(SaidOf("move --whatever"), "there is no flag --whatever; see program move --help");
  EXPECT_EQ(SaidOf("move up"), "\"up\" is of no flag; see program move --help");
  EXPECT_EQ(SaidOf("move -d f32"), "");
}

}  // namespace
}  // namespace sluice::bench
