// Reads sections of lines "name = value".
#include "storage/s3/s3_profile.h"

#include <cstdint>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "storage/file/whole_file.h"
#include "tensor/error_text.h"
#include "tensor/quoted.h"

namespace sluice {
namespace {

// A file that is not there is empty.
absl::StatusOr<std::string> ReadProfiles(const std::string& path) {
  constexpr int64_t kBytesMax = 1 << 20;
  absl::StatusOr<WholeFile> file = ReadWholeFile(path, kBytesMax);
  if (file.ok()) return std::move(file->text);
  if (absl::IsNotFound(file.status())) return std::string();
  return Annotate(file.status(), "profiles of AWS");
}

}  // namespace

std::string ProcessVariable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT: nobody sets variables meanwhile
  return value == nullptr ? "" : value;
}

bool AddS3Section(absl::string_view text, absl::string_view name, S3ProfileFields* fields) {
  bool is_there = false;
  bool is_in = false;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::string_view plain = absl::StripAsciiWhitespace(line);
    if (plain.empty() || plain.front() == '#' || plain.front() == ';') continue;
    if (absl::ConsumePrefix(&plain, "[")) {
      is_in = absl::StripAsciiWhitespace(plain.substr(0, plain.find(']'))) == name;
      is_there = is_there || is_in;
      continue;
    }
    const bool is_nested = absl::ascii_isspace(static_cast<unsigned char>(line.front()));
    const size_t equals = plain.find('=');
    if (!is_in || is_nested || equals == plain.npos) continue;
    fields->try_emplace(absl::AsciiStrToLower(absl::StripAsciiWhitespace(plain.substr(0, equals))),
                        absl::StripAsciiWhitespace(plain.substr(equals + 1)));
  }
  return is_there;
}

absl::StatusOr<S3Profile> ReadS3Profile(const S3Environment& environment) {
  const auto path_of = [&](const char* variable, absl::string_view usual) {
    const std::string given = environment(variable);
    return given.empty() ? absl::StrCat(environment("HOME"), "/.aws/", usual) : given;
  };
  S3Profile profile;
  const std::string named = environment("AWS_PROFILE");
  profile.name = named.empty() ? "default" : named;
  const std::string credentials_path = path_of("AWS_SHARED_CREDENTIALS_FILE", "credentials");
  const std::string config_path = path_of("AWS_CONFIG_FILE", "config");
  SLUICE_ASSIGN_OR_RETURN(const std::string credentials, ReadProfiles(credentials_path));
  SLUICE_ASSIGN_OR_RETURN(const std::string config, ReadProfiles(config_path));
  const std::string section =
      named.empty() || named == "default" ? "default" : absl::StrCat("profile ", named);
  const bool has_keys = AddS3Section(credentials, profile.name, &profile.fields);
  const bool has_settings = AddS3Section(config, section, &profile.fields);
  if (has_keys || has_settings || named.empty()) return profile;
  return absl::NotFoundError(absl::StrCat("$AWS_PROFILE is ", Quoted(named), ", which neither ",
                                          QuotedPath(credentials_path), " nor ",
                                          QuotedPath(config_path), " has"));
}

}  // namespace sluice
