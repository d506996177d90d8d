// Strict reading of JSON: which events come, what is refused, what the limits hold back.
#include "storage/format/json_events.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// Writes down what it hears.
class Scribe final : public JsonListener {
 public:
  absl::StatusOr<Answer> Begin(const JsonPath& path, JsonKind kind) override {
    absl::StrAppend(&log, path.Text(), kind == JsonKind::kList ? " [" : " {", "\n");
    return path.depth() == 1 && path.key(0) == "skip" ? Answer::kSkip : Answer::kRead;
  }
  absl::Status End(const JsonPath& path) override {
    absl::StrAppend(&log, path.Text(), " end\n");
    return absl::OkStatus();
  }
  absl::Status Scalar(const JsonPath& path, const JsonScalar& value) override {
    absl::StrAppend(&log, path.Text(), " ", KindText(value.kind), " ", value.integer, value.text,
                    "\n");
    return value.text == "stop" ? absl::CancelledError("stopped") : absl::OkStatus();
  }
  std::string log;
};

std::string WhyNot(const std::string& text, const JsonLimits& limits = {}) {
  Scribe scribe;
  return std::string(ReadJson(text, limits, &scribe).message());
}

TEST(JsonEventsTest, TellsEachValueWithItsPlace) {
  Scribe scribe;
  ASSERT_TRUE(
      ReadJson(R"({"a": [1, {"b": "x"}], "skip": {"c": [2]}, "d": null})", {}, &scribe).ok());
  EXPECT_EQ(scribe.log,
            "the text {\n"
            "\"a\" [\n"
            "\"a\"[0] an integer 1\n"
            "\"a\"[1] {\n"
            "\"a\"[1].\"b\" a string 0x\n"
            "\"a\"[1] end\n"
            "\"a\" end\n"
            "\"skip\" {\n"
            "\"d\" null 0\n"
            "the text end\n");
}

TEST(JsonEventsTest, NumbersAreIntegersOnlyIfExact) {
  Scribe scribe;
  ASSERT_TRUE(
      ReadJson("[9223372036854775807, 9223372036854775808, -1, 1.0, 1e3]", {}, &scribe).ok());
  EXPECT_THAT(scribe.log, HasSubstr("[0] an integer 9223372036854775807\n"));
  EXPECT_THAT(scribe.log, HasSubstr("[1] a number"));
  EXPECT_THAT(scribe.log, HasSubstr("[2] an integer -1\n"));
  EXPECT_THAT(scribe.log, HasSubstr("[3] a number"));
  EXPECT_THAT(scribe.log, HasSubstr("[4] a number"));
}

TEST(JsonEventsTest, RefusesWhatIsNotJson) {
  for (const char* text : {"", "{", "{\"a\":1,}", "{a:1}", "[1 2]", "{} {}", "nul", "\"a\n\"",
                           "1e999", "[1]x", "{\"a\" 1}", "/**/{}", "'a'", "[NaN]", "\"\\ud800\""}) {
    EXPECT_THAT(WhyNot(text), HasSubstr("not JSON at byte")) << text;
  }
  EXPECT_THAT(WhyNot("\"\xff\""), HasSubstr("not JSON at byte"));
  EXPECT_THAT(WhyNot(std::string("{}\0\0", 4)), HasSubstr("at byte 2: a NUL byte"));
}

TEST(JsonEventsTest, RefusesOneKeyTwice) {
  EXPECT_THAT(WhyNot(R"({"a":1,"b":2,"a":3})"), HasSubstr("key \"a\" appears twice"));
  EXPECT_THAT(WhyNot(R"({"a":1,"\u0061":3})"), HasSubstr("key \"a\" appears twice"));
  EXPECT_THAT(WhyNot(R"({"skip":{"x":1,"x":2}})"), HasSubstr("key \"x\" appears twice"));
  EXPECT_EQ(WhyNot(R"({"a":{"a":1},"b":{"a":2}})"), "");
}

TEST(JsonEventsTest, KeepsToTheLimits) {
  EXPECT_THAT(WhyNot("[1,2]", {.text_bytes = 4}), HasSubstr("5 bytes of JSON"));
  EXPECT_EQ(WhyNot("[1,2]", {.text_bytes = 5, .values = 3, .depth = 1}), "");
  EXPECT_THAT(WhyNot("[1,2]", {.values = 2}), HasSubstr("more than 2 values"));
  EXPECT_THAT(WhyNot("[[1]]", {.depth = 1}), HasSubstr("more than 1 lists and objects"));
  EXPECT_THAT(WhyNot("[\"abc\"]", {.string_bytes = 2}), HasSubstr("more than 2 bytes"));
  EXPECT_THAT(WhyNot("{\"abc\":1}", {.string_bytes = 2}), HasSubstr("more than 2 bytes"));
  EXPECT_THAT(WhyNot(std::string(100000, '[')), HasSubstr("more than 8 lists"));
  EXPECT_THAT(WhyNot("{\"skip\":" + std::string(100000, '[')), HasSubstr("more than 8 lists"));
}

TEST(JsonEventsTest, EndsAtTheListenersError) {
  Scribe scribe;
  EXPECT_EQ(ReadJson("[\"stop\", \"never\"]", {}, &scribe), absl::CancelledError("stopped"));
  EXPECT_THAT(scribe.log, testing::Not(HasSubstr("never")));
}

TEST(JsonEventsTest, QuotesText) {
  EXPECT_EQ(*JsonQuoted("a\"\\\n\x01 caf\303\251"), "\"a\\\"\\\\\\n\\u0001 caf\303\251\"");
  EXPECT_FALSE(JsonQuoted("\xff").ok());
}

}  // namespace
}  // namespace sluice
