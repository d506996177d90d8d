// Cards at the store first, then one gather over the links: it shows that they work, and tells the
// nodes.
#include "world/fabric_maker.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "transport/say_once.h"
#include "transport/tcp/tcp_fabric.h"
#include "transport/tcp/tcp_links.h"
#include "transport/ucx/rdma_device.h"
#include "transport/ucx/ucx_worker.h"
#include "world/attendance.h"
#include "world/rank_ends.h"
#include "world/reach.h"
#include "world/wires.h"

namespace sluice {
namespace {

// Numbers of fabrics over the same links: the gather's, and the one that is made.
constexpr int kGatherFabric = 0;
constexpr int kMadeFabric = 1;

// What each rank says in the gather.
struct Standing {
  uint64_t reach = 0;
  int32_t code = 0;  // absl::StatusCode: whether it can go on
  std::array<char, 500> message = {};
};
static_assert(sizeof(Standing) <= Fabric::kMaxRecordBytes);

// This member's ends, of which its card tells.
struct Ends {
  std::shared_ptr<TcpLinks> links;
  std::shared_ptr<UcxWorker> ucx;
  ReachPage page;
};

class Maker {
 public:
  Maker(Meeting* meeting, const FabricMakerOptions& options, const TimeLimit& limit,
        MembersCheck check)
      : meeting_(meeting), options_(options), limit_(limit), check_(check) {}

  absl::StatusOr<std::unique_ptr<Fabric>> Make() {
    const Card own = OpenEnds();
    absl::StatusOr<std::vector<Card>> cards =
        meeting_->Exchange(own, limit_, [this] { return check_(NeedsStore::kYes); });
    if (!cards.ok()) return cards.status();
    cards_ = *std::move(cards);
    absl::StatusOr<Wires> wires = ChooseWires(cards_, meeting_->members());
    if (!wires.ok()) return wires.status();
    wires_ = *std::move(wires);
    if (absl::Status status = SetPeers(); !status.ok()) return status;
    absl::StatusOr<std::vector<int>> nodes = MeetOverLinks(SetUcxPeers());
    if (!nodes.ok()) return nodes.status();
    return MakeFabric(*std::move(nodes));
  }

 private:
  size_t size() const { return cards_.size(); }

  Card OpenEnds() {
    ends_.page = ReachPage::Make();
    Card card;
    card.wires = options_.wires;
    card.reach = ends_.page.card();
    TcpLinksOptions options;
    options.rank = meeting_->rank();
    options.size = static_cast<int>(meeting_->members().size());
    options.bind = options_.bind;
    options.secret = options_.secret;
    options.world = options_.id;
    absl::StatusOr<std::shared_ptr<TcpLinks>> links = TcpLinks::Listen(options);
    card.status = links.status();
    if (links.ok()) {
      ends_.links = *std::move(links);
      card.tcp_address = ends_.links->address();
    }
    if (options_.wires == "tcp") return card;
    if (options_.wires == "auto" && !HasRdmaDevice()) {
      card.ucx_lack = std::string(kNoRdmaDevice);
      return card;
    }
    absl::StatusOr<std::shared_ptr<UcxWorker>> ucx = UcxWorker::Create();
    if (ucx.ok()) {
      ends_.ucx = *std::move(ucx);
      card.ucx_address = ends_.ucx->address();
      card.ucx_version = ends_.ucx->version();
    } else {
      card.ucx_lack = std::string(ucx.status().message());
    }
    return card;
  }

  absl::Status SetPeers() {
    std::vector<std::string> addresses;
    for (const Card& card : cards_) addresses.push_back(card.tcp_address);
    return ends_.links->SetPeers(addresses);
  }

  absl::Status SetUcxPeers() {
    if (!wires_.ucx) return absl::OkStatus();
    std::vector<std::string> addresses;
    for (const Card& card : cards_) addresses.push_back(card.ucx_address);
    return ends_.ucx->SetPeers(meeting_->rank(), std::move(addresses));
  }

  Standing OwnStanding(const absl::Status& status) const {
    std::vector<ReachCard> reach;
    for (const Card& card : cards_) reach.push_back(card.reach);
    Standing own;
    own.reach = ReachOf(meeting_->rank(), reach);
    own.code = static_cast<int32_t>(status.code());
    const size_t length = std::min(status.message().size(), own.message.size() - 1);
    std::copy_n(status.message().begin(), length, own.message.begin());
    return own;
  }

  // Each rank says how it fares and whom it reaches. The nodes.
  absl::StatusOr<std::vector<int>> MeetOverLinks(const absl::Status& status) {
    const Standing own = OwnStanding(status);
    TcpFabricOptions options;
    options.links = ends_.links;
    options.number = kGatherFabric;
    for (size_t rank = 0; rank < size(); ++rank) {
      options.node_of_rank.push_back(static_cast<int>(rank));
    }
    absl::StatusOr<std::unique_ptr<Fabric>> fabric = MakeTcpFabric(std::move(options));
    if (!fabric.ok()) return fabric.status();
    const absl::StatusOr<std::vector<std::byte>> all = Gather(
        fabric->get(), absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&own), sizeof(own)));
    if (!all.ok()) return all.status();
    std::vector<uint64_t> reach;
    for (size_t rank = 0; rank < size(); ++rank) {
      Standing standing;
      std::memcpy(&standing, all->data() + rank * sizeof(Standing), sizeof(Standing));
      standing.message.back() = '\0';
      if (standing.code != 0) {
        return absl::Status(
            static_cast<absl::StatusCode>(standing.code),
            absl::StrCat("MakeFabric failed on rank ", rank, ", ",
                         meeting_->member(rank).Describe(), ": ", standing.message.data()));
      }
      reach.push_back(standing.reach);
    }
    return NodesByReach(reach);
  }

  absl::StatusOr<std::vector<std::byte>> Gather(Fabric* fabric, absl::Span<const std::byte> own) {
    if (absl::Status status = fabric->StartAllGather(own); !status.ok()) return status;
    std::vector<std::byte> all;
    std::vector<int> missing;
    TimeLimit look(kLook);
    absl::Duration pause = absl::Microseconds(50);
    while (true) {
      const absl::StatusOr<bool> complete = fabric->PollAllGather(&all, &missing);
      if (!complete.ok()) return Explain(complete.status());
      if (*complete) return all;
      if (absl::Status status = fabric->CheckRanks(); !status.ok()) return Explain(status);
      if (absl::Status status = CheckFarewells(missing); !status.ok()) return status;
      if (look.Passed()) {
        look = TimeLimit(kLook);
        if (absl::Status status = check_(NeedsStore::kNo); !status.ok()) return status;
      }
      if (limit_.Passed()) return LateError(missing);
      absl::SleepFor(pause);
      pause = std::min(pause * 2, absl::Milliseconds(2));
    }
  }

  // Whoever fails alone says farewell to those that wait for it.
  absl::Status CheckFarewells(absl::Span<const int> missing) const {
    for (const int rank : missing) {
      if (!ends_.links->HasLeft(rank)) continue;
      return absl::UnavailableError(
          absl::StrCat("MakeFabric: rank ", rank, ", ",
                       meeting_->member(static_cast<size_t>(rank)).Describe(), ", has given up"));
    }
    return absl::OkStatus();
  }

  static absl::Status Explain(const absl::Status& status) {
    return absl::Status(status.code(),
                        absl::StrCat("MakeFabric: the members cannot connect: ", status.message()));
  }

  absl::Status LateError(absl::Span<const int> missing) const {
    std::vector<std::string> names;
    for (const int rank : missing) {
      names.push_back(absl::StrCat("rank ", rank, ", ",
                                   meeting_->member(static_cast<size_t>(rank)).Describe()));
    }
    return absl::DeadlineExceededError(absl::StrCat("MakeFabric: nothing has come over TCP from ",
                                                    NamesText(names), " within ",
                                                    absl::FormatDuration(limit_.length())));
  }

  absl::StatusOr<std::unique_ptr<Fabric>> MakeFabric(std::vector<int> nodes) {
    const bool is_one_node = std::all_of(nodes.begin(), nodes.end(), [](int n) { return n == 0; });
    // Nothing crosses between nodes, and UCX helps nobody within one.
    if (is_one_node && !wires_.insists) wires_ = Wires();
    if (meeting_->rank() == 0 && !wires_.reason.empty()) {
      SayOnce(absl::StrCat("payload between nodes crosses by TCP: ", wires_.reason));
    }
    std::vector<ProcessName> names;
    for (const Card& card : cards_) names.push_back(card.reach.process);
    auto ends = std::make_shared<RankEnds>(ends_.links, std::move(names), nodes);
    SayLimit(*ends, nodes);
    TcpFabricOptions options;
    options.links = ends_.links;
    options.node_of_rank = std::move(nodes);
    options.number = kMadeFabric;
    const std::shared_ptr<UcxWorker> ucx = wires_.ucx ? ends_.ucx : nullptr;
    if (ucx != nullptr) {
      options.open_transport = [ucx](int number) { return ucx->OpenTransport(number); };
    }
    // UCX does not tell a rank that has done its part and left from one that has died. The links
    // and the processes do; and operations with the dead fail.
    options.check_ranks = [ucx, ends] {
      if (ucx != nullptr) ucx->Progress();
      return ends->Check();
    };
    return MakeTcpFabric(std::move(options));
  }

  // Once on each node.
  void SayLimit(const RankEnds& ends, absl::Span<const int> nodes) const {
    const auto own = nodes.begin() + meeting_->rank();
    const std::string limit = ends.Limit();
    if (!limit.empty() && std::find(nodes.begin(), own, *own) == own) SayOnce(limit);
  }

  static constexpr absl::Duration kLook = absl::Seconds(1);

  Meeting* const meeting_;
  const FabricMakerOptions& options_;
  const TimeLimit& limit_;
  const MembersCheck check_;
  Ends ends_;
  std::vector<Card> cards_;
  Wires wires_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Fabric>> MakeMembersFabric(Meeting* meeting,
                                                          const FabricMakerOptions& options,
                                                          const TimeLimit& limit,
                                                          MembersCheck check) {
  return Maker(meeting, options, limit, check).Make();
}

}  // namespace sluice
