// Which answers are what was asked, and what the others are called.
#include "storage/http/http_response.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "main/fails.h"
#include "storage/asked_pause.h"

namespace sluice {
namespace {

using testing::HasSubstr;

// The head as lines, as libcurl hands them over.
HttpResponse Parse(const std::vector<std::string>& lines) {
  HttpResponse response;
  for (const std::string& line : lines) EXPECT_FALSE(response.AddLine(line + "\r\n")) << line;
  EXPECT_TRUE(response.AddLine("\r\n"));
  return response;
}

constexpr HttpRange kAsked = {"a.bin", 100, 50, -1};

absl::Status Judge(const std::vector<std::string>& lines, const HttpRange& range = kAsked) {
  return CheckRangeResponse(Parse(lines), range);
}

HttpRange AskedOf(int64_t object_bytes) { return {"a.bin", 100, 50, object_bytes}; }

std::string Status206() { return "HTTP/1.1 206 Partial Content"; }

TEST(HttpResponse, AcceptsExactlyTheRange) {
  EXPECT_TRUE(Judge({Status206(), "Content-Range: bytes 100-149/1000"}).ok());
  EXPECT_TRUE(Judge({Status206(), "content-range:bytes 100-149/*"}).ok());
  EXPECT_TRUE(Judge({Status206(), "CONTENT-RANGE: BYTES 100-149/150", "Content-Length: 50",
                     "Content-Encoding: identity"},
                    AskedOf(150))
                  .ok());
}

TEST(HttpResponse, RefusesOtherRanges) {
  for (const std::string range :
       {"bytes 101-150/1000", "bytes 100-150/1000", "bytes 99-149/1000", "bytes 100-148/1000",
        "bytes 0-49/1000", "bytes 100-149/149", "bytes 100-149/100", "bytes */1000", "bytes what",
        "lines 100-149/1000", "", "bytes -100-149/1000", "bytes 100-149", "bytes +100-149/1000",
        "bytes 100-149/99999999999999999999", "bytes 99999999999999999999-149/1000"}) {
    const absl::Status status = Judge({Status206(), absl::StrCat("Content-Range: ", range)});
    EXPECT_THAT(status, Fails(absl::StatusCode::kDataLoss, "bytes 100 to 149 of a.bin"));
  }
  EXPECT_TRUE(absl::IsDataLoss(Judge({Status206()})));
}

TEST(HttpResponse, RefusesContradictions) {
  EXPECT_TRUE(absl::IsDataLoss(
      Judge({Status206(), "Content-Range: bytes 100-149/1000", "Content-Length: 51"})));
  EXPECT_TRUE(absl::IsDataLoss(
      Judge({Status206(), "Content-Range: bytes 100-149/1000", "Content-Encoding: gzip"})));
  EXPECT_THAT(Judge({Status206(), "Content-Range: bytes 100-149/1000"}, AskedOf(999)),
              Fails(absl::StatusCode::kDataLoss, "has 1000 bytes, and had 999"));
}

TEST(HttpResponse, SaysWhereAnObjectEnds) {
  const absl::Status cut = Judge({Status206(), "Content-Range: bytes 100-119/120"});
  EXPECT_THAT(cut, Fails(absl::StatusCode::kDataLoss, "ends before, at 120 bytes"));
  EXPECT_TRUE(absl::IsDataLoss(Judge({"HTTP/1.1 416 Range Not Satisfiable"})));
  EXPECT_TRUE(absl::IsDataLoss(Judge({"HTTP/1.1 200 OK", "Content-Length: 120"})));
}

TEST(HttpResponse, AcceptsTheWholeObjectOnlyWhereItWasAskedFor) {
  const HttpRange whole = {"a.bin", 0, 50, -1};
  EXPECT_TRUE(Judge({"HTTP/1.1 200 OK", "Content-Length: 50"}, whole).ok());
  EXPECT_TRUE(absl::IsDataLoss(Judge({"HTTP/1.1 200 OK", "Content-Length: 51"}, whole)));
  EXPECT_TRUE(absl::IsDataLoss(Judge({"HTTP/1.1 200 OK", "Content-Length: 49"}, whole)));
  EXPECT_TRUE(absl::IsDataLoss(Judge({"HTTP/1.1 200 OK"}, whole)));
  EXPECT_TRUE(absl::IsDataLoss(Judge({"HTTP/1.1 200 OK", "Content-Length: 1000"})));
  const HttpRange known = {"a.bin", 0, 50, 60};
  EXPECT_TRUE(absl::IsDataLoss(Judge({"HTTP/1.1 200 OK", "Content-Length: 50"}, known)));
}

TEST(HttpResponse, NamesCodes) {
  const auto code_of = [](int code) {
    return Judge({absl::StrCat("HTTP/1.1 ", code, " Word")}).code();
  };
  for (const int code : {408, 429, 500, 502, 503, 504}) {
    EXPECT_EQ(code_of(code), absl::StatusCode::kUnavailable) << code;
  }
  for (const int code : {404, 410}) EXPECT_EQ(code_of(code), absl::StatusCode::kNotFound);
  for (const int code : {401, 403}) EXPECT_EQ(code_of(code), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(code_of(400), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code_of(204), absl::StatusCode::kUnknown);
  EXPECT_EQ(code_of(451), absl::StatusCode::kUnknown);
}

TEST(HttpResponse, TellsOfRedirectionsAndRetryAfter) {
  const absl::Status moved = Judge({"HTTP/1.1 302 Found", "Location: http://other/a.bin"});
  EXPECT_THAT(moved, Fails(absl::StatusCode::kFailedPrecondition, "http://other/a.bin"));
  const absl::Status busy = Judge({"HTTP/1.1 503 Busy", "Retry-After: 120"});
  EXPECT_THAT(busy, Fails(absl::StatusCode::kUnavailable, "after \"120\""));
  EXPECT_EQ(AskedPauseOf(busy), absl::Minutes(2));
  const auto asked = [](const std::string& wish) {
    return AskedPauseOf(Judge(
        {"HTTP/1.1 429 Slow", "Date: Wed, 21 Oct 2026 07:28:00 GMT", "Retry-After: " + wish}));
  };
  EXPECT_EQ(asked("3"), absl::Seconds(3));
  EXPECT_EQ(asked("Wed, 21 Oct 2026 07:28:05 GMT"), absl::Seconds(5));
  EXPECT_EQ(asked("Wed, 21 Oct 2015 07:28:00 GMT"), absl::ZeroDuration());
  EXPECT_EQ(asked("soon"), absl::ZeroDuration());
}

TEST(HttpResponse, ShowsNoUserOrPasswordOfARedirection) {
  const absl::Status moved =
      Judge({"HTTP/1.1 302 Found", "Location: https://user:secret@other/a.bin?sign=hidden"});
  const std::string message(moved.message());
  EXPECT_THAT(message, HasSubstr("@other/a.bin"));
  for (const char* kept_back : {"user", "secret", "hidden"}) {
    EXPECT_EQ(message.find(kept_back), message.npos) << message;
  }
}

TEST(HttpResponse, CountsOnlyTheLastOfSeveralHeads) {
  HttpResponse response;
  EXPECT_FALSE(response.AddLine("HTTP/1.1 100 Continue\r\n"));
  EXPECT_FALSE(response.AddLine("Content-Encoding: gzip\r\n"));
  EXPECT_FALSE(response.AddLine("\r\n")) << "not final";
  EXPECT_FALSE(response.AddLine("HTTP/1.1 206 Partial Content\r\n"));
  EXPECT_FALSE(response.AddLine("Content-Range: bytes 100-149/1000\r\n"));
  EXPECT_TRUE(response.AddLine("\r\n"));
  EXPECT_TRUE(CheckRangeResponse(response, kAsked).ok());
}

TEST(HttpResponse, JudgesWholeObjects) {
  EXPECT_TRUE(CheckWholeResponse(Parse({"HTTP/1.1 200 OK"}), "index").ok());
  EXPECT_TRUE(absl::IsUnavailable(CheckWholeResponse(Parse({"HTTP/1.1 503 Busy"}), "index")));
  EXPECT_TRUE(absl::IsDataLoss(
      CheckWholeResponse(Parse({"HTTP/1.1 200 OK", "Content-Encoding: br"}), "index")));
}

TEST(HttpResponse, RefusesAnotherVersionOfTheObject) {
  const auto judge = [](const HttpVersion& before, const std::vector<std::string>& said) {
    std::vector<std::string> lines = {Status206(), "Content-Range: bytes 100-149/1000"};
    lines.insert(lines.end(), said.begin(), said.end());
    HttpRange range = kAsked;
    range.version = &before;
    return Judge(lines, range);
  };
  const std::string monday = "Mon, 02 Nov 2026 10:00:00 GMT";
  const std::string tuesday = "Tue, 03 Nov 2026 10:00:00 GMT";
  EXPECT_TRUE(judge({"\"a\"", ""}, {"ETag: \"a\""}).ok());
  EXPECT_TRUE(judge({"W/\"a\"", monday}, {"etag:W/\"a\"", "Last-Modified: " + tuesday}).ok());
  EXPECT_TRUE(judge({"", ""}, {"ETag: \"b\""}).ok());
  EXPECT_TRUE(judge({"\"a\"", ""}, {}).ok());
  EXPECT_TRUE(judge({"", monday}, {"Last-Modified: " + monday}).ok());
  for (const absl::Status& status :
       {judge({"\"a\"", ""}, {"ETag: \"b\""}), judge({"\"a\"", monday}, {"ETag: W/\"a\""}),
        judge({"", monday}, {"Last-Modified: " + tuesday}),
        Judge({"HTTP/1.1 412 Precondition Failed"})}) {
    EXPECT_THAT(status, Fails(absl::StatusCode::kDataLoss, "a.bin: the object has changed"));
  }
}

TEST(HttpResponse, RepeatsNoSignaturesAndNothingUnbounded) {
  const absl::Status status =
      Judge({"HTTP/1.1 302 Found", "Location: https://s3.example/a?X-Amz-Signature=secret"});
  EXPECT_THAT(status, Fails(absl::StatusCode::kFailedPrecondition,
                            testing::AllOf(HasSubstr("https://s3.example/a\""),
                                           testing::Not(HasSubstr("secret")))));
  const std::string wild = "\x1b[31m" + std::string(100'000, 'x');
  for (const std::string& line : {"Location: " + wild, "Retry-After: " + wild}) {
    const std::string text(Judge({"HTTP/1.1 302 Found", line}).message());
    EXPECT_LT(text.size(), 500u);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
  }
  const std::string text(Judge({Status206(), "Content-Encoding: " + wild}).message());
  EXPECT_LT(text.size(), 500u);
}

}  // namespace
}  // namespace sluice
