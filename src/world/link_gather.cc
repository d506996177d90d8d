// Waiting for a gather, with a look at the members now and then.
#include "world/link_gather.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "sluice/fabric.h"
#include "tensor/error_text.h"
#include "transport/tcp/tcp_fabric.h"
#include "world/attendance.h"
#include "world/store/store_check.h"

namespace sluice {
namespace {

constexpr absl::Duration kMembersLook = absl::Seconds(1);

class LinkGather {
 public:
  LinkGather(TcpLinks* links, const Meeting& meeting, const TimeLimit& limit, MembersCheck check)
      : links_(links), meeting_(meeting), limit_(limit), check_(check) {}

  absl::StatusOr<std::vector<std::byte>> Gather(Fabric* fabric, absl::Span<const std::byte> own) {
    if (absl::Status status = fabric->StartAllGather(own); !status.ok()) return status;
    std::vector<std::byte> all;
    std::vector<int> missing;
    TimeLimit look(kMembersLook);
    absl::Duration pause = absl::Microseconds(50);
    while (true) {
      const absl::StatusOr<bool> complete = fabric->PollAllGather(&all, &missing);
      if (!complete.ok()) return Explain(complete.status());
      if (*complete) return all;
      if (absl::Status status = fabric->CheckRanks(); !status.ok()) return Explain(status);
      if (absl::Status status = CheckFarewells(missing); !status.ok()) return status;
      if (look.Passed()) {
        look = TimeLimit(kMembersLook);
        if (absl::Status status = check_(NeedsStore::kNo); !status.ok()) return status;
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

  // Whoever fails alone says farewell to those that wait for it.
  absl::Status CheckFarewells(absl::Span<const int> missing) const {
    for (const int rank : missing) {
      if (!links_->HasLeft(rank)) continue;
      return MakeError(absl::StatusCode::kUnavailable, "MakeFabric: ", Describe(rank),
                       ", has given up");
    }
    return absl::OkStatus();
  }

  static absl::Status Explain(const absl::Status& status) {
    return MakeError(status.code(), "MakeFabric: the members cannot connect: ", status);
  }

  absl::Status LateError(absl::Span<const int> missing) const {
    std::vector<std::string> names;
    for (const int rank : missing) names.push_back(Describe(rank).text());
    ErrorText text("MakeFabric: nothing has come over TCP from ", NamesText(names), " within ",
                   DurationText(limit_.length()));
    text.fields()->ranks.assign(missing.begin(), missing.end());
    return text.ToStatus(absl::StatusCode::kDeadlineExceeded);
  }

  TcpLinks* const links_;
  const Meeting& meeting_;
  const TimeLimit& limit_;
  const MembersCheck check_;
};

}  // namespace

absl::StatusOr<std::vector<std::byte>> GatherOverLinks(const std::shared_ptr<TcpLinks>& links,
                                                       int number, const Meeting& meeting,
                                                       const TimeLimit& limit, MembersCheck check,
                                                       absl::Span<const std::byte> own) {
  LinkGather gather(links.get(), meeting, limit, check);
  TcpFabricOptions options;
  options.links = links;
  options.number = number;
  for (int rank = 0; rank < links->size(); ++rank) options.node_of_rank.push_back(rank);
  absl::StatusOr<std::unique_ptr<Fabric>> fabric = MakeTcpFabric(std::move(options));
  if (!fabric.ok()) return fabric.status();
  return gather.Gather(fabric->get(), own);
}

}  // namespace sluice
