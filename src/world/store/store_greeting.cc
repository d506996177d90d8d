// Both sides of a greeting.
#include "world/store/store_greeting.h"

#include <bit>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "net/hmac.h"
#include "world/store/store_wire.h"

namespace sluice {
namespace {

// Fields of a hello: this, the version, the byte order, whether there is a token, and a nonce. An
// answer has the server's instance beside these.
constexpr absl::string_view kMagic = "SLUICEST";
constexpr size_t kVersionAt = kMagic.size();
constexpr size_t kByteOrderAt = kVersionAt + 1;
constexpr size_t kTokenAt = kByteOrderAt + 1;
constexpr size_t kNonceAt = kTokenAt + 1;
constexpr size_t kNonceBytes = 32;
constexpr size_t kHelloBytes = kNonceAt + kNonceBytes;
constexpr size_t kAnswerBytes = kHelloBytes + kStoreInstanceBytes;

constexpr absl::string_view kClient = "client";
constexpr absl::string_view kServer = "server";

uint8_t OwnOrder(const StoreSide& side) {
  if (side.byte_order != 0) return side.byte_order;
  return std::endian::native == std::endian::little ? 1 : 2;
}

const char* OrderText(uint8_t order) {
  return order == 1 ? "the lowest byte first" : order == 2 ? "the highest byte first" : "unknown";
}

absl::StatusOr<std::string> MakeHello(const StoreSide& side) {
  const auto nonce = MakeRandom(kNonceBytes);
  if (!nonce.ok()) return nonce.status();
  std::string hello(kMagic);
  hello.push_back(static_cast<char>(side.version));
  hello.push_back(static_cast<char>(OwnOrder(side)));
  hello.push_back(static_cast<char>(side.token.empty() ? 0 : 1));
  return hello + *nonce;
}

bool HasToken(absl::string_view hello) { return hello[kTokenAt] != 0; }

// Compares what `other` says with `side`. Reads nothing but the number of another version.
absl::Status CheckHello(const StoreSide& side, absl::string_view other, size_t bytes,
                        absl::string_view own_name, absl::string_view other_name) {
  if (!absl::StartsWith(other, kMagic) || other.size() <= kTokenAt) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", other_name, " does not talk as those of a store do"));
  }
  const auto version = static_cast<uint8_t>(other[kVersionAt]);
  if (version != side.version) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the ", own_name, " has version ", side.version, " of the store's protocol, and the ",
        other_name, " version ", version, ": use one release of Sluice for both"));
  }
  const auto order = static_cast<uint8_t>(other[kByteOrderAt]);
  if (order != OwnOrder(side)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the hosts of the ", own_name, " and the ", other_name,
        " have different byte orders: ", OrderText(OwnOrder(side)), ", and ", OrderText(order)));
  }
  if (other.size() != bytes) {
    return absl::InvalidArgumentError(absl::StrCat("the ", other_name, "'s hello is of ",
                                                   other.size(), " bytes, not of ", bytes));
  }
  return absl::OkStatus();
}

absl::Status WrongToken() {
  return absl::PermissionDeniedError("the client and the store have different tokens");
}

}  // namespace

absl::StatusOr<std::string> MakeStoreProof(absl::string_view token, absl::string_view who,
                                           absl::string_view said) {
  const absl::StatusOr<HmacDigest> proof = HmacSha256(token, {"sluice store ", who, "\n", said});
  if (!proof.ok()) return proof.status();
  return std::string(reinterpret_cast<const char*>(proof->data()), proof->size());
}

absl::StatusOr<bool> ServerGreeting::Take(absl::string_view frame, std::string* out) {
  const auto kind = static_cast<StoreFrame>(frame.empty() ? 0 : frame[0]);
  const StoreFrame due = said_.empty() ? StoreFrame::kHello : StoreFrame::kProof;
  if (kind != due || welcome_) {
    return absl::InvalidArgumentError("the client does not talk as those of a store do");
  }
  const absl::string_view fields = frame.substr(1);
  absl::Status status = due == StoreFrame::kHello ? TakeHello(fields, out) : TakeProof(fields, out);
  if (!status.ok()) return status;
  return welcome_;
}

absl::Status ServerGreeting::TakeHello(absl::string_view fields, std::string* out) {
  absl::Status status = CheckHello(*side_, fields, kHelloBytes, "store", "client");
  if (!status.ok()) return status;
  if (!side_->token.empty() && !HasToken(fields)) {
    return absl::PermissionDeniedError("the store asks for a token, and the client has none");
  }
  if (side_->token.empty() && HasToken(fields)) {
    return absl::PermissionDeniedError("the client has a token, and the store has none");
  }
  auto answer = MakeHello(*side_);
  if (!answer.ok()) return answer.status();
  absl::StrAppend(&*answer, instance_);
  said_ = absl::StrCat(fields, *answer);
  *out += EncodeFrame(StoreFrame::kAnswer, *answer);
  return absl::OkStatus();
}

absl::Status ServerGreeting::TakeProof(absl::string_view fields, std::string* out) {
  std::string own;
  if (!side_->token.empty()) {
    const auto expected = MakeStoreProof(side_->token, kClient, said_);
    if (!expected.ok()) return expected.status();
    if (!EqualDigests(fields, *expected)) return WrongToken();
    auto proof = MakeStoreProof(side_->token, kServer, said_);
    if (!proof.ok()) return proof.status();
    own = *std::move(proof);
  } else if (!fields.empty()) {
    return WrongToken();
  }
  *out += EncodeFrame(StoreFrame::kWelcome, own);
  welcome_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::string> ClientGreeting::Hello() {
  auto hello = MakeHello(*side_);
  if (!hello.ok()) return hello.status();
  said_ = *std::move(hello);
  return EncodeFrame(StoreFrame::kHello, said_);
}

absl::StatusOr<bool> ClientGreeting::Take(absl::string_view frame, std::string* out) {
  const auto kind = static_cast<StoreFrame>(frame.empty() ? 0 : frame[0]);
  if (kind == StoreFrame::kError) return ParseError(frame);
  const StoreFrame due = answered_ ? StoreFrame::kWelcome : StoreFrame::kAnswer;
  if (kind != due) {
    return absl::InvalidArgumentError("the server does not talk as a store does");
  }
  const absl::string_view fields = frame.substr(1);
  absl::Status status = answered_ ? TakeWelcome(fields) : TakeAnswer(fields, out);
  if (!status.ok()) return status;
  return due == StoreFrame::kWelcome;
}

absl::Status ClientGreeting::TakeAnswer(absl::string_view fields, std::string* out) {
  absl::Status status = CheckHello(*side_, fields, kAnswerBytes, "client", "store");
  if (!status.ok()) return status;
  if (HasToken(fields) != !side_->token.empty()) return WrongToken();
  instance_ = std::string(fields.substr(kHelloBytes));
  absl::StrAppend(&said_, fields);
  answered_ = true;
  std::string proof;
  if (!side_->token.empty()) {
    auto own = MakeStoreProof(side_->token, kClient, said_);
    if (!own.ok()) return own.status();
    proof = *std::move(own);
  }
  *out += EncodeFrame(StoreFrame::kProof, proof);
  return absl::OkStatus();
}

absl::Status ClientGreeting::TakeWelcome(absl::string_view fields) {
  if (side_->token.empty()) return fields.empty() ? absl::OkStatus() : WrongToken();
  const auto expected = MakeStoreProof(side_->token, kServer, said_);
  if (!expected.ok()) return expected.status();
  return EqualDigests(fields, *expected) ? absl::OkStatus() : WrongToken();
}

}  // namespace sluice
