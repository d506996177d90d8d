// JSON text against a JSON library: every byte, sequences that are no UTF-8, exact times.
#include "trace/json_text.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace sluice {
namespace {

std::string ThereAndBack(const std::string& text) {
  return nlohmann::json::parse(JsonString(text)).get<std::string>();
}

TEST(JsonString, EveryAsciiByte) {
  for (int c = 0; c < 0x80; ++c) {
    const std::string text = {'a', static_cast<char>(c), 'b'};
    EXPECT_EQ(ThereAndBack(text), text) << c;
  }
}

TEST(JsonString, Utf8Stays) {
  for (const std::string text : {"", "Schleuse", "größer", "水門", "🌊", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(ThereAndBack(text), text);
  }
}

TEST(JsonString, OtherBytesAreReplaced) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(ThereAndBack("a\xFF"), "a" + replaced);
  EXPECT_EQ(ThereAndBack("\xC3"), replaced);                                // cut short
  EXPECT_EQ(ThereAndBack("\xC0\x80"), replaced + replaced);                 // overlong
  EXPECT_EQ(ThereAndBack("\xED\xA0\x80"), replaced + replaced + replaced);  // half a surrogate pair
  EXPECT_EQ(ThereAndBack("\xF4\x90\x80\x80z"), replaced + replaced + replaced + replaced + "z");
  for (int first = 0x80; first < 0x100; ++first) {
    for (int second = 0; second < 0x100; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second), '!'};
      EXPECT_EQ(ThereAndBack(text).back(), '!');
    }
  }
}

TEST(JsonMicroseconds, AreExact) {
  EXPECT_EQ(JsonMicroseconds(0), "0.000");
  EXPECT_EQ(JsonMicroseconds(7), "0.007");
  EXPECT_EQ(JsonMicroseconds(1040), "1.040");
  EXPECT_EQ(JsonMicroseconds(INT64_MAX), "9223372036854775.807");
  EXPECT_DEATH(JsonMicroseconds(-1), "negative");
}

}  // namespace
}  // namespace sluice
