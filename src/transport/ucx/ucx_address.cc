// Addresses as bytes.
#include "transport/ucx/ucx_address.h"

#include <cstddef>
#include <cstring>

#include "absl/status/status.h"
#include "tensor/stable_hash.h"

namespace sluice {
namespace {

struct UcxAddressHead {
  char name[8];
  uint64_t check;  // of all that follows
  uint64_t token;
};
constexpr char kUcxAddressName[sizeof(UcxAddressHead::name) + 1] = "SluiceU1";

uint64_t ChecksumOf(absl::string_view bytes) {
  StableHash hash;
  hash.AddText(bytes);
  return hash.value();
}

}  // namespace

std::string PackUcxAddress(const UcxAddress& address) {
  UcxAddressHead head = {};
  std::memcpy(head.name, kUcxAddressName, sizeof(head.name));
  head.token = address.token;
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
  bytes += address.ucx;
  const size_t checked_from = offsetof(UcxAddressHead, token);
  const uint64_t check = ChecksumOf(absl::string_view(bytes).substr(checked_from));
  std::memcpy(bytes.data() + offsetof(UcxAddressHead, check), &check, sizeof(check));
  return bytes;
}

absl::StatusOr<UcxAddress> UnpackUcxAddress(absl::string_view bytes) {
  UcxAddressHead head;
  if (bytes.size() <= sizeof(head)) return absl::InvalidArgumentError("the UCX address is cut off");
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (std::memcmp(head.name, kUcxAddressName, sizeof(head.name)) != 0) {
    return absl::InvalidArgumentError("this is no UCX address of this version of Sluice");
  }
  if (head.check != ChecksumOf(bytes.substr(offsetof(UcxAddressHead, token)))) {
    return absl::InvalidArgumentError("the UCX address has been damaged");
  }
  return UcxAddress{head.token, std::string(bytes.substr(sizeof(head)))};
}

}  // namespace sluice
