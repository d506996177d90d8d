// Cards as fields, each behind its length.
#include "world/card.h"

#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

// Another number for another form of any field, reach included.
constexpr absl::string_view kCardFormat = "sluice-card-2";
constexpr size_t kFields = 9;
constexpr size_t kTextBytesMax = 1000;  // of what people read

void Append(absl::string_view field, std::string* bytes) {
  absl::StrAppend(bytes, field.size(), ":", field);
}

// Takes the first field off `bytes`.
bool Take(absl::string_view* bytes, absl::string_view* field) {
  constexpr size_t kDigitsMax = 6;
  const size_t colon = bytes->substr(0, kDigitsMax + 1).find(':');
  size_t length = 0;
  if (colon == bytes->npos || !absl::SimpleAtoi(bytes->substr(0, colon), &length)) return false;
  bytes->remove_prefix(colon + 1);
  if (length > bytes->size()) return false;
  *field = bytes->substr(0, length);
  bytes->remove_prefix(length);
  return true;
}

}  // namespace

std::string CardBytes(const Card& card) {
  std::string reach(sizeof(ReachCard), '\0');
  std::memcpy(reach.data(), &card.reach, sizeof(ReachCard));
  std::string bytes;
  Append(kCardFormat, &bytes);
  Append(absl::StrCat(static_cast<int>(card.status.code())), &bytes);
  Append(card.status.message().substr(0, kTextBytesMax), &bytes);
  Append(card.wires, &bytes);
  Append(card.tcp_address, &bytes);
  Append(card.ucx_address, &bytes);
  Append(card.ucx_version, &bytes);
  Append(absl::string_view(card.ucx_lack).substr(0, kTextBytesMax), &bytes);
  Append(reach, &bytes);
  return bytes;
}

absl::StatusOr<Card> ParseCard(absl::string_view bytes) {
  std::vector<absl::string_view> fields(kFields);
  if (Take(&bytes, &fields[0]) && fields[0] != kCardFormat) {
    return absl::FailedPreconditionError("it runs another version of Sluice");
  }
  const absl::Status bad = absl::InvalidArgumentError("what it said at the store is no address");
  for (size_t i = 1; i < kFields; ++i) {
    if (!Take(&bytes, &fields[i])) return bad;
  }
  Card card;
  int code = 0;
  if (!bytes.empty() || !absl::SimpleAtoi(fields[1], &code) || code < 0 || code > 16 ||
      fields[8].size() != sizeof(ReachCard)) {
    return bad;
  }
  card.status = absl::Status(static_cast<absl::StatusCode>(code), fields[2]);
  card.wires = std::string(fields[3]);
  card.tcp_address = std::string(fields[4]);
  card.ucx_address = std::string(fields[5]);
  card.ucx_version = std::string(fields[6]);
  card.ucx_lack = std::string(fields[7]);
  std::memcpy(&card.reach, fields[8].data(), sizeof(ReachCard));
  return card;
}

}  // namespace sluice
