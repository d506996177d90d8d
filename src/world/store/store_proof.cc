// Proofs and random bytes as texts.
#include "world/store/store_proof.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "net/hmac.h"

namespace sluice {

absl::StatusOr<std::string> MakeStoreRandom(size_t bytes) {
  std::string random(bytes, '\0');
  const absl::Status status =
      FillRandom(absl::MakeSpan(reinterpret_cast<std::byte*>(&random[0]), random.size()));
  if (!status.ok()) return status;
  return random;
}

absl::StatusOr<std::string> MakeStoreProof(absl::string_view token, absl::string_view who,
                                           absl::string_view said) {
  const absl::StatusOr<HmacDigest> proof = HmacSha256(token, {"sluice store ", who, "\n", said});
  if (!proof.ok()) return proof.status();
  return std::string(reinterpret_cast<const char*>(proof->data()), proof->size());
}

bool IsSameProof(absl::string_view a, absl::string_view b) {
  HmacDigest one;
  HmacDigest other;
  if (a.size() != one.size() || b.size() != other.size()) return false;
  std::copy(a.begin(), a.end(), reinterpret_cast<char*>(one.data()));
  std::copy(b.begin(), b.end(), reinterpret_cast<char*>(other.data()));
  return EqualDigests(one, other);
}

}  // namespace sluice
