// Checks and joins URLs.
#include "storage/http/http_url.h"

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

bool IsUnreserved(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return absl::ascii_isalnum(byte) || c == '-' || c == '.' || c == '_' || c == '~';
}

}  // namespace

std::string PercentEncoded(absl::string_view text, bool keeps_slash) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (IsUnreserved(c) || (keeps_slash && c == '/')) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kDigits[byte / 16];
    encoded += kDigits[byte % 16];
  }
  return encoded;
}

std::string ShownUrl(absl::string_view url) {
  const size_t tail = url.find_first_of("?#");
  const size_t user_end = url.rfind('@');
  if (user_end == url.npos) return Quoted(url.substr(0, tail));
  // A password may have a '?', and a signature an '@': which it is cannot be told.
  if (user_end > tail) return "\"...\"";
  return Quoted(absl::StrCat("...", url.substr(user_end, tail - user_end)));
}

absl::Status CheckHttpUrl(absl::string_view url) {
  absl::string_view rest = url;
  if (!absl::ConsumePrefix(&rest, "http://") && !absl::ConsumePrefix(&rest, "https://")) {
    return absl::InvalidArgumentError(
        absl::StrCat("not an http:// or https:// URL: ", ShownUrl(url)));
  }
  const absl::string_view host = rest.substr(0, rest.find('/'));
  if (absl::StrContains(host, '@')) {
    // Not repeated: it may hold a password.
    return absl::InvalidArgumentError("a URL with a user or password in it");
  }
  if (host.empty() || host.front() == ':') {
    return absl::InvalidArgumentError(absl::StrCat("a URL without a host: ", ShownUrl(url)));
  }
  // A password with a slash reads like a port up to the slash.
  const size_t colon = host.find(':', host.find(']') == host.npos ? 0 : host.find(']'));
  const absl::string_view port = colon == host.npos ? "" : host.substr(colon + 1);
  if (port.find_first_not_of("0123456789") != port.npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("a URL whose port is no number: ", ShownUrl(url)));
  }
  if (absl::StrContains(rest, '?')) {
    return absl::InvalidArgumentError(
        absl::StrCat("a URL with a query: ", ShownUrl(url), "; a pre-signed one is good for a ",
                     "single object, and objects are looked for below a base URL"));
  }
  for (const char c : rest) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte >= 0x7F || c == '#' || c == '\\') {
      return absl::InvalidArgumentError(absl::StrCat(
          "a URL with a fragment, or with what must be percent-encoded: ", ShownUrl(url)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> JoinHttpUrl(absl::string_view base, absl::string_view name) {
  SLUICE_RETURN_IF_ERROR(CheckHttpUrl(base));
  const auto bad = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("object name '", name, "' ", why));
  };
  if (name.empty()) return bad("is empty");
  if (name.front() == '/' || name.front() == '\\') return bad("is absolute");
  if (absl::StrContains(name, "://")) return bad("is a URL of its own");
  if (absl::StrContains(name, '\0')) return bad("has a zero byte");
  // Some servers take a backslash for a slash.
  const std::vector<absl::string_view> parts = absl::StrSplit(name, absl::ByAnyChar("/\\"));
  for (const absl::string_view part : parts) {
    if (part.empty() || part == ".") return bad("has an empty part");
    if (part == "..") return bad("leaves the base URL");
  }
  return absl::StrCat(absl::StripSuffix(base, "/"), "/", PercentEncoded(name));
}

}  // namespace sluice
