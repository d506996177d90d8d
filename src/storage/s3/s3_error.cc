// Knows the codes that say more than their number.
#include "storage/s3/s3_error.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "storage/asked_pause.h"
#include "storage/s3/s3_xml.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

template <size_t kCount>
bool IsOneOf(absl::string_view code, const std::array<absl::string_view, kCount>& codes) {
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

// Some have the number of an error that stays.
constexpr std::array<absl::string_view, 8> kPassing = {
    "SlowDown",         "InternalError", "ServiceUnavailable",  "RequestTimeout",
    "RequestThrottled", "Throttling",    "ThrottlingException", "BandwidthLimitExceeded"};
constexpr std::array<absl::string_view, 3> kExpiry = {"ExpiredToken", "ExpiredTokenException",
                                                      "TokenRefreshRequired"};

// A short word; anything else may be what should not be shown.
std::string WordOf(absl::string_view text) {
  constexpr size_t kBytesMax = 64;
  const bool is_word =
      text.size() <= kBytesMax && std::all_of(text.begin(), text.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.';
      });
  return is_word ? std::string(text) : std::string();
}

std::string AdviceOf(const S3Answer& answer, absl::string_view code) {
  const std::string region =
      WordOf(XmlField(answer.body, "Region").value_or(answer.response.region));
  if (!region.empty() && region != answer.region) {
    return absl::StrCat("; the bucket's region is ", region, ", and the request was made for ",
                        answer.region);
  }
  if (code == "RequestTimeTooSkewed") {
    return absl::StrCat("; the clock of this machine is wrong, or the store's, which says ",
                        Quoted(answer.response.date));
  }
  if (code == "SignatureDoesNotMatch") return "; the secret key is not that of the access key";
  if (IsS3Expiry(code)) return "; the temporary keys have ended";
  const bool is_refused = answer.response.code == 401 || answer.response.code == 403;
  if (is_refused && !answer.unsigned_because.empty()) {
    return absl::StrCat("; the request was not signed: ", answer.unsigned_because);
  }
  return "";
}

absl::StatusCode StatusOf(absl::string_view code, absl::StatusCode before) {
  if (IsOneOf(code, kPassing)) return absl::StatusCode::kUnavailable;
  if (IsS3Expiry(code)) return absl::StatusCode::kPermissionDenied;
  return before;
}

}  // namespace

std::string S3ErrorCode(absl::string_view body) {
  return WordOf(XmlField(body, "Code").value_or(""));
}

bool IsS3Expiry(absl::string_view code) { return IsOneOf(code, kExpiry); }

absl::Status ExplainS3Error(const S3Answer& answer, const absl::Status& status) {
  const int number = answer.response.code;
  constexpr int kPreconditionFailed = 412;
  constexpr int kRangeNotSatisfiable = 416;
  if (number < 300 || number == kPreconditionFailed || number == kRangeNotSatisfiable) {
    return status;
  }
  const std::string code = S3ErrorCode(answer.body);
  absl::Status explained(
      StatusOf(code, status.code()),
      absl::StrCat(status.message(), code.empty() ? "" : ", ", code, AdviceOf(answer, code)));
  const absl::Duration pause = AskedPauseOf(status);
  if (!absl::IsUnavailable(explained) || pause == absl::ZeroDuration()) return explained;
  return WithAskedPause(std::move(explained), pause);
}

}  // namespace sluice
