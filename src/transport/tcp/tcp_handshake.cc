// Proofs over both nonces, with a word that tells the two ends apart.
#include "transport/tcp/tcp_handshake.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

constexpr std::array<char, 8> kHelloMagic = {'S', 'l', 'u', 'i', 'c', 'e', 'L', '\n'};
constexpr std::array<char, 8> kWelcomeMagic = {'W', 'e', 'l', 'c', 'o', 'm', 'e', '\n'};
constexpr uint32_t kByteOrder = 0x01020304;
constexpr uint32_t kForeignByteOrder = 0x04030201;
constexpr uint32_t kVersion = 1;
// Both have one length, so that no signed part can be taken for another one.
constexpr absl::string_view kListener = "sluice listener";
constexpr absl::string_view kCaller = "sluice caller  ";

absl::string_view BytesOf(const auto& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

absl::StatusOr<HmacDigest> ProofOf(absl::string_view end, const TcpIdentity& own,
                                   const TcpHello& hello, const TcpNonce& nonce) {
  return HmacSha256(own.secret, {end, BytesOf(hello), BytesOf(nonce)});
}

absl::Status CheckDigest(const absl::StatusOr<HmacDigest>& right, const HmacDigest& given,
                         absl::string_view who) {
  if (!right.ok()) return right.status();
  if (EqualDigests(BytesOf(*right), BytesOf(given))) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(who, " does not know this world's secret"));
}

}  // namespace

absl::StatusOr<TcpHello> MakeHello(const TcpIdentity& own, int dst) {
  TcpHello hello = {kHelloMagic, kByteOrder, kVersion, own.world, own.rank, dst, {}};
  SLUICE_RETURN_IF_ERROR(FillRandom(absl::MakeSpan(hello.nonce)));
  return hello;
}

absl::Status CheckHello(const TcpIdentity& own, const TcpHello& hello) {
  if (hello.magic != kHelloMagic) return absl::PermissionDeniedError("no rank of Sluice");
  if (hello.byte_order == kForeignByteOrder) {
    return absl::PermissionDeniedError("a rank on a machine of another byte order");
  }
  if (hello.byte_order != kByteOrder) return absl::PermissionDeniedError("no rank of Sluice");
  if (hello.version != kVersion) {
    return absl::PermissionDeniedError(absl::StrCat("a rank that speaks version ", hello.version,
                                                    ", and this one version ", kVersion));
  }
  if (hello.world != own.world) return absl::PermissionDeniedError("a rank of another world");
  if (hello.dst != own.rank) {
    return MakeError(absl::StatusCode::kPermissionDenied, "it looks for ", RankInWords(hello.dst));
  }
  if (hello.src < 0 || hello.src >= own.size || hello.src == own.rank) {
    return MakeError(absl::StatusCode::kPermissionDenied, "there is no other ",
                     RankInWords(hello.src));
  }
  return absl::OkStatus();
}

absl::StatusOr<TcpChallenge> MakeChallenge(const TcpIdentity& own, const TcpHello& hello) {
  TcpChallenge challenge = {};
  SLUICE_RETURN_IF_ERROR(FillRandom(absl::MakeSpan(challenge.nonce)));
  SLUICE_ASSIGN_OR_RETURN(challenge.proof, ProofOf(kListener, own, hello, challenge.nonce));
  return challenge;
}

absl::Status CheckChallenge(const TcpIdentity& own, const TcpHello& hello,
                            const TcpChallenge& challenge) {
  return CheckDigest(ProofOf(kListener, own, hello, challenge.nonce), challenge.proof,
                     "who listens there");
}

absl::StatusOr<TcpProof> MakeProof(const TcpIdentity& own, const TcpHello& hello,
                                   const TcpChallenge& challenge) {
  SLUICE_ASSIGN_OR_RETURN(const HmacDigest proof, ProofOf(kCaller, own, hello, challenge.nonce));
  return TcpProof{proof};
}

absl::Status CheckProof(const TcpIdentity& own, const TcpHello& hello,
                        const TcpChallenge& challenge, const TcpProof& proof) {
  return CheckDigest(ProofOf(kCaller, own, hello, challenge.nonce), proof.proof, "who calls");
}

TcpWelcome MakeWelcome() { return {kWelcomeMagic}; }

absl::Status CheckWelcome(const TcpWelcome& welcome) {
  if (welcome.magic == kWelcomeMagic) return absl::OkStatus();
  return absl::PermissionDeniedError("who listens there gives no welcome");
}

}  // namespace sluice
