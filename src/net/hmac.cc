// HMAC-SHA256 by libcrypto.
#include "net/hmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "tensor/error_text.h"

namespace sluice {

absl::StatusOr<HmacDigest> HmacSha256(absl::string_view key,
                                      absl::Span<const absl::string_view> parts) {
  std::string message;
  for (const absl::string_view part : parts) absl::StrAppend(&message, part);
  HmacDigest digest;
  unsigned int length = 0;
  // A null key would mean the key of the call before.
  const unsigned char* result =
      HMAC(EVP_sha256(), key.empty() ? "" : key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(),
           reinterpret_cast<unsigned char*>(digest.data()), &length);
  if (result == nullptr || length != digest.size()) {
    return absl::InternalError("libcrypto gives no HMAC-SHA256");
  }
  return digest;
}

bool EqualDigests(absl::string_view one, absl::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

absl::Status FillRandom(absl::Span<std::byte> bytes) {
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return absl::UnavailableError("the system gives no random bytes");
    filled += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> MakeRandom(size_t bytes) {
  std::string random(bytes, '\0');
  SLUICE_RETURN_IF_ERROR(FillRandom({reinterpret_cast<std::byte*>(random.data()), bytes}));
  return random;
}

}  // namespace sluice
