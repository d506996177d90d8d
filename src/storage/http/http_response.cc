// Parses heads of answers (RFC 9110, 9112), and judges them.
#include "storage/http/http_response.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "storage/asked_pause.h"
#include "storage/http/http_url.h"
#include "storage/source_check.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

// SimpleAtoi would take signs and blanks.
bool ParseDigits(absl::string_view text, int64_t* number) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return std::all_of(text.begin(), text.end(), is_digit) && absl::SimpleAtoi(text, number);
}

// "HTTP/1.1 206 Partial Content"
int ParseCode(absl::string_view line) {
  const size_t blank = line.find(' ');
  int64_t code = 0;
  if (blank == line.npos || !ParseDigits(line.substr(blank + 1, 3), &code)) return 0;
  return static_cast<int>(code);
}

// "bytes 0-99/1000", "bytes 0-99/*"
void ParseContentRange(absl::string_view value, HttpResponse* response) {
  response->has_range = true;
  response->range_first = response->range_last = response->object_bytes = -1;
  if (!absl::StartsWithIgnoreCase(value, "bytes ")) return;
  value = absl::StripAsciiWhitespace(value.substr(6));
  const size_t dash = value.find('-');
  const size_t slash = value.find('/');
  if (dash == value.npos || slash == value.npos || dash > slash) return;
  int64_t first = 0;
  int64_t last = 0;
  int64_t total = -1;
  const absl::string_view size = value.substr(slash + 1);
  if (!ParseDigits(value.substr(0, dash), &first) ||
      !ParseDigits(value.substr(dash + 1, slash - dash - 1), &last) ||
      (size != "*" && !ParseDigits(size, &total))) {
    return;
  }
  response->range_first = first;
  response->range_last = last;
  response->object_bytes = total;
}

absl::StatusCode StatusOfCode(int code) {
  switch (code) {
    case 404:
    case 410:
      return absl::StatusCode::kNotFound;
    case 401:
    case 403:
    case 407:
      return absl::StatusCode::kPermissionDenied;
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return absl::StatusCode::kUnavailable;
    case 400:
    case 414:
      return absl::StatusCode::kInvalidArgument;
    default:
      return code / 100 == 3 ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kUnknown;
  }
}

absl::Status ChangedError(absl::string_view text) {
  return absl::DataLossError(
      absl::StrCat(text, ": the object has changed since it was first asked for"));
}

// An ETag tells versions apart; without one, a date may.
bool IsOther(const HttpVersion& version, const HttpVersion& before) {
  if (!version.etag.empty() && !before.etag.empty()) return version.etag != before.etag;
  return !version.last_modified.empty() && !before.last_modified.empty() &&
         version.last_modified != before.last_modified;
}

// "Wed, 21 Oct 2026 07:28:00 GMT"
bool ParseDate(absl::string_view text, absl::Time* time) {
  std::string ignored;
  return absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", text, time, &ignored);
}

// Zero where it is not said, cannot be read, or is over. A date counts by the server's clock.
absl::Duration PauseOf(const HttpResponse& response) {
  int64_t seconds = 0;
  if (!response.retry_after.empty() && ParseDigits(response.retry_after, &seconds)) {
    return absl::Seconds(seconds);
  }
  absl::Time now;
  absl::Time then;
  const bool is_said = ParseDate(response.date, &now) && ParseDate(response.retry_after, &then);
  return is_said ? std::max(then - now, absl::ZeroDuration()) : absl::ZeroDuration();
}

// For an answer that is neither 200 nor 206.
absl::Status CodeError(const HttpResponse& response, absl::string_view text) {
  std::string message = absl::StrCat(text, ": the server answers ", response.code);
  if (!response.retry_after.empty()) {
    absl::StrAppend(&message, ", and to try again after ", Quoted(response.retry_after));
  }
  if (response.code / 100 == 3) {
    absl::StrAppend(&message, ", a redirection, and those are not followed",
                    response.location.empty() ? "" : ": to ",
                    response.location.empty() ? "" : ShownUrl(response.location));
  }
  absl::Status status(StatusOfCode(response.code), message);
  const absl::Duration pause = PauseOf(response);
  if (!absl::IsUnavailable(status) || pause == absl::ZeroDuration()) return status;
  return WithAskedPause(std::move(status), pause);
}

std::string Text(const HttpRange& range) {
  return RangeText(range.object, range.offset, range.bytes);
}

bool IsEncoded(const HttpResponse& response) {
  return !response.encoding.empty() && !absl::EqualsIgnoreCase(response.encoding, "identity");
}

absl::Status EncodedError(const HttpResponse& response, absl::string_view text) {
  return absl::DataLossError(
      absl::StrCat(text, ": the answer is encoded as ", Quoted(response.encoding), ", unasked"));
}

absl::Status SizeError(const HttpRange& range, int64_t object_bytes) {
  return absl::DataLossError(absl::StrCat(Text(range), ": the object has ", object_bytes,
                                          " bytes, and had ", range.object_bytes));
}

// The whole object came where a range was asked for.
absl::Status CheckWholeAsRange(const HttpResponse& response, const HttpRange& range) {
  const int64_t length = response.content_length;
  if (range.object_bytes >= 0 && length >= 0 && length != range.object_bytes) {
    return SizeError(range, length);
  }
  if (length >= 0 && length < range.offset + range.bytes) {
    return absl::DataLossError(
        absl::StrCat(Text(range), ": the object ends before, at ", length, " bytes"));
  }
  if (range.offset == 0 && length == range.bytes) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      Text(range), ": the server sends the whole object instead; it seems to know no ranges"));
}

}  // namespace

void HttpResponse::Clear() {
  code = 0;
  content_length = -1;
  has_range = false;
  range_first = range_last = object_bytes = -1;
  encoding.clear();
  location.clear();
  retry_after.clear();
  date.clear();
  region.clear();
  version.etag.clear();
  version.last_modified.clear();
}

bool HttpResponse::AddLine(absl::string_view line) {
  line = absl::StripTrailingAsciiWhitespace(line);
  if (absl::StartsWith(line, "HTTP/")) {
    Clear();
    code = ParseCode(line);
    return false;
  }
  if (line.empty()) return code >= 200;
  const size_t colon = line.find(':');
  if (colon == line.npos) return false;
  const absl::string_view name = line.substr(0, colon);
  const absl::string_view value = absl::StripLeadingAsciiWhitespace(line.substr(colon + 1));
  const auto is = [&](absl::string_view known) { return absl::EqualsIgnoreCase(name, known); };
  if (is("content-range")) {
    ParseContentRange(value, this);
  } else if (is("content-length")) {
    if (!ParseDigits(value, &content_length)) content_length = -1;
  } else if (is("content-encoding")) {
    encoding.assign(value.data(), value.size());
  } else if (is("location")) {
    location.assign(value.data(), value.size());
  } else if (is("retry-after")) {
    retry_after.assign(value.data(), value.size());
  } else if (is("date")) {
    date.assign(value.data(), value.size());
  } else if (is("x-amz-bucket-region")) {
    region.assign(value.data(), value.size());
  } else if (is("etag")) {
    version.etag.assign(value.data(), value.size());
  } else if (is("last-modified")) {
    version.last_modified.assign(value.data(), value.size());
  }
  return false;
}

absl::Status HttpHeadTooLong(absl::string_view text) {
  return absl::ResourceExhaustedError(
      absl::StrCat(text, ": the answer has a head of more than ", kHttpHeadBytesMax, " bytes"));
}

absl::Status CheckRangeResponse(const HttpResponse& response, const HttpRange& range) {
  if (response.code == 416) {
    return absl::DataLossError(absl::StrCat(Text(range), ": the object ends before (416)"));
  }
  if (response.code == 412) return ChangedError(Text(range));
  if (response.code != 200 && response.code != 206) return CodeError(response, Text(range));
  if (range.version != nullptr && IsOther(response.version, *range.version)) {
    return ChangedError(Text(range));
  }
  if (IsEncoded(response)) return EncodedError(response, Text(range));
  if (response.code == 200) return CheckWholeAsRange(response, range);
  const int64_t last = range.offset + range.bytes - 1;
  const int64_t total = response.object_bytes;
  if (total >= 0 && range.object_bytes >= 0 && total != range.object_bytes) {
    return SizeError(range, total);
  }
  if (response.range_first == range.offset && response.range_last < last &&
      response.range_last >= range.offset && response.range_last + 1 == total) {
    return absl::DataLossError(
        absl::StrCat(Text(range), ": the object ends before, at ", total, " bytes"));
  }
  if (response.range_first != range.offset || response.range_last != last ||
      (total >= 0 && total <= last)) {
    return absl::DataLossError(absl::StrCat(
        Text(range), ": the answer is another range: ",
        !response.has_range ? std::string("not said which")
        : response.range_first < 0
            ? std::string("not legible")
            : absl::StrCat(response.range_first, " to ", response.range_last, " of ", total)));
  }
  if (response.content_length >= 0 && response.content_length != range.bytes) {
    return absl::DataLossError(absl::StrCat(Text(range), ": the answer has ",
                                            response.content_length, " bytes, against its range"));
  }
  return absl::OkStatus();
}

absl::Status CheckWholeResponse(const HttpResponse& response, absl::string_view text) {
  if (response.code != 200) return CodeError(response, text);
  if (IsEncoded(response)) return EncodedError(response, text);
  return absl::OkStatus();
}

}  // namespace sluice
