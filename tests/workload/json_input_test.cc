// JSON that nobody wrote by hand.
#include "workload/json_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "main/own_folder.h"
#include "workload/case_file.h"

namespace sluice::bench {
namespace {

using ::testing::HasSubstr;

std::string Nested(size_t depth, char open, char close) {
  return std::string(depth, open) + std::string(depth, close);
}

TEST(ParseJson, RefusesWhatIsNestedDeeply) {
  EXPECT_TRUE(ParseJson(Nested(64, '[', ']')).ok());
  for (const size_t depth : {65, 200'000}) {
    EXPECT_THAT(ParseJson(Nested(depth, '[', ']')).status().message(), HasSubstr("more than 64"));
    EXPECT_THAT(ParseJson(std::string(depth, '[')).status().message(), HasSubstr("more than 64"));
    std::string objects;
    for (size_t i = 0; i < depth; ++i) absl::StrAppend(&objects, "{\"a\":");
    EXPECT_THAT(ParseJson(objects).status().message(), HasSubstr("more than 64"));
  }
}

TEST(CaseFile, AShapeOfManyBracketsIsAnError) {
  const std::string brackets = Nested(200'000, '[', ']');
  const auto workload = ParseCaseFile(absl::StrCat("{\"cases\":[{\"shape\":", brackets, "}]}"));
  EXPECT_THAT(workload.status().message(), HasSubstr("more than 64 lists and objects"));
}

TEST(ParseJson, ErrorsAreShortAndWholeCharacters) {
  std::string text = "{\"shape\": \"";
  for (int i = 0; i < 500; ++i) text += "\u00e9";
  const auto json = ParseJson(text + "\"}");
  ASSERT_TRUE(json.ok()) << json.status();
  const std::string message(GetIntegers(*json, "shape").status().message());
  EXPECT_LT(message.size(), 150u);
  EXPECT_THAT(message, HasSubstr("\u00e9..."));
  EXPECT_THAT(ParseJson(R"({"\u0007": 1, "\u0007": 2})").status().message(), HasSubstr("\\x07"));
}

TEST(ReadFile, RefusesWhatIsTooLarge) {
  const std::string path = InOwnFolder("too_large.json");
  std::ofstream(path) << "{}";
  EXPECT_EQ(ReadFile(path).value(), "{}");
  std::filesystem::resize_file(path, kFileBytesMax + 1);
  EXPECT_THAT(ReadFile(path).status().message(), HasSubstr("more than 64 MiB"));
  std::filesystem::remove(path);
  EXPECT_THAT(ReadFile("/dev/zero").status().message(), HasSubstr("more than 64 MiB"));
}

}  // namespace
}  // namespace sluice::bench
