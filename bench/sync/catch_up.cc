// Rows of meshes: each one has the whole tensor, or lacks it.
#include "sync/catch_up.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/functional/function_ref.h"
#include "base/clock.h"
#include "sluice/layout.h"
#include "sluice/status.h"
#include "sluice/transfer.h"

namespace sluice::bench {
namespace {

// A mesh by its first dimension, which replicates.
size_t RanksOfRow(const Mesh& mesh) {
  return mesh.ranks().size() / static_cast<size_t>(mesh.sizes()[0]);
}

// The rows of `layout` of which `keeps` is true of every rank; `rename` gives each rank's new name.
// No mesh if there are none.
absl::StatusOr<Layout> KeepRows(const Layout& layout, absl::FunctionRef<bool(int)> keeps,
                                absl::FunctionRef<int(int)> rename) {
  const absl::Span<const int> ranks = layout.mesh.ranks();
  const size_t row = RanksOfRow(layout.mesh);
  std::vector<int> kept;
  for (size_t begin = 0; begin < ranks.size(); begin += row) {
    const absl::Span<const int> of_row = ranks.subspan(begin, row);
    if (!std::all_of(of_row.begin(), of_row.end(), keeps)) continue;
    for (const int rank : of_row) kept.push_back(rename(rank));
  }
  if (kept.empty()) return Layout();
  std::vector<int64_t> sizes(layout.mesh.sizes().begin(), layout.mesh.sizes().end());
  sizes[0] = static_cast<int64_t>(kept.size() / row);
  Layout of_rows = layout;
  SLUICE_ASSIGN_OR_RETURN(of_rows.mesh, Mesh::Create(std::move(sizes), std::move(kept)));
  return of_rows;
}

// What `rank` has of a tensor, under whichever of `sides` has it.
using Owned = std::vector<std::vector<IndexRange>>;
absl::StatusOr<Owned> OwnedIn(absl::Span<const Layouts> sides, size_t tensor,
                              absl::Span<const int64_t> shape, int rank) {
  for (const Layouts& layouts : sides) {
    if (layouts[tensor].mesh.PositionOf(rank)) return OwnedRanges(layouts[tensor], shape, rank);
  }
  return Owned();
}

bool AreSameRanges(const Owned& a, const Owned& b) {
  const auto same = [](const IndexRange& x, const IndexRange& y) {
    return x.begin == y.begin && x.end == y.end;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
  });
}

class CatchUpPlanner {
 public:
  CatchUpPlanner(const SyncWeights& weights, int trainers, absl::Span<const Held> held,
                 int64_t version)
      : weights_(weights),
        trainers_(trainers),
        held_(held.begin(), held.end()),
        version_(version) {}

  absl::StatusOr<std::optional<CatchUpPlan>> Plan() {
    if (version_ <= 0) return std::nullopt;
    // A replica of one server is the same at every place.
    for (size_t i = 0; i < held_.size() && weights_.replica() == 1; ++i) {
      held_[i].place = OwnPlace(i);
    }
    SLUICE_ASSIGN_OR_RETURN(now_, weights_.OfServers(trainers_, static_cast<int>(held_.size())));
    for (size_t i = 0; i < held_.size(); ++i) {
      SLUICE_ASSIGN_OR_RETURN(const auto lacks, Lacks(i));
      plan_.is_target.push_back(lacks);
    }
    CloseRows();
    if (std::count(plan_.is_target.begin(), plan_.is_target.end(), true) == 0) return std::nullopt;
    SLUICE_ASSIGN_OR_RETURN(const auto has_sources, FindSources());
    if (!has_sources) return std::nullopt;
    SLUICE_RETURN_IF_ERROR(FindTargets());
    return std::move(plan_);
  }

 private:
  Place OwnPlace(size_t server) const {
    return {static_cast<int64_t>(held_.size()), static_cast<int64_t>(server)};
  }
  size_t ServerOf(int rank) const { return static_cast<size_t>(rank - trainers_); }

  absl::StatusOr<bool> Lacks(size_t server) {
    const Held& held = held_[server];
    if (held.version > version_) return false;
    if (held.version < version_) return true;
    if (held.place == OwnPlace(server)) return false;
    SLUICE_ASSIGN_OR_RETURN(const auto then, SidesOf(held.place.servers));
    for (size_t t = 0; t < weights_.tensors().size(); ++t) {
      const std::vector<int64_t>& shape = weights_.tensors()[t].shape;
      SLUICE_ASSIGN_OR_RETURN(
          const auto has, OwnedIn(*then, t, shape, trainers_ + static_cast<int>(held.place.index)));
      SLUICE_ASSIGN_OR_RETURN(const auto needs,
                              OwnedIn(now_, t, shape, trainers_ + static_cast<int>(server)));
      if (!AreSameRanges(has, needs)) return true;
    }
    return false;
  }

  // Whoever shares a row with one that lacks the version gets all of it, too.
  void CloseRows() {
    bool has_changed = true;
    while (has_changed) {
      has_changed = false;
      for (const Layouts& layouts : now_) {
        for (const Layout& layout : layouts) has_changed |= CloseRowsOf(layout.mesh);
      }
    }
  }

  bool CloseRowsOf(const Mesh& mesh) {
    bool has_changed = false;
    const size_t row = RanksOfRow(mesh);
    for (size_t begin = 0; begin < mesh.ranks().size(); begin += row) {
      const absl::Span<const int> ranks = mesh.ranks().subspan(begin, row);
      const auto is_target = [&](int rank) { return plan_.is_target[ServerOf(rank)]; };
      if (std::none_of(ranks.begin(), ranks.end(), is_target)) continue;
      for (const int rank : ranks) {
        has_changed = has_changed || !is_target(rank);
        plan_.is_target[ServerOf(rank)] = true;
      }
    }
    return has_changed;
  }

  // The layouts of those that hold the version, by the number of servers when it came. False: none
  // of these has all of it.
  absl::StatusOr<bool> FindSources() {
    std::map<int64_t, std::map<int, int>> holders;  // then: {rank then, rank now}
    for (size_t i = 0; i < held_.size(); ++i) {
      if (held_[i].version != version_) continue;
      holders[held_[i].place.servers][trainers_ + static_cast<int>(held_[i].place.index)] =
          trainers_ + static_cast<int>(i);
    }
    while (!holders.empty()) {
      const auto most = std::max_element(
          holders.begin(), holders.end(),
          [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
      auto found = SourcesOf(most->first, most->second);
      if (!found.ok() || *found) return found;
      holders.erase(most);
    }
    return false;
  }

  absl::StatusOr<bool> SourcesOf(int64_t servers, const std::map<int, int>& rank_now) {
    SLUICE_ASSIGN_OR_RETURN(const auto then, SidesOf(servers));
    plan_.sources.clear();
    for (size_t t = 0; t < weights_.tensors().size(); ++t) {
      Layout source;
      for (const Layouts& layouts : *then) {
        SLUICE_ASSIGN_OR_RETURN(auto rows,
                                KeepRows(
                                    layouts[t], [&](int rank) { return rank_now.count(rank) > 0; },
                                    [&](int rank) { return rank_now.at(rank); }));
        if (source.mesh.ranks().empty()) source = std::move(rows);
      }
      if (source.mesh.ranks().empty()) return false;
      plan_.sources.push_back(std::move(source));
    }
    return true;
  }

  absl::Status FindTargets() {
    for (const Layouts& layouts : now_) {
      Layouts targets;
      for (const Layout& layout : layouts) {
        SLUICE_ASSIGN_OR_RETURN(
            auto rows, KeepRows(
                           layout, [&](int rank) { return plan_.is_target[ServerOf(rank)]; },
                           [](int rank) { return rank; }));
        targets.push_back(std::move(rows));
      }
      plan_.targets.push_back(std::move(targets));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<const std::vector<Layouts>*> SidesOf(int64_t servers) {
    auto& sides = then_[servers];
    if (sides.empty()) {
      SLUICE_ASSIGN_OR_RETURN(sides, weights_.OfServers(trainers_, static_cast<int>(servers)));
    }
    return &sides;
  }

  const SyncWeights& weights_;
  const int trainers_;
  std::vector<Held> held_;
  const int64_t version_;
  std::vector<Layouts> now_;
  std::map<int64_t, std::vector<Layouts>> then_;
  CatchUpPlan plan_;
};

}  // namespace

absl::StatusOr<std::optional<CatchUpPlan>> PlanCatchUp(const SyncWeights& weights, int trainers,
                                                       absl::Span<const Held> held,
                                                       int64_t version) {
  return CatchUpPlanner(weights, trainers, held, version).Plan();
}

absl::StatusOr<std::unique_ptr<CatchUp>> CatchUp::Start(Session* session, const CatchUpPlan& plan,
                                                        int64_t version,
                                                        std::shared_ptr<Holding> from,
                                                        std::shared_ptr<Holding> to) {
  ConnectSpec own;
  if (from != nullptr) from->Give(plan.sources, session->rank(), &own.sources);
  for (const Layouts& side : plan.targets) {
    if (to != nullptr) to->Give(side, session->rank(), &own.targets);
  }
  own.ignore_unused_sources = true;
  // Whatever runs beside it comes first.
  own.priority_class = kPriorityClasses - 1;
  std::unique_ptr<CatchUp> catch_up(new CatchUp(version, std::move(from), std::move(to)));
  SLUICE_ASSIGN_OR_RETURN(catch_up->connection_, Connect(session, own));
  catch_up->start_ns_ = MonotonicNs();
  SLUICE_ASSIGN_OR_RETURN(catch_up->run_, catch_up->connection_->Start({.version = version}));
  return catch_up;
}

absl::Status CatchUp::Step(bool may_verify) {
  if (is_over_) return absl::OkStatus();
  if (!has_come_) {
    if (!run_.IsDone()) return absl::OkStatus();
    SLUICE_RETURN_IF_ERROR(run_.Wait());
    constexpr int64_t kNsOfUs = 1000;
    time_us_ = std::max<int64_t>(1, (MonotonicNs() - start_ns_) / kNsOfUs);
    has_come_ = true;
    from_ = nullptr;
  } else if (may_verify) {
    wrong_ += to_->CountWrong(verified_++, version_);
  }
  is_over_ = to_ == nullptr || verified_ == to_->tensors();
  if (is_over_ && to_ != nullptr) to_->set_version(version_);
  return absl::OkStatus();
}

}  // namespace sluice::bench
