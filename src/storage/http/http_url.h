// URLs of objects: names joined to a base URL, so that none leads out of it.
#ifndef SLUICE_SRC_STORAGE_HTTP_HTTP_URL_H_
#define SLUICE_SRC_STORAGE_HTTP_HTTP_URL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

// `url` as it may stand in a message: without what follows '?' or '#', which may be a signature,
// and without a user and password.
std::string ShownUrl(absl::string_view url);

// Text in which all but RFC 3986's unreserved characters, and the slash where `keeps_slash`,
// becomes "%XX".
std::string PercentEncoded(absl::string_view text, bool keeps_slash = true);

// InvalidArgument unless `url` is http:// or https://, a host, maybe a port, and a path. It may
// have no user and password (they would be seen in messages), no query, no fragment, no blank. A
// pre-signed URL is good for one object alone; objects and their index lie below a base URL.
absl::Status CheckHttpUrl(absl::string_view url);

// The URL of an object below `base`, a URL as above with or without a slash at its end. `name` is
// a relative path of plain characters: what is special in a URL is percent-encoded. InvalidArgument
// if it is empty, absolute, a URL itself, or has a part that is empty, "." or "..".
absl::StatusOr<std::string> JoinHttpUrl(absl::string_view base, absl::string_view name);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_HTTP_HTTP_URL_H_
