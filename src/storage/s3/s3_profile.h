// The files in which AWS's tools keep keys and settings: ~/.aws/credentials and ~/.aws/config.
#ifndef SLUICE_SRC_STORAGE_S3_S3_PROFILE_H_
#define SLUICE_SRC_STORAGE_S3_S3_PROFILE_H_

#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

// The value of a variable; "": it is not set. The process has them, and a test may.
using S3Environment = std::function<std::string(const char* name)>;
std::string ProcessVariable(const char* name);

using S3ProfileFields = std::map<std::string, std::string>;

// Adds the fields of the section [name] of a file to `fields`, which keep what they have. True if
// there is such a section. Nested fields and comments are passed over.
bool AddS3Section(absl::string_view text, absl::string_view name, S3ProfileFields* fields);

struct S3Profile {
  std::string name;
  S3ProfileFields fields;
};

// The profile $AWS_PROFILE, or "default". A file that is not there has no profiles. NotFound: none
// has the profile that the environment names. Other errors name a file that cannot be read. Any
// thread, as getenv.
absl::StatusOr<S3Profile> ReadS3Profile(const S3Environment& environment);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_S3_S3_PROFILE_H_
