// Keyed digests of messages, for processes that prove to each other that they know one secret.
#ifndef SLUICE_SRC_NET_HMAC_H_
#define SLUICE_SRC_NET_HMAC_H_

#include <array>
#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace sluice {

using HmacDigest = std::array<std::byte, 32>;

// HMAC-SHA256 of the parts, one after the other. Callers that want to tell parts apart give them
// fixed lengths. An empty key is a key like others. Internal: the library refused.
absl::StatusOr<HmacDigest> HmacSha256(absl::string_view key,
                                      absl::Span<const absl::string_view> parts);

// Takes as long whatever the bytes are, if they are of one length. Otherwise: false.
bool EqualDigests(absl::string_view one, absl::string_view other);

// Bytes that nobody can foretell. Unavailable: the system has none.
absl::Status FillRandom(absl::Span<std::byte> bytes);
absl::StatusOr<std::string> MakeRandom(size_t bytes);

}  // namespace sluice

#endif  // SLUICE_SRC_NET_HMAC_H_
