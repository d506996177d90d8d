// How both sides prove that they know the token, without sending it.
#ifndef SLUICE_SRC_WORLD_STORE_STORE_PROOF_H_
#define SLUICE_SRC_WORLD_STORE_STORE_PROOF_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

inline constexpr size_t kStoreNonceBytes = 32;
inline constexpr size_t kStoreProofBytes = 32;
inline constexpr size_t kMaxStoreTokenBytes = 4096;

// Bytes that nobody can guess. Unavailable: the system has none.
absl::StatusOr<std::string> MakeStoreRandom(size_t bytes);

// HMAC-SHA256 of all that was said before, by who `who` names. So neither side can hand back the
// other's proof, nor use one of another connection.
absl::StatusOr<std::string> MakeStoreProof(absl::string_view token, absl::string_view who,
                                           absl::string_view said);

// Takes as long whatever the bytes are.
bool IsSameProof(absl::string_view a, absl::string_view b);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_STORE_PROOF_H_
