// Names joined to a base URL stay below it.
#include "storage/http/http_url.h"

#include <string>

#include "gtest/gtest.h"

namespace sluice {
namespace {

TEST(HttpUrl, JoinsNamesToTheBase) {
  EXPECT_EQ(*JoinHttpUrl("http://host", "a.bin"), "http://host/a.bin");
  EXPECT_EQ(*JoinHttpUrl("https://host:8443/data/", "x/y-0_1~.bin"),
            "https://host:8443/data/x/y-0_1~.bin");
}

TEST(HttpUrl, EncodesWhatIsSpecial) {
  EXPECT_EQ(*JoinHttpUrl("http://h/", "a b?c#d%2e:e"), "http://h/a%20b%3Fc%23d%252e%3Ae");
  EXPECT_EQ(*JoinHttpUrl("http://h/", "\xC3\xA4"), "http://h/%C3%A4");
  EXPECT_EQ(*JoinHttpUrl("http://h/", "..."), "http://h/...");
}

TEST(HttpUrl, RefusesNamesThatLeaveTheBase) {
  for (const std::string name :
       {"", "/etc/passwd", "..", "../a", "a/../../b", "a/..", ".", "a/./b", "a//b", "a/",
        "http://other/a", "file:///etc/passwd", "..\\a", "a\\..\\b", "\\a"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(JoinHttpUrl("http://h/", name).status())) << name;
  }
  const std::string zero("a\0b", 3);
  EXPECT_TRUE(absl::IsInvalidArgument(JoinHttpUrl("http://h/", zero).status()));
}

TEST(HttpUrl, RefusesOtherBases) {
  for (const std::string base :
       {"", "host/", "ftp://host/", "file:///data/", "http://", "http:///x", "https://:80/",
        "http://h/?q=1", "http://h/#f", "http://h/a b", "http://h\\evil/", "HTTP//h"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckHttpUrl(base))) << base;
  }
}

TEST(HttpUrl, KeepsSignaturesOutOfMessages) {
  for (const std::string url :
       {"https://host/a.bin?X-Amz-Signature=secret", "https://host/a b?secret", "host?secret",
        "http://?secret", "http://host/#secret", "ftp://me:secret@host/", "http:///me:secret@",
        "http://me:secret?@host/", "http://me:a?secret@host/", "http://me:secret#b@host/",
        "http://me:a#secret@host/", "http://me:a@secret@host/", "http://me:a/secret@host/",
        "http://me:secret/b@host/", "https://host/a.bin?me@secret", "ftp://me:a/secret?b@host/"}) {
    const absl::Status status = CheckHttpUrl(url);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << url;
    EXPECT_EQ(status.message().find("secret"), absl::string_view::npos) << status;
  }
  const absl::Status status = CheckHttpUrl("https://host/a.bin?X-Amz-Signature=secret");
  EXPECT_NE(status.message().find("https://host/a.bin"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("query"), absl::string_view::npos) << status;
}

TEST(HttpUrl, WhatIsShownIsShortAndPlain) {
  EXPECT_LT(ShownUrl(std::string(10'000, 'x')).size(), 200u);
  EXPECT_EQ(ShownUrl("http://h/\x1b[31m").find('\x1b'), std::string::npos);
  EXPECT_EQ(ShownUrl("http://[fd00::1]:80/a"), "\"http://[fd00::1]:80/a\"");
  EXPECT_TRUE(CheckHttpUrl("http://[fd00::1]:80/a").ok());
}

}  // namespace
}  // namespace sluice
