// One choice from all cards.
#include "world/wires.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

constexpr absl::string_view kNobodyHasRdma = "no member has an RDMA device";

// "1.13" of "1.13.1": releases of one minor version understand each other.
std::string MinorVersion(const std::string& version) {
  const std::vector<std::string> parts = absl::StrSplit(version, '.');
  return parts.size() < 2 ? version : absl::StrCat(parts[0], ".", parts[1]);
}

// The first rank of which `says` is true; -1: none.
template <typename Says>
int FirstOf(absl::Span<const Card> cards, Says says) {
  for (size_t rank = 0; rank < cards.size(); ++rank) {
    if (says(cards[rank])) return static_cast<int>(rank);
  }
  return -1;
}

ErrorText Named(int rank, absl::Span<const StoredMember> members) {
  return ErrorText(RankInWords(rank), ", ", members[static_cast<size_t>(rank)].Describe());
}

}  // namespace

absl::StatusOr<Wires> ChooseWires(absl::Span<const Card> cards,
                                  absl::Span<const StoredMember> members) {
  const int bad = FirstOf(cards, [](const Card& card) { return !card.status.ok(); });
  if (bad >= 0) {
    const absl::Status& status = cards[static_cast<size_t>(bad)].status;
    return Annotate(status, "MakeFabric failed on ", Named(bad, members));
  }
  const int tcp = FirstOf(cards, [](const Card& card) { return card.wires == "tcp"; });
  const int ucx = FirstOf(cards, [](const Card& card) { return card.wires == "ucx"; });
  const int lacks = FirstOf(cards, [](const Card& card) { return card.ucx_address.empty(); });
  const std::string version = MinorVersion(cards[0].ucx_version);
  const int other =
      FirstOf(cards, [&](const Card& card) { return MinorVersion(card.ucx_version) != version; });
  if (ucx >= 0 && tcp >= 0) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "the wires are to be \"ucx\" on ",
                     Named(ucx, members), ", and \"tcp\" on ", Named(tcp, members));
  }
  if (tcp >= 0) return Wires{false, false, "", ErrorText(Named(tcp, members), " wants TCP").text()};
  const int looked = FirstOf(cards, [](const Card& card) {
    return !card.ucx_address.empty() || card.ucx_lack != kNoRdmaDevice;
  });
  if (looked < 0) return Wires{false, false, "", std::string(kNobodyHasRdma)};
  ErrorText reason;
  if (lacks >= 0) {
    reason = ErrorText(Named(lacks, members),
                       ", has no UCX: ", cards[static_cast<size_t>(lacks)].ucx_lack);
  } else if (other >= 0) {
    reason = ErrorText(Named(other, members), ", has UCX ",
                       cards[static_cast<size_t>(other)].ucx_version, ", and ", Named(0, members),
                       ", has UCX ", cards[0].ucx_version);
  }
  if (reason.empty() && ucx < 0) return Wires{true, false, "", "all members have RDMA devices"};
  if (reason.empty()) {
    return Wires{true, true, "", ErrorText(Named(ucx, members), " wants UCX").text()};
  }
  if (ucx < 0) return Wires{false, false, reason.text(), reason.text()};
  return MakeError(absl::StatusCode::kFailedPrecondition, "the wires are to be \"ucx\" on ",
                   Named(ucx, members), ", but ", reason);
}

}  // namespace sluice
