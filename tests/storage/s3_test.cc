// Addresses, profiles, answers and keys of S3, without a server.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "storage/asked_pause.h"
#include "storage/open/open_source.h"
#include "storage/s3/s3_access.h"
#include "storage/s3/s3_address.h"
#include "storage/s3/s3_error.h"
#include "storage/s3/s3_listing.h"
#include "storage/s3/s3_profile.h"
#include "storage/s3/s3_xml.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

S3Address AddressOf(const std::string& uri) { return ParseS3Address(uri).value(); }

TEST(S3AddressTest, HasABucketAndAPrefix) {
  EXPECT_EQ(AddressOf("s3://b").prefix, "");
  EXPECT_EQ(AddressOf("s3://b/").prefix, "");
  EXPECT_EQ(AddressOf("s3://my.Bucket_1/a b/c").bucket, "my.Bucket_1");
  EXPECT_EQ(AddressOf("s3://b/a b/c").prefix, "a b/c/");
  EXPECT_EQ(AddressOf("s3://b/a?b#c/").prefix, "a?b#c/");
  for (const std::string uri : {"", "s3:b", "s3:/b", "s3://", "s3:///a", "s3://-b", "s3://b c/d",
                                "s3://b/./a", "s3://b/a/..", "s3://b/a\n", "http://b/a"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseS3Address(uri).status())) << uri;
  }
  const absl::Status status = ParseS3Address("s3://AKID:secret@b/a").status();
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
}

TEST(S3AddressTest, IsASource) {
  const SourceAddress address = ParseSourceAddress("s3://b/a b").value();
  EXPECT_TRUE(address.is_s3() && address.is_http());
  EXPECT_EQ(address.place, "s3://b/a b/");
  EXPECT_FALSE(ParseSourceAddress("http://b/a").value().is_s3());
}

TEST(S3AddressTest, BecomesUrls) {
  const S3Address address = AddressOf("s3://bucket/a b/\xC3\xA4+%~");
  const std::string path = "a%20b/%C3%A4%2B%25~/";
  EXPECT_EQ(S3BaseUrl(address, "", "eu-west-1"),
            "https://bucket.s3.eu-west-1.amazonaws.com/" + path);
  EXPECT_EQ(S3BaseUrl(address, "http://h:9000/", "eu-west-1"), "http://h:9000/bucket/" + path);
  EXPECT_EQ(S3BucketUrl(address, "", "cn-north-1"),
            "https://bucket.s3.cn-north-1.amazonaws.com.cn/");
  // No certificate of "*.s3.REGION.amazonaws.com" is good for these.
  for (const std::string bucket : {"my.bucket", "Bucket", "my_bucket"}) {
    EXPECT_EQ(S3BucketUrl({bucket, ""}, "", "r"),
              absl::StrCat("https://s3.r.amazonaws.com/", bucket, "/"));
  }
  EXPECT_EQ(S3ListQuery(AddressOf("s3://b"), ""), "delimiter=%2F&list-type=2&max-keys=1000");
  EXPECT_EQ(S3ListQuery(AddressOf("s3://b/a b/c"), "x/=+"),
            "continuation-token=x%2F%3D%2B&delimiter=%2F&list-type=2&max-keys=1000"
            "&prefix=a%20b%2Fc%2F");
}

TEST(S3ProfileTest, ReadsOneSection) {
  const std::string text =
      "x = 1\n[other]\na = 0\n[ours]\r\n# a = 1\nA = 2 = 3\r\nnested =\n  b = 4\n\n; c = 5\nno\n"
      "[ours ]\nd=6\na=7\n";
  S3ProfileFields fields = {{"d", "kept"}};
  EXPECT_TRUE(AddS3Section(text, "ours", &fields));
  EXPECT_THAT(fields, ElementsAre(Pair("a", "2 = 3"), Pair("d", "kept"), Pair("nested", "")));
  EXPECT_FALSE(AddS3Section(text, "theirs", &fields));
  EXPECT_FALSE(AddS3Section("", "ours", &fields));
}

TEST(S3XmlTest, FindsFieldsAndEntities) {
  absl::string_view after;
  EXPECT_EQ(XmlField("<a><b>x</b><b>y</b></a>", "b", &after).value(), "x");
  EXPECT_EQ(after, "<b>y</b></a>");
  for (const std::string xml : {"", "<b>", "</b><b>", "<bb>x</bb>", "<b x=\"1\">x</b>"}) {
    EXPECT_FALSE(XmlField(xml, "b")) << xml;
  }
  EXPECT_EQ(XmlText("a&amp;&lt;&gt;&quot;&apos;&#65;&#xE4;&#x20AC;&#x1F600;").value(),
            "a&<>\"'A\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80");
  for (const std::string text : {"&", "&amp", "&none;", "&#;", "&#0;", "&#x110000;", "&#-1;"}) {
    EXPECT_FALSE(XmlText(text)) << text;
  }
}

std::string Page(const std::string& contents, const std::string& end) {
  return absl::StrCat("<ListBucketResult xmlns=\"x\">", contents, end, "</ListBucketResult>");
}
std::string Contents(const std::string& key, const std::string& size = "3") {
  return absl::StrCat("<Contents><Key>", key, "</Key><Size>", size, "</Size></Contents>");
}
constexpr char kEnd[] = "<IsTruncated>false</IsTruncated>";
constexpr char kNext[] =
    "<IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b</NextContinuationToken>";

TEST(S3ListingTest, JoinsPages) {
  S3Listing listing;
  ASSERT_TRUE(
      AddS3Page(Page(Contents("p/a&amp;b", "12") + Contents("p/") + Contents("p/x/y"), kNext), "p/",
                &listing)
          .ok());
  EXPECT_FALSE(listing.is_whole);
  EXPECT_EQ(listing.token, "a&b");
  // A key that looks like the end of the page is none.
  ASSERT_TRUE(AddS3Page(Page(Contents("p/c") + Contents("q/d"), kEnd), "p/", &listing).ok());
  EXPECT_TRUE(listing.is_whole);
  ASSERT_EQ(listing.objects.size(), 2u);
  EXPECT_EQ(listing.objects[0].name, "a&b");
  EXPECT_EQ(listing.objects[0].bytes, 12);
  EXPECT_EQ(listing.objects[1].name, "c");
}

TEST(S3ListingTest, RefusesWhatMakesNoSense) {
  const std::string good = Page(Contents("a"), kEnd);
  for (const std::string& page :
       {std::string(), std::string("<html>"), Page("", ""), Page(Contents("a", "-1"), kEnd),
        Page(Contents("a", "x"), kEnd), Page(Contents("&x;"), kEnd),
        Page("", "<IsTruncated>true</IsTruncated>"), good.substr(0, good.find("</Contents>"))}) {
    S3Listing listing;
    EXPECT_TRUE(absl::IsDataLoss(AddS3Page(page, "", &listing))) << page;
  }
  std::string many;
  for (int i = 0; i < 1002; ++i) many += Contents(absl::StrCat("a", i));
  S3Listing listing;
  EXPECT_TRUE(absl::IsDataLoss(AddS3Page(Page(many, kEnd), "", &listing)));
}

TEST(S3ListingTest, EndsWhereAStoreDoesNot) {
  S3Listing endless;
  absl::Status status;
  for (int i = 0; i < 2000 && status.ok(); ++i) {
    const std::string next = absl::StrReplaceAll(kNext, {{"a&amp;b", absl::StrCat("t", i)}});
    status = AddS3Page(Page("", next), "", &endless);
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  S3Listing turning;
  ASSERT_TRUE(AddS3Page(Page("", kNext), "", &turning).ok());
  EXPECT_TRUE(absl::IsDataLoss(AddS3Page(Page("", kNext), "", &turning)));
}

absl::Status Explained(int number, const std::string& body, absl::StatusCode before,
                       const std::string& unsigned_because = "") {
  HttpResponse response;
  response.code = number;
  return ExplainS3Error({response, body, "eu-1", unsigned_because}, {before, "the object: text"});
}

TEST(S3ErrorTest, HasTheCodeOfTheStore) {
  constexpr auto kDenied = absl::StatusCode::kPermissionDenied;
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const std::string secret = "<Error><Code>AccessDenied</Code><Message>secret</Message></Error>";
  EXPECT_EQ(Explained(403, secret, kDenied).message(), "the object: text, AccessDenied");
  EXPECT_THAT(Explained(403, secret, kDenied, "no keys"),
              Fails(kDenied, "AccessDenied; the request was not signed: no keys"));
  EXPECT_THAT(Explained(403, "<html>secret", kDenied, "no keys"), Fails(kDenied, "no keys"));
  EXPECT_THAT(Explained(400, "<Code>RequestTimeout</Code>", kInvalid),
              Fails(absl::StatusCode::kUnavailable, "RequestTimeout"));
  EXPECT_THAT(Explained(400, "<Code>ExpiredToken</Code>", kInvalid), Fails(kDenied, "have ended"));
  EXPECT_THAT(Explained(400, "<Code>X</Code><Region>us-2</Region>", kInvalid),
              Fails(kInvalid, "X; the bucket's region is us-2, and the request was made for eu-1"));
  // What is no word is not repeated.
  EXPECT_EQ(S3ErrorCode("<Code>a b</Code>"), "");
  EXPECT_EQ(S3ErrorCode(absl::StrCat("<Code>", std::string(100, 'a'), "</Code>")), "");
  // These are no errors of the store's.
  for (const int number : {200, 206, 412, 416}) {
    EXPECT_EQ(Explained(number, secret, absl::StatusCode::kDataLoss).message(), "the object: text");
  }
}

TEST(S3ErrorTest, KeepsThePauseThatWasAskedFor) {
  HttpResponse response;
  response.code = 503;
  const absl::Status status =
      ExplainS3Error({response, "<Code>SlowDown</Code>", "r", ""},
                     WithAskedPause(absl::UnavailableError("text"), absl::Seconds(7)));
  EXPECT_THAT(status, Fails(absl::StatusCode::kUnavailable, "text, SlowDown"));
  EXPECT_EQ(AskedPauseOf(status), absl::Seconds(7));
}

class S3AccessTest : public testing::Test {
 protected:
  absl::StatusOr<std::shared_ptr<S3Access>> Find(const S3Options& options = {}) {
    return FindS3Access(options, [this](const char* name) { return variables_[name]; });
  }

  std::map<std::string, std::string> variables_ = {{"HOME", "/nowhere"}};
};

TEST_F(S3AccessTest, LooksInTheOptionsAndThenInTheEnvironment) {
  EXPECT_EQ(Find().value()->region(), "us-east-1");
  EXPECT_EQ(Find().value()->endpoint(), "");
  EXPECT_EQ(Find().value()->Keys()->scheme, "");
  variables_["AWS_DEFAULT_REGION"] = "r-1";
  variables_["AWS_ENDPOINT_URL"] = "http://one";
  EXPECT_EQ(Find().value()->region(), "r-1");
  EXPECT_EQ(Find().value()->endpoint(), "http://one");
  variables_["AWS_REGION"] = "r-2";
  variables_["AWS_ENDPOINT_URL_S3"] = "http://two";
  EXPECT_EQ(Find().value()->region(), "r-2");
  EXPECT_EQ(Find().value()->endpoint(), "http://two");
  EXPECT_EQ(Find({.region = "r-3"}).value()->region(), "r-3");
  variables_["AWS_ACCESS_KEY_ID"] = "id";
  EXPECT_THAT(Find().status(), Fails(absl::StatusCode::kFailedPrecondition, "a secret key"));
  variables_["AWS_SECRET_ACCESS_KEY"] = "secret";
  variables_["AWS_SESSION_TOKEN"] = "token";
  const HttpKeys keys = Find().value()->Keys().value();
  EXPECT_EQ(keys.scheme, "aws:amz:r-2:s3");
  EXPECT_EQ(keys.user, "id");
  EXPECT_EQ(keys.password, "secret");
  EXPECT_THAT(keys.headers,
              ElementsAre("x-amz-content-sha256: UNSIGNED-PAYLOAD", "x-amz-security-token: token"));
}

TEST_F(S3AccessTest, RefusesWhatIsNone) {
  EXPECT_THAT(Find({.endpoint = "host"}).status(),
              Fails(absl::StatusCode::kInvalidArgument, "endpoint of S3"));
  EXPECT_THAT(Find({.region = "a:b"}).status(),
              Fails(absl::StatusCode::kInvalidArgument, "a region of S3"));
  variables_["AWS_PROFILE"] = "ours";
  EXPECT_THAT(Find().status(), Fails(absl::StatusCode::kNotFound, "$AWS_PROFILE is \"ours\""));
}

TEST_F(S3AccessTest, AsksForKeysAnew) {
  int asked = 0;
  absl::Duration life = absl::Hours(1);
  absl::Status failure;
  const auto access =
      Find({.credentials = [&]() -> absl::StatusOr<S3Credentials> {
        ++asked;
        if (!failure.ok()) return failure;
        return S3Credentials{absl::StrCat("id", asked), "secret", "", absl::Now() + life};
      }}).value();
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(access->Keys()->user, "id1");
  const HttpKeys keys = access->Keys().value();
  EXPECT_EQ(keys.user, "id1");
  HttpResponse response;
  response.code = 400;
  const std::string body = "<Code>ExpiredToken</Code>";
  const absl::Status denied = absl::InvalidArgumentError("text");
  EXPECT_TRUE(absl::IsUnavailable(access->Explain(response, body, keys.number, denied)));
  EXPECT_EQ(access->Keys()->user, "id2");
  // Another request with the older keys.
  EXPECT_TRUE(absl::IsUnavailable(access->Explain(response, body, keys.number, denied)));
  EXPECT_EQ(access->Keys()->user, "id2");
  EXPECT_TRUE(absl::IsUnavailable(access->Explain(response, body, keys.number + 1, denied)));
  failure = absl::UnknownError("no keys today");
  EXPECT_THAT(access->Keys().status(), Fails(absl::StatusCode::kUnknown, "no keys today"));
  failure = absl::OkStatus();
  life = -absl::Seconds(1);
  EXPECT_THAT(access->Keys().status(),
              Fails(absl::StatusCode::kFailedPrecondition, "have already ended"));
}

TEST(S3RenewalTest, IsShortlyBeforeTheEnd) {
  const absl::Time now = absl::UnixEpoch();
  EXPECT_EQ(RenewalOf(now, now + absl::Hours(1)), now + absl::Minutes(59));
  EXPECT_EQ(RenewalOf(now, now + absl::Seconds(40)), now + absl::Seconds(30));
  EXPECT_EQ(RenewalOf(now, absl::InfiniteFuture()), absl::InfiniteFuture());
}

}  // namespace
}  // namespace sluice
