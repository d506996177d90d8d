// Cards at the store first, then a gather over the links: it shows that they work, and tells the
// nodes. A second one tells where ranks of a node leave records for each other.
#include "world/fabric_maker.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "sluice/fabric.h"
#include "tensor/error_text.h"
#include "transport/deadline.h"
#include "transport/direct/node_records.h"
#include "transport/near_records.h"
#include "transport/say_once.h"
#include "transport/tcp/tcp_fabric.h"
#include "transport/tcp/tcp_links.h"
#include "transport/ucx/ucx_networks.h"
#include "transport/ucx/ucx_worker.h"
#include "transport/wire_status.h"
#include "world/attendance.h"
#include "world/door_keeper.h"
#include "world/meeting.h"
#include "world/rank_ends.h"
#include "world/reach.h"
#include "world/roster.h"
#include "world/store/store_check.h"
#include "world/wires.h"

namespace sluice {
namespace {

constexpr absl::Duration kMembersLook = absl::Seconds(1);

// Waits for a gather over the links, with a look at the members now and then.
class LinkGather {
 public:
  LinkGather(TcpLinks* links, const Meeting& meeting, const Deadline& limit, MembersCheck check)
      : links_(links), meeting_(meeting), limit_(limit), check_(check) {}

  absl::StatusOr<std::vector<std::byte>> Gather(Fabric* fabric, absl::Span<const std::byte> own) {
    SLUICE_RETURN_IF_ERROR(fabric->StartAllGather(own));
    std::vector<std::byte> all;
    std::vector<int> missing;
    Deadline look(kMembersLook);
    absl::Duration pause = absl::Microseconds(50);
    while (true) {
      SLUICE_ASSIGN_OR_RETURN(const bool complete,
                              Annotate(fabric->PollAllGather(&all, &missing), kCannotConnect));
      if (complete) return all;
      SLUICE_RETURN_IF_ERROR(Annotate(fabric->CheckRanks(), kCannotConnect));
      SLUICE_RETURN_IF_ERROR(CheckFarewells(missing));
      if (look.Passed()) {
        look = Deadline(kMembersLook);
        SLUICE_RETURN_IF_ERROR(check_(NeedsStore::kNo));
      }
      if (limit_.Passed()) return LateError(missing);
      absl::SleepFor(pause);
      pause = std::min(pause * 2, absl::Milliseconds(2));
    }
  }

 private:
  ErrorText Describe(int rank) const {
    return ErrorText(RankInWords(rank), ", ",
                     meeting_.member(static_cast<size_t>(rank)).Describe());
  }

  // A member that fails alone says farewell to those that wait for it.
  absl::Status CheckFarewells(absl::Span<const int> missing) const {
    for (const int rank : missing) {
      if (!links_->HasLeft(rank)) continue;
      return MakeError(absl::StatusCode::kUnavailable, "MakeFabric: ", Describe(rank),
                       ", has given up");
    }
    return absl::OkStatus();
  }

  static constexpr char kCannotConnect[] = "MakeFabric: the members cannot connect";

  absl::Status LateError(absl::Span<const int> missing) const {
    std::vector<std::string> names;
    for (const int rank : missing) names.push_back(Describe(rank).text());
    ErrorText text("MakeFabric: nothing has come over TCP from ", NamesText(names), " within ",
                   DurationText(limit_.timeout()));
    text.fields()->ranks.assign(missing.begin(), missing.end());
    return text.ToStatus(absl::StatusCode::kDeadlineExceeded);
  }

  TcpLinks* const links_;
  const Meeting& meeting_;
  const Deadline& limit_;
  const MembersCheck check_;
};

// Each rank's bytes, by rank; all give as many. Collective. `number` is that of a fabric over these
// links, and is used up. `check` is asked every second. Errors name members that cannot be reached,
// have given up, are lost, or are late.
absl::StatusOr<std::vector<std::byte>> GatherOverLinks(const std::shared_ptr<TcpLinks>& links,
                                                       int number, const Meeting& meeting,
                                                       const Deadline& limit, MembersCheck check,
                                                       absl::Span<const std::byte> own) {
  LinkGather gather(links.get(), meeting, limit, check);
  TcpFabricOptions options;
  options.links = links;
  options.number = number;
  for (int rank = 0; rank < links->size(); ++rank) options.node_of_rank.push_back(rank);
  SLUICE_ASSIGN_OR_RETURN(std::unique_ptr<Fabric> fabric, MakeTcpFabric(std::move(options)));
  return gather.Gather(fabric.get(), own);
}

// Numbers of fabrics over the same links: the gathers', and the one that is made.
constexpr int kGatherFabric = 0;
constexpr int kMadeFabric = 1;
constexpr int kInboxFabric = 2;

// A rank's record in the gather.
struct Standing {
  uint64_t reach = 0;
  WireStatus<500> status;  // whether it can go on
};
static_assert(std::is_trivially_copyable_v<Standing>);
static_assert(sizeof(Standing) <= Fabric::kMaxRecordBytes);

// This member's ends, of which its card tells.
struct Ends {
  std::shared_ptr<TcpLinks> links;
  std::shared_ptr<DoorKeeper> keeper;  // of the links
  std::shared_ptr<UcxWorker> ucx;
  ReachPage page;
};

class Maker {
 public:
  Maker(Meeting* meeting, const FabricMakerOptions& options, const Deadline& limit,
        MembersCheck check)
      : meeting_(meeting), options_(options), limit_(limit), check_(check) {}

  absl::StatusOr<std::unique_ptr<Fabric>> Make() {
    const Card own = OpenEnds();
    SLUICE_ASSIGN_OR_RETURN(
        cards_, meeting_->Exchange(own, limit_, [this] { return check_(NeedsStore::kYes); }));
    SLUICE_ASSIGN_OR_RETURN(wires_, ChooseWires(cards_, meeting_->members()));
    SLUICE_RETURN_IF_ERROR(SetPeers());
    SLUICE_ASSIGN_OR_RETURN(std::vector<int> nodes, MeetOverLinks(SetUcxPeers()));
    SLUICE_ASSIGN_OR_RETURN(auto near, MeetOnNode(nodes));
    return MakeFabric(std::move(nodes), std::move(near));
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
    options.first_host = options_.first_host;
    options.secret = options_.secret;
    options.world = options_.id;
    absl::StatusOr<std::shared_ptr<TcpLinks>> links = TcpLinks::Listen(options);
    card.status = links.status();
    if (links.ok()) {
      ends_.links = *std::move(links);
      card.tcp_address = ends_.links->address();
      auto keeper = DoorKeeper::Make(ends_.links);
      card.status = keeper.status();
      if (keeper.ok()) ends_.keeper = *std::move(keeper);
    }
    if (options_.wires == "tcp") return card;
    if (options_.wires == "auto" && !HasRdmaDevice()) {
      card.ucx_lack = std::string(kNoRdmaDevice);
      return card;
    }
    absl::StatusOr<std::shared_ptr<UcxWorker>> ucx =
        UcxWorker::Create(options_.wires == "ucx" ? UcxTcp::kIfNamed : UcxTcp::kNever);
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
    own.status = WireStatus<500>(status);
    return own;
  }

  // Each rank says how it fares and whom it reaches. The nodes.
  absl::StatusOr<std::vector<int>> MeetOverLinks(const absl::Status& status) {
    const Standing own = OwnStanding(status);
    SLUICE_ASSIGN_OR_RETURN(
        const std::vector<std::byte> all,
        GatherOverLinks(ends_.links, kGatherFabric, *meeting_, limit_, check_,
                        {reinterpret_cast<const std::byte*>(&own), sizeof(own)}));
    std::vector<uint64_t> reach;
    for (size_t rank = 0; rank < size(); ++rank) {
      Standing standing;
      std::memcpy(&standing, all.data() + rank * sizeof(Standing), sizeof(Standing));
      if (!standing.status.ok()) {
        return MakeError(standing.status.code(), "MakeFabric failed on ", RankInWords(rank), ", ",
                         meeting_->member(rank).Describe(), ": ", standing.status.ToStatus());
      }
      reach.push_back(standing.reach);
    }
    return NodesByReach(reach);
  }

  // The carrier of control records within a node; null if all nodes have one rank. A rank without
  // an inbox gets its records over the links.
  absl::StatusOr<std::shared_ptr<NearRecords>> MeetOnNode(absl::Span<const int> nodes) {
    if (static_cast<size_t>(*std::max_element(nodes.begin(), nodes.end())) + 1 == nodes.size()) {
      return nullptr;
    }
    auto near = NodeRecords::Make(meeting_->rank(), nodes);
    const SharedSegmentName own = near.ok() ? (*near)->name() : SharedSegmentName();
    SLUICE_ASSIGN_OR_RETURN(
        const std::vector<std::byte> all,
        GatherOverLinks(ends_.links, kInboxFabric, *meeting_, limit_, check_,
                        {reinterpret_cast<const std::byte*>(&own), sizeof(own)}));
    if (!near.ok()) return nullptr;
    std::vector<SharedSegmentName> names(size());
    std::memcpy(names.data(), all.data(), size() * sizeof(SharedSegmentName));
    (*near)->Attach(names);
    return *std::move(near);
  }

  absl::StatusOr<std::unique_ptr<Fabric>> MakeFabric(std::vector<int> nodes,
                                                     std::shared_ptr<NearRecords> near) {
    const bool is_one_node = std::all_of(nodes.begin(), nodes.end(), [](int n) { return n == 0; });
    // Nothing crosses between nodes, and UCX helps nobody within one.
    if (is_one_node && !wires_.insists && !WantsTcp()) {
      wires_ = {false, false, "", "all members share a node"};
    }
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
    options.near = std::move(near);
    options.number = kMadeFabric;
    const std::shared_ptr<UcxWorker> ucx = wires_.ucx ? ends_.ucx : nullptr;
    if (ucx != nullptr) {
      options.open_transport = [ucx](int number) { return ucx->OpenTransport(number); };
    }
    options.wire = DescribeWire(is_one_node);
    // UCX does not tell a rank that has done its part and left from one that has died. The links
    // and the processes do; and operations with the dead fail.
    options.check_ranks = [ucx, ends, keeper = ends_.keeper] {
      if (ucx != nullptr) ucx->Progress();
      return ends->Check();
    };
    return MakeTcpFabric(std::move(options));
  }

  bool WantsTcp() const {
    return std::any_of(cards_.begin(), cards_.end(),
                       [](const Card& card) { return card.wires == "tcp"; });
  }

  WireReport DescribeWire(bool is_one_node) const {
    WireReport report;
    report.wire = wires_.ucx ? "ucx" : "tcp";
    if (wires_.ucx) report.library = absl::StrCat("UCX ", ends_.ucx->version());
    report.why = wires_.why;
    if (!wires_.ucx && !WantsTcp() && !is_one_node) report.fell_back_from = "ucx";
    return report;
  }

  // Once on each node.
  void SayLimit(const RankEnds& ends, absl::Span<const int> nodes) const {
    const auto own = nodes.begin() + meeting_->rank();
    const std::string limit = ends.Limit();
    if (!limit.empty() && std::find(nodes.begin(), own, *own) == own) SayOnce(limit);
  }

  Meeting* const meeting_;
  const FabricMakerOptions& options_;
  const Deadline& limit_;
  const MembersCheck check_;
  Ends ends_;
  std::vector<Card> cards_;
  Wires wires_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Fabric>> MakeMembersFabric(Meeting* meeting,
                                                          const FabricMakerOptions& options,
                                                          const Deadline& limit,
                                                          MembersCheck check) {
  return Maker(meeting, options, limit, check).Make();
}

}  // namespace sluice
