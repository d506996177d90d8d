// Both sides of a greeting.
#include "world/store/store_greeting.h"

#include <bit>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "net/hmac.h"
#include "tensor/error_text.h"
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
  SLUICE_ASSIGN_OR_RETURN(const auto nonce, MakeRandom(kNonceBytes));
  std::string hello(kMagic);
  hello.push_back(static_cast<char>(side.version));
  hello.push_back(static_cast<char>(OwnOrder(side)));
  hello.push_back(static_cast<char>(side.token.empty() ? 0 : 1));
  return hello + nonce;
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
  return absl::PermissionDeniedError(
      "the client and the store have different tokens: give all members the same one");
}

}  // namespace

absl::StatusOr<std::string> MakeStoreProof(absl::string_view token, absl::string_view who,
                                           absl::string_view said) {
  SLUICE_ASSIGN_OR_RETURN(const HmacDigest proof,
                          HmacSha256(token, {"sluice store ", who, "\n", said}));
  return std::string(reinterpret_cast<const char*>(proof.data()), proof.size());
}

absl::StatusOr<bool> ServerGreeting::Take(absl::string_view frame, std::string* out) {
  const auto kind = static_cast<StoreFrame>(frame.empty() ? 0 : frame[0]);
  const StoreFrame due = said_.empty() ? StoreFrame::kHello : StoreFrame::kProof;
  if (kind != due || welcome_) {
    return absl::InvalidArgumentError("the client does not talk as those of a store do");
  }
  const absl::string_view fields = frame.substr(1);
  SLUICE_RETURN_IF_ERROR(due == StoreFrame::kHello ? TakeHello(fields, out)
                                                   : TakeProof(fields, out));
  return welcome_;
}

absl::Status ServerGreeting::TakeHello(absl::string_view fields, std::string* out) {
  SLUICE_RETURN_IF_ERROR(CheckHello(*side_, fields, kHelloBytes, "store", "client"));
  if (!side_->token.empty() && !HasToken(fields)) {
    return absl::PermissionDeniedError(
        "the store asks for a token, and the client has none: give it the store's, by token or "
        "SLUICE_TOKEN");
  }
  if (side_->token.empty() && HasToken(fields)) {
    return absl::PermissionDeniedError("the client has a token, and the store has none");
  }
  SLUICE_ASSIGN_OR_RETURN(auto answer, MakeHello(*side_));
  absl::StrAppend(&answer, instance_);
  said_ = absl::StrCat(fields, answer);
  *out += EncodeFrame(StoreFrame::kAnswer, answer);
  return absl::OkStatus();
}

absl::Status ServerGreeting::TakeProof(absl::string_view fields, std::string* out) {
  std::string own;
  if (!side_->token.empty()) {
    SLUICE_ASSIGN_OR_RETURN(const auto expected, MakeStoreProof(side_->token, kClient, said_));
    if (!EqualDigests(fields, expected)) return WrongToken();
    SLUICE_ASSIGN_OR_RETURN(own, MakeStoreProof(side_->token, kServer, said_));
  } else if (!fields.empty()) {
    return WrongToken();
  }
  *out += EncodeFrame(StoreFrame::kWelcome, own);
  welcome_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::string> ClientGreeting::Hello() {
  SLUICE_ASSIGN_OR_RETURN(said_, MakeHello(*side_));
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
  SLUICE_RETURN_IF_ERROR(answered_ ? TakeWelcome(fields) : TakeAnswer(fields, out));
  return due == StoreFrame::kWelcome;
}

absl::Status ClientGreeting::TakeAnswer(absl::string_view fields, std::string* out) {
  SLUICE_RETURN_IF_ERROR(CheckHello(*side_, fields, kAnswerBytes, "client", "store"));
  if (HasToken(fields) != !side_->token.empty()) return WrongToken();
  instance_ = std::string(fields.substr(kHelloBytes));
  absl::StrAppend(&said_, fields);
  answered_ = true;
  std::string proof;
  if (!side_->token.empty()) {
    SLUICE_ASSIGN_OR_RETURN(proof, MakeStoreProof(side_->token, kClient, said_));
  }
  *out += EncodeFrame(StoreFrame::kProof, proof);
  return absl::OkStatus();
}

absl::Status ClientGreeting::TakeWelcome(absl::string_view fields) {
  if (side_->token.empty()) return fields.empty() ? absl::OkStatus() : WrongToken();
  SLUICE_ASSIGN_OR_RETURN(const auto expected, MakeStoreProof(side_->token, kServer, said_));
  return EqualDigests(fields, expected) ? absl::OkStatus() : WrongToken();
}

}  // namespace sluice
