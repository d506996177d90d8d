// Reads <Contents>, and the token of the page that follows.
#include "storage/s3/s3_listing.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "storage/s3/s3_xml.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

constexpr int kPagesMax = 1000;
constexpr size_t kObjectsOfPage = 1000;  // as S3ListQuery asks for

absl::Status NoSense(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the listing of a store has ", what));
}

absl::Status AddObject(absl::string_view contents, absl::string_view prefix, S3Listing* listing) {
  const absl::optional<absl::string_view> key = XmlField(contents, "Key");
  const absl::optional<absl::string_view> size = XmlField(contents, "Size");
  const absl::optional<std::string> plain = XmlText(key.value_or(""));
  S3Object object;
  if (!key || !plain) return NoSense("an object without a legible key");
  if (!size || !absl::SimpleAtoi(*size, &object.bytes) || object.bytes < 0) {
    return NoSense("an object without a size");
  }
  absl::string_view name = *plain;
  // Stores keep folders as objects with a '/' at their end.
  if (!absl::ConsumePrefix(&name, prefix) || name.empty() || absl::StrContains(name, '/')) {
    return absl::OkStatus();
  }
  object.name = std::string(name);
  listing->objects.push_back(std::move(object));
  return absl::OkStatus();
}

}  // namespace

absl::Status AddS3Page(absl::string_view page, absl::string_view prefix, S3Listing* listing) {
  absl::string_view rest;
  if (!absl::StrContains(page, "<ListBucketResult")) return NoSense("a page that is none");
  std::string others;  // what is outside of objects, whose keys may look like anything
  const size_t before = listing->objects.size();
  for (rest = page; absl::StrContains(rest, "<Contents>");) {
    if (listing->objects.size() - before > kObjectsOfPage) {
      return NoSense(absl::StrCat("a page of more than ", kObjectsOfPage, " objects"));
    }
    absl::StrAppend(&others, rest.substr(0, rest.find("<Contents>")));
    const absl::optional<absl::string_view> contents = XmlField(rest, "Contents", &rest);
    if (!contents) return NoSense("an object that is cut off");
    SLUICE_RETURN_IF_ERROR(AddObject(*contents, prefix, listing));
  }
  absl::StrAppend(&others, rest);
  ++listing->pages;
  const absl::string_view truncated = XmlField(others, "IsTruncated").value_or("");
  listing->is_whole = absl::StripAsciiWhitespace(truncated) == "false";
  if (listing->is_whole) return absl::OkStatus();
  const absl::optional<std::string> token =
      XmlText(XmlField(others, "NextContinuationToken").value_or(""));
  if (!token || token->empty() || *token == listing->token) {
    return NoSense("a page that says neither its end nor the next one");
  }
  if (listing->pages >= kPagesMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a listing of more than ", kPagesMax, " pages: give an index, or a longer ", "prefix"));
  }
  listing->token = *token;
  return absl::OkStatus();
}

}  // namespace sluice
