// Options come first, then the environment, then a profile.
#include "storage/s3/s3_access.h"

#include <algorithm>
#include <initializer_list>
#include <mutex>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "storage/http/http_url.h"
#include "storage/s3/s3_error.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

constexpr absl::Duration kRenewBefore = absl::Minutes(1);
// A function that fails is not asked for each request, while the keys are good.
constexpr absl::Duration kAskAgainAfter = absl::Seconds(1);

// A line's end in a key would begin a header of its own.
bool IsOneLine(absl::string_view key) {
  return std::none_of(key.begin(), key.end(),
                      [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); });
}

absl::Status CheckCredentials(const S3Credentials& keys) {
  if (keys.access_key.empty() != keys.secret_key.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "S3 credentials without ", keys.access_key.empty() ? "an access key" : "a secret key"));
  }
  if (!IsOneLine(keys.access_key) || !IsOneLine(keys.secret_key) ||
      !IsOneLine(keys.session_token)) {
    return absl::FailedPreconditionError("S3 credentials with control characters in them");
  }
  return absl::OkStatus();
}

class Access final : public S3Access {
 public:
  Access(std::string endpoint, std::string region, S3CredentialsFunction ask, S3Credentials keys,
         std::string unsigned_because)
      : endpoint_(std::move(endpoint)),
        region_(std::move(region)),
        ask_(std::move(ask)),
        unsigned_because_(std::move(unsigned_because)),
        keys_(std::move(keys)) {
    if (ask_ != nullptr) renewal_ = absl::InfinitePast();
  }

  const std::string& endpoint() const override { return endpoint_; }
  const std::string& region() const override { return region_; }

  absl::StatusOr<HttpKeys> Keys() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (renewal_ != absl::InfiniteFuture()) SLUICE_RETURN_IF_ERROR(Renew());
    HttpKeys keys;
    if (keys_.access_key.empty()) return keys;
    keys.scheme = absl::StrCat("aws:amz:", region_, ":s3");
    keys.user = keys_.access_key;
    keys.password = keys_.secret_key;
    keys.headers.emplace_back("x-amz-content-sha256: UNSIGNED-PAYLOAD");
    if (!keys_.session_token.empty()) {
      keys.headers.push_back(absl::StrCat("x-amz-security-token: ", keys_.session_token));
    }
    keys.number = number_;
    return keys;
  }

  absl::Status Explain(const HttpResponse& response, absl::string_view body, int64_t number,
                       const absl::Status& status) override {
    absl::Status explained =
        ExplainS3Error({response, body, region_, IsSigned() ? "" : unsigned_because_}, status);
    if (ask_ == nullptr || !IsS3Expiry(S3ErrorCode(body))) return explained;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (number == number_) {
      keys_.expires = absl::InfinitePast();
      renewal_ = absl::InfinitePast();
    }
    return absl::UnavailableError(absl::StrCat(explained.message(), ", and are asked for anew"));
  }

 private:
  bool IsSigned() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return !keys_.access_key.empty();
  }

  // With the lock. Keys that are still good stay where no others come.
  absl::Status Renew() {
    const absl::Time now = absl::Now();
    if (now < renewal_) return absl::OkStatus();
    absl::StatusOr<S3Credentials> fresh = ask_();
    absl::Status status = fresh.status();
    if (status.ok()) status = CheckCredentials(*fresh);
    if (status.ok() && fresh->expires <= now) {
      status = absl::FailedPreconditionError("S3 credentials that have already ended");
    }
    if (!status.ok()) {
      if (number_ == 0 || keys_.expires <= now) return Annotate(status, "S3 credentials");
      renewal_ = now + kAskAgainAfter;
      return absl::OkStatus();
    }
    keys_ = *std::move(fresh);
    ++number_;
    renewal_ = RenewalOf(now, keys_.expires);
    return absl::OkStatus();
  }

  const std::string endpoint_;
  const std::string region_;
  const S3CredentialsFunction ask_;  // null: the keys stay
  const std::string unsigned_because_;
  std::mutex mutex_;
  S3Credentials keys_;
  absl::Time renewal_ = absl::InfiniteFuture();
  int64_t number_ = 0;
};

// Looks in one place after the other.
class Settings {
 public:
  explicit Settings(const S3Environment& environment) : environment_(environment) {}

  absl::Status Read() {
    SLUICE_ASSIGN_OR_RETURN(profile_, ReadS3Profile(environment_));
    return absl::OkStatus();
  }
  const std::string& profile_name() const { return profile_.name; }

  std::string Field(const char* name) const {
    const auto found = profile_.fields.find(name);
    return found == profile_.fields.end() ? "" : found->second;
  }

  std::string Find(const std::string& option, std::initializer_list<const char*> variables,
                   const char* field) const {
    if (!option.empty()) return option;
    for (const char* const variable : variables) {
      if (std::string value = environment_(variable); !value.empty()) return value;
    }
    return Field(field);
  }

  absl::StatusOr<S3Credentials> Keys() const {
    S3Credentials keys;
    keys.access_key = environment_("AWS_ACCESS_KEY_ID");
    keys.secret_key = environment_("AWS_SECRET_ACCESS_KEY");
    if (!keys.access_key.empty() || !keys.secret_key.empty()) {
      keys.session_token = environment_("AWS_SESSION_TOKEN");
      return CheckedKeys(keys, "$AWS_ACCESS_KEY_ID and $AWS_SECRET_ACCESS_KEY");
    }
    keys = {Field("aws_access_key_id"), Field("aws_secret_access_key"), Field("aws_session_token")};
    if (keys.access_key.empty() && keys.secret_key.empty()) {
      for (const char* const other :
           {"credential_process", "role_arn", "sso_session", "sso_start_url"}) {
        if (Field(other).empty()) continue;
        return absl::FailedPreconditionError(
            absl::StrCat("profile ", Quoted(profile_.name), " of AWS has its keys by ", other,
                         ", which is not followed: give a function of credentials, or the keys "
                         "in the environment"));
      }
    }
    return CheckedKeys(keys, absl::StrCat("profile ", Quoted(profile_.name), " of AWS"));
  }

 private:
  static absl::StatusOr<S3Credentials> CheckedKeys(const S3Credentials& keys,
                                                   absl::string_view place) {
    SLUICE_RETURN_IF_ERROR(Annotate(CheckCredentials(keys), place));
    return keys;
  }

  const S3Environment& environment_;
  S3Profile profile_;
};

absl::Status CheckRegion(absl::string_view region) {
  const bool is_good = std::all_of(region.begin(), region.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-';
  });
  if (is_good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a region of S3 has letters, digits and '-', and ", Quoted(region), " has not"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<S3Access>> FindS3Access(const S3Options& options,
                                                       const S3Environment& environment) {
  Settings settings(environment);
  SLUICE_RETURN_IF_ERROR(settings.Read());
  const std::string endpoint =
      settings.Find(options.endpoint, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}, "endpoint_url");
  if (!endpoint.empty()) {
    SLUICE_RETURN_IF_ERROR(Annotate(CheckHttpUrl(endpoint), "endpoint of S3"));
  }
  std::string region =
      settings.Find(options.region, {"AWS_REGION", "AWS_DEFAULT_REGION"}, "region");
  if (region.empty()) region = "us-east-1";
  SLUICE_RETURN_IF_ERROR(CheckRegion(region));
  S3Credentials keys;
  if (options.credentials == nullptr) {
    SLUICE_ASSIGN_OR_RETURN(keys, settings.Keys());
  }
  return std::make_shared<Access>(
      endpoint, std::move(region), options.credentials, std::move(keys),
      absl::StrCat("no keys are in the options, in $AWS_ACCESS_KEY_ID, or in profile ",
                   Quoted(settings.profile_name()), " of AWS"));
}

absl::Time RenewalOf(absl::Time now, absl::Time expires) {
  if (expires == absl::InfiniteFuture()) return expires;
  return expires - std::min(kRenewBefore, (expires - now) / 4);
}

}  // namespace sluice
