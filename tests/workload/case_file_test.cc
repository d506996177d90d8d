// Cases from files and from the command line.
#include "workload/case_file.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "workload/collectives.h"
#include "workload/inline_case.h"

namespace sluice::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kBare[] = R"json({"id": "a", "shape": [32, 24], "dtype": "f16",
  "source": {"mesh": [2, 2], "ranks": [0, 1, 2, 3], "placements": ["R", "S(0)"]},
  "target": {"mesh": [4], "ranks": [7, 6, 5, 4], "placements": ["SS(1,2)"]}})json";

// kBare with one piece of text replaced.
std::string With(const char* piece, const char* replacement) {
  std::string text = absl::StrReplaceAll(kBare, {{piece, replacement}});
  EXPECT_NE(text, kBare) << piece;
  return text;
}

TEST(CaseFile, ReadsABareCase) {
  const auto workload = ParseCaseFile(kBare).value();
  ASSERT_EQ(workload.cases.size(), 1u);
  const Case& entry = workload.cases[0];
  ASSERT_TRUE(entry.status.ok()) << entry.status;
  EXPECT_EQ(entry.id, "a");
  ASSERT_EQ(entry.spec.tensors.size(), 1u);
  const TensorTransfer& tensor = entry.spec.tensors[0];
  EXPECT_THAT(tensor.shape, ElementsAre(32, 24));
  EXPECT_EQ(tensor.src_dtype, DType::kF16);
  EXPECT_EQ(tensor.dst_dtype, DType::kF16);
  EXPECT_THAT(tensor.src.placements, ElementsAre(Placement::Replicate(), Placement::Shard(0)));
  EXPECT_THAT(tensor.dst.mesh.ranks(), ElementsAre(7, 6, 5, 4));
  EXPECT_THAT(tensor.dst.placements, ElementsAre(Placement::StridedShard(1, 2)));
  EXPECT_THAT(workload.notes, ElementsAre());
}

TEST(CaseFile, ReadsAnOrder) {
  const auto workload = ParseCaseFile(With("\"S(0)\"]", "\"S(0)\"], \"order\": [1, 0]"));
  ASSERT_TRUE(workload->cases[0].status.ok()) << workload->cases[0].status;
  EXPECT_THAT(workload->cases[0].spec.tensors[0].src.order, ElementsAre(1, 0));
  EXPECT_THAT(workload->cases[0].spec.tensors[0].dst.order, ElementsAre());
  EXPECT_THAT(workload->notes, ElementsAre());
}

std::string WithBoxes(const std::string& boxes) {
  return absl::StrCat(R"({"shape": [8, 4], "source": {"boxes": )", boxes,
                      R"(}, "target": {"mesh": [1], "ranks": [2], "placements": ["R"]}})");
}

TEST(CaseFile, ReadsBoxes) {
  const auto workload = ParseCaseFile(WithBoxes(
      R"([{"rank": 3, "parts": [{"offset": [4, 0], "shape": [4, 4]}]},
          {"rank": 0, "parts": [{"offset": [0, 2], "shape": [4, 2]},
                                {"offset": [0, 0], "shape": [4, 2]}]}])"));
  ASSERT_TRUE(workload->cases[0].status.ok()) << workload->cases[0].status;
  const BoxList& boxes = workload->cases[0].spec.tensors[0].src.boxes;
  ASSERT_EQ(boxes.ranks().size(), 2u);
  EXPECT_EQ(boxes.Of(3)[0], (Box{{4, 0}, {4, 4}}));
  ASSERT_EQ(boxes.Of(0).size(), 2u);
  EXPECT_EQ(boxes.Of(0)[0], (Box{{0, 2}, {4, 2}})) << "in the order of the file";
  EXPECT_THAT(workload->notes, ElementsAre());
}

TEST(CaseFile, SaysWhatIsWrongWithBoxes) {
  const auto status_of = [](const std::string& boxes) {
    return std::string(ParseCaseFile(WithBoxes(boxes))->cases[0].status.message());
  };
  EXPECT_THAT(status_of("3"), HasSubstr("must be a list"));
  EXPECT_THAT(status_of("[]"), HasSubstr("at least one rank"));
  EXPECT_THAT(status_of("[4]"), HasSubstr("must be an object"));
  EXPECT_THAT(status_of(R"([{"parts": []}])"), HasSubstr("rank"));
  EXPECT_THAT(status_of(R"([{"rank": -1, "parts": []}])"), HasSubstr("there is no rank -1"));
  EXPECT_THAT(status_of(R"([{"rank": 1}])"), HasSubstr("\"parts\" must be a list"));
  EXPECT_THAT(status_of(R"([{"rank": 1, "parts": []}])"), HasSubstr("has no boxes"));
  EXPECT_THAT(status_of(R"([{"rank": 1, "parts": [{"offset": [0, 0], "shape": [9, 1]}]}])"),
              HasSubstr("does not lie in a tensor"));
  EXPECT_THAT(status_of(R"([{"rank": 1, "parts": [{"offset": [0, 0], "shape": [2, 2]},
                                                  {"offset": [1, 1], "shape": [2, 2]}]}])"),
              HasSubstr("overlap"));
  EXPECT_THAT(status_of(R"([{"rank": 1, "parts": [{"offset": [0, 0], "shape": [2, 2]}]}],
                           "mesh": [1])"),
              HasSubstr("which of them is meant?"));
}

TEST(CaseFile, ReadsAListAndKeepsBadCasesWithTheirIds) {
  const std::string bad = absl::StrReplaceAll(kBare, {{"\"a\"", "\"b\""}, {"\"f16\"", "\"f17\""}});
  const auto workload = ParseCaseFile(absl::StrCat("{\"cases\": [", kBare, ",", bad, "]}")).value();
  ASSERT_EQ(workload.cases.size(), 2u);
  EXPECT_TRUE(workload.cases[0].status.ok());
  EXPECT_EQ(workload.cases[1].id, "b");
  EXPECT_THAT(workload.cases[1].status.message(), HasSubstr("dtype"));
  EXPECT_THAT(workload.cases[1].status.message(), HasSubstr("f17"));
}

TEST(CaseFile, DTypeDefaultsToF32AndASidesOwnGoesFirst) {
  auto workload = ParseCaseFile(With("\"dtype\": \"f16\",", ""));
  EXPECT_EQ(workload->cases[0].spec.tensors[0].src_dtype, DType::kF32);
  workload = ParseCaseFile(With("\"mesh\": [4]", "\"dtype\": \"i64\", \"mesh\": [4]"));
  EXPECT_EQ(workload->cases[0].spec.tensors[0].src_dtype, DType::kF16);
  EXPECT_EQ(workload->cases[0].spec.tensors[0].dst_dtype, DType::kI64);
}

TEST(CaseFile, NotesUnknownKeys) {
  auto workload = ParseCaseFile(With("\"id\": \"a\"", "\"id\": \"a\", \"tags\": [1]"));
  ASSERT_TRUE(workload->cases[0].status.ok());
  EXPECT_THAT(workload->notes, ElementsAre(AllOf(HasSubstr("\"a\""), HasSubstr("\"tags\""))));
  workload = ParseCaseFile(With("\"mesh\": [4]", "\"mesh\": [4], \"color\": 0"));
  EXPECT_THAT(workload->notes, ElementsAre(AllOf(HasSubstr("target"), HasSubstr("color"))));
}

TEST(CaseFile, WrongCasesNameTheKey) {
  const struct {
    const char* piece;
    const char* replacement;
    const char* named;
  } kWrong[] = {
      {"\"shape\": [32, 24],", "", "\"shape\" is missing"},
      {"[32, 24]", "\"32,24\"", "\"shape\""},
      {"[32, 24]", "[32, 2.5]", "\"shape\""},
      {"[32, 24]", "[32, 1e30]", "\"shape\""},
      {"[32, 24]", "[32, 9223372036854775808]", "\"shape\""},
      {"[32, 24]", "[9223372036854775807, 24]", "overflow"},
      {"[32, 24]", "[-1, 24]", "negative"},
      {"[32, 24]", "[]", "dimensions"},
      {"\"f16\"", "16", "\"dtype\""},
      {"\"a\"", "7", "\"id\""},
      {"\"source\"", "\"sauce\"", "\"source\" is missing"},
      {"[2, 2]", "[2, 3]", "\"source\""},
      {"[0, 1, 2, 3]", "[0, 1, 2, 2]", "\"source\""},
      {"[0, 1, 2, 3]", "[0, 1, 2, -3]", "-3"},
      {"[0, 1, 2, 3]", "[0, 1, 2, 4294967296]", "4294967296"},
      {"\"R\", \"S(0)\"", "\"R\"", "\"source\""},
      {"\"S(0)\"", "\"S(2)\"", "\"source\""},
      {"\"S(0)\"", "\"S[0]\"", "S[0]"},
      {"\"SS(1,2)\"", "\"SS(1,0)\"", "\"target\""},
      {"[\"SS(1,2)\"]", "\"SS(1,2)\"", "\"placements\""},
      {"\"S(0)\"]", "\"S(0)\"], \"order\": [1, 1]", "does not visit each"},
      {"\"S(0)\"]", "\"S(0)\"], \"order\": [1]", "does not visit each"},
      {"\"S(0)\"]", "\"S(0)\"], \"order\": [2, 0]", "there is no mesh dimension 2"},
      {"\"S(0)\"]", "\"S(0)\"], \"order\": \"1,0\"", "\"order\""},
  };
  for (const auto& wrong : kWrong) {
    const auto workload = ParseCaseFile(With(wrong.piece, wrong.replacement));
    ASSERT_TRUE(workload.ok()) << wrong.replacement << workload.status();
    const Case& entry = workload->cases[0];
    EXPECT_THAT(entry.status.message(), HasSubstr(wrong.named)) << wrong.replacement;
    EXPECT_TRUE(entry.spec.tensors.empty()) << wrong.replacement;
  }
}

TEST(CaseFile, RefusesWhatIsNoCaseFile) {
  const std::string twice = absl::StrCat("{\"cases\": [", kBare, ",", kBare, "]}");
  const std::string both = absl::StrCat("{\"cases\": [", kBare, "], \"shape\": [1]}");
  const struct {
    std::string text;
    const char* named;
  } kWrong[] = {
      {"", "not JSON"},
      {"{\"cases\": [", "not JSON"},
      {"[]", "object"},
      {"{\"cases\": []}", "at least one"},
      {"{\"cases\": {}}", "at least one"},
      {twice, "two cases have the id \"a\""},
      {both, "which of them"},
      {With("\"id\": \"a\"", "\"id\": \"a\", \"id\": \"b\""), "\"id\" appears twice"},
  };
  for (const auto& wrong : kWrong) {
    EXPECT_THAT(ParseCaseFile(wrong.text).status().message(), HasSubstr(wrong.named)) << wrong.text;
  }
}

InlineFlags Flags() {
  InlineFlags flags;
  flags.shape = "4096,4096";
  flags.dtype = "f32";
  flags.src_parts = {.mesh = "2,2", .ranks = "0-3", .placements = "R,S(0)"};
  flags.dst_parts = {.mesh = "4", .ranks = "4-7", .placements = "S(1)"};
  return flags;
}

TEST(InlineCase, MakesOneCaseOfTheFlags) {
  const auto workload = MakeInlineCases(Flags()).value();
  ASSERT_EQ(workload.cases.size(), 1u);
  EXPECT_EQ(workload.cases[0].id, "inline");
  const TensorTransfer& tensor = workload.cases[0].spec.tensors.at(0);
  EXPECT_THAT(tensor.shape, ElementsAre(4096, 4096));
  EXPECT_THAT(tensor.src.mesh.ranks(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(tensor.dst.placements, ElementsAre(Placement::Shard(1)));
}

TEST(InlineCase, SweepsTheFirstDimensionByBytesOfTheWholeTensor) {
  InlineFlags flags = Flags();
  flags.begin_bytes = "1M";
  flags.end_bytes = "64M";
  flags.factor = "4";
  const auto workload = MakeInlineCases(flags).value();
  std::vector<int64_t> rows;
  for (const Case& entry : workload.cases) rows.push_back(entry.spec.tensors.at(0).shape[0]);
  EXPECT_THAT(rows, ElementsAre(64, 256, 1024, 4096));
  EXPECT_EQ(workload.cases[1].id, "inline/4194304");
}

TEST(InlineCase, SweepsByStepsOfBytes) {
  InlineFlags flags = Flags();
  flags.begin_bytes = "1M";
  flags.end_bytes = "2M";
  flags.step = "384K";
  const auto workload = MakeInlineCases(flags).value();
  std::vector<std::string> ids;
  for (const Case& entry : workload.cases) ids.push_back(entry.id);
  EXPECT_THAT(ids, ElementsAre("inline/1048576", "inline/1441792", "inline/1835008"));
  EXPECT_EQ(workload.cases[1].spec.tensors.at(0).shape[0], 88);
  flags.factor = "2";
  EXPECT_THAT(MakeInlineCases(flags).status().message(), HasSubstr("-i takes the place of -f"));
  flags.factor.clear();
  flags.step = "0";
  EXPECT_THAT(MakeInlineCases(flags).status().message(), HasSubstr("-i > 0"));
}

TEST(InlineCase, ASizeSmallerThanARowKeepsOne) {
  InlineFlags flags = Flags();
  flags.begin_bytes = "1K";
  EXPECT_EQ(MakeInlineCases(flags)->cases[0].spec.tensors.at(0).shape[0], 1);
}

TEST(InlineCase, SizesThatComeToOneTensorAreOneCase) {
  InlineFlags flags;
  flags.collective = "ALL_gather";
  flags.ranks = 4;
  flags.begin_bytes = "8";
  flags.end_bytes = "256";
  const auto workload = MakeInlineCases(flags).value();
  std::vector<std::string> ids;
  for (const Case& entry : workload.cases) ids.push_back(entry.id);
  EXPECT_THAT(ids, ElementsAre("all-gather/64", "all-gather/128", "all-gather/256"));
  EXPECT_EQ(workload.cases[0].spec.tensors.at(0).shape[0], 16);
}

TEST(InlineCase, NamesOfOtherToolsAreUnderstood) {
  for (const char* dtype : {"half", "float16", "f16", "F16"}) {
    InlineFlags flags = Flags();
    flags.dtype = dtype;
    EXPECT_EQ(MakeInlineCases(flags)->cases[0].spec.tensors.at(0).src_dtype, DType::kF16) << dtype;
  }
  for (const char* name : {"alltoall", "all_to_all", "all-to-all", "AllToAll"}) {
    EXPECT_EQ(ParseCollective(name).value(), ParseCollective("all-to-all").value()) << name;
  }
}

TEST(InlineCase, ErrorsNameTheFlag) {
  InlineFlags flags = Flags();
  const struct {
    std::string* flag;
    const char* value;
    const char* named;
  } kWrong[] = {
      {&flags.shape, "", "--shape"},
      {&flags.shape, "4096x4096", "--shape"},
      {&flags.dtype, "floaty", "--dtype"},
      {&flags.src_parts.mesh, "2,3", "--src-mesh"},
      {&flags.src, "2:R", "--src takes the place"},
      {&flags.src_parts.ranks, "", "--src-ranks"},
      {&flags.src_parts.ranks, "0-2,2", "--src-ranks"},
      {&flags.dst_parts.ranks, "7-4", "--dst-ranks"},
      {&flags.dst_parts.placements, "S(", "--dst-placements"},
      {&flags.end_bytes, "1M", "-b"},
      {&flags.factor, "2", "-b"},
      {&flags.step, "1M", "-b"},
      {&flags.begin_bytes, "0", "-b"},
      {&flags.begin_bytes, "huge", "-b"},
  };
  for (const auto& wrong : kWrong) {
    const std::string before = std::exchange(*wrong.flag, wrong.value);
    EXPECT_THAT(MakeInlineCases(flags).status().message(), HasSubstr(wrong.named)) << wrong.value;
    *wrong.flag = before;
  }
  InlineFlags endless = Flags();
  endless.begin_bytes = "1M";
  endless.end_bytes = "2M";
  endless.factor = "1";
  EXPECT_THAT(MakeInlineCases(endless).status().message(), HasSubstr("-f"));
}

InlineFlags Compact(const std::string& src, const std::string& dst) {
  InlineFlags flags;
  flags.shape = "8,8";
  flags.src = src;
  flags.dst = dst;
  return flags;
}

std::vector<int> TargetRanks(const InlineFlags& flags) {
  const auto workload = MakeInlineCases(flags);
  if (!workload.ok()) return {};
  const auto ranks = workload->cases.at(0).spec.tensors.at(0).dst.mesh.ranks();
  return {ranks.begin(), ranks.end()};
}

TEST(InlineCase, ReadsLayoutsFromOneText) {
  const auto workload = MakeInlineCases(Compact("2,2@4-7:R,S(0)", "2:S(1)")).value();
  const TensorTransfer& tensor = workload.cases.at(0).spec.tensors.at(0);
  EXPECT_THAT(tensor.src.mesh.ranks(), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(tensor.dst.mesh.ranks(), ElementsAre(0, 1));
  EXPECT_THAT(tensor.dst.placements, ElementsAre(Placement::Shard(1)));
}

TEST(InlineCase, ADisjointTargetBeginsAfterTheSource) {
  InlineFlags flags = Compact("2@5,3:S(0)", "3:R");
  flags.disjoint = true;
  EXPECT_THAT(TargetRanks(flags), ElementsAre(6, 7, 8));
  flags.dst = "3@0-2:R";
  EXPECT_THAT(MakeInlineCases(flags).status().message(), HasSubstr("--disjoint"));
}

TEST(InlineCase, EachSideIsGivenOnceInOneOfTwoWays) {
  InlineFlags flags = Compact("2:S(0)", "");
  EXPECT_EQ(MakeInlineCases(flags).status().message(), "--dst is missing");
  flags.dst_parts = {.mesh = "2", .ranks = "2-3", .placements = "R"};
  EXPECT_THAT(TargetRanks(flags), ElementsAre(2, 3));
  flags.dst = "2:R";
  EXPECT_THAT(MakeInlineCases(flags).status().message(),
              HasSubstr("--dst takes the place of --dst-mesh"));
}

TEST(InlineCase, LayoutsThatDoNotFitAreErrorsOfTheCase) {
  InlineFlags flags = Flags();
  flags.dst_parts.placements = "S(2)";
  const auto workload = MakeInlineCases(flags).value();
  EXPECT_FALSE(workload.cases[0].status.ok());
}

}  // namespace
}  // namespace sluice::bench
