// The card that a member leaves at the store when a fabric is made: how it is reached.
#ifndef SLUICE_SRC_WORLD_CARD_H_
#define SLUICE_SRC_WORLD_CARD_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "world/reach.h"

namespace sluice {

struct Card {
  absl::Status status;      // not OK: this member cannot take part; says why
  std::string wires;        // WorldOptions::wires
  std::string tcp_address;  // TcpLinks::address
  std::string ucx_address;  // UcxWorker::address; empty: it has none
  std::string ucx_version;
  std::string ucx_lack;  // why there is no address
  ReachCard reach;
};

// As bytes and back. InvalidArgument for bytes that are none, FailedPrecondition for those of
// another version.
std::string CardBytes(const Card& card);
absl::StatusOr<Card> ParseCard(absl::string_view bytes);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_CARD_H_
