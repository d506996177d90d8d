// The first words of the two ends of a connection: who they are, and that they know the secret.
//
// The caller says hello. The listener answers with a challenge and its own proof. The caller gives
// its proof. The listener says welcome, or nothing. All of them are of fixed length. Values alone:
// no sockets.
#ifndef SLUICE_SRC_TRANSPORT_TCP_TCP_HANDSHAKE_H_
#define SLUICE_SRC_TRANSPORT_TCP_TCP_HANDSHAKE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "net/hmac.h"

namespace sluice {

struct TcpIdentity {
  int rank = 0;
  int size = 1;
  uint64_t world = 0;
  std::string secret;
};

using TcpNonce = std::array<std::byte, 32>;

struct TcpHello {
  std::array<char, 8> magic;
  uint32_t byte_order;
  uint32_t version;
  uint64_t world;
  int32_t src;
  int32_t dst;
  TcpNonce nonce;
};
static_assert(sizeof(TcpHello) == 64);

struct TcpChallenge {
  TcpNonce nonce;
  HmacDigest proof;
};
static_assert(sizeof(TcpChallenge) == 64);

struct TcpProof {
  HmacDigest proof;
};

struct TcpWelcome {
  std::array<char, 8> magic;
};

absl::StatusOr<TcpHello> MakeHello(const TcpIdentity& own, int dst);
// Whether it is meant for this rank; PermissionDenied says why not.
absl::Status CheckHello(const TcpIdentity& own, const TcpHello& hello);

absl::StatusOr<TcpChallenge> MakeChallenge(const TcpIdentity& own, const TcpHello& hello);
// Whether the listener knows the secret; PermissionDenied: it does not.
absl::Status CheckChallenge(const TcpIdentity& own, const TcpHello& hello,
                            const TcpChallenge& challenge);

absl::StatusOr<TcpProof> MakeProof(const TcpIdentity& own, const TcpHello& hello,
                                   const TcpChallenge& challenge);
// Whether the caller knows the secret; PermissionDenied: it does not.
absl::Status CheckProof(const TcpIdentity& own, const TcpHello& hello,
                        const TcpChallenge& challenge, const TcpProof& proof);

TcpWelcome MakeWelcome();
absl::Status CheckWelcome(const TcpWelcome& welcome);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_TCP_TCP_HANDSHAKE_H_
