// HMAC-SHA256 by OpenSSL's libcrypto.
#include "world/store/store_proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace sluice {

absl::StatusOr<std::string> MakeStoreRandom(size_t bytes) {
  std::string random(bytes, '\0');
  size_t have = 0;
  while (have < bytes) {
    const ssize_t got = getrandom(&random[have], bytes - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return absl::UnavailableError(absl::StrCat("no random numbers: errno ", errno));
    have += static_cast<size_t>(got);
  }
  return random;
}

absl::StatusOr<std::string> MakeStoreProof(absl::string_view token, absl::string_view who,
                                           absl::string_view said) {
  const std::string text = absl::StrCat("sluice store ", who, "\n", said);
  std::string proof(kStoreProofBytes, '\0');
  unsigned length = 0;
  const unsigned char* const made =
      HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(&proof[0]), &length);
  if (made == nullptr || length != kStoreProofBytes) {
    return absl::InternalError("OpenSSL makes no HMAC-SHA256");
  }
  return proof;
}

bool IsSameProof(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace sluice
