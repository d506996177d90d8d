// Finds the source of each target.
#include "plan/connect/match.h"

#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "plan/connect/box_coverage.h"
#include "plan/connect/merged_layouts.h"
#include "plan/connect/offers.h"
#include "plan/connect/texts.h"
#include "tensor/cast.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

ErrorText RanksOfHalves(absl::Span<const RankedHalf> halves, size_t a) {
  return NamedRanks(halves[a].ranks, kFewRuns);
}

// Target names and the names of their sources, of all ranks.
class Renames {
 public:
  // FailedPrecondition: ranks disagree on one.
  absl::Status Read(absl::Span<const RankedHalf> halves) {
    FaultList faults;
    for (size_t h = 0; h < halves.size(); ++h) {
      for (const auto& [target, source] : halves[h].half.renames) {
        const auto [at, is_new] = sources_.try_emplace(target, Known{source, h});
        if (is_new || at->second.source == source) continue;
        faults.Add(ErrorText(QuotedName(target), ": ", QuotedName(at->second.source), " on ",
                             RanksOfHalves(halves, at->second.half), ", ", QuotedName(source),
                             " on ", RanksOfHalves(halves, h)));
      }
    }
    if (faults.empty()) return absl::OkStatus();
    return DisagreementError("ranks disagree on the source of target ", faults.Text());
  }

  absl::string_view SourceOf(absl::string_view target) const {
    const auto at = sources_.find(target);
    return at == sources_.end() ? target : at->second.source;
  }

 private:
  struct Known {
    absl::string_view source;
    size_t half;
  };
  absl::flat_hash_map<absl::string_view, Known> sources_;
};

absl::StatusOr<int> PriorityClassOf(absl::Span<const RankedHalf> halves) {
  absl::optional<size_t> first;
  for (size_t h = 0; h < halves.size(); ++h) {
    if (!halves[h].half.priority_class) continue;
    if (!first) first = h;
    const int a = *halves[*first].half.priority_class;
    const int b = *halves[h].half.priority_class;
    if (a == b) continue;
    return DisagreementError("ranks disagree on priority_class: ", a, " on ",
                             RanksOfHalves(halves, *first), ", ", b, " on ",
                             RanksOfHalves(halves, h));
  }
  return first ? *halves[*first].half.priority_class : 0;
}

struct Pair {
  const Offer* source;
  const Offer* target;
};

class Matcher {
 public:
  explicit Matcher(absl::Span<const RankedHalf> halves)
      : halves_(halves),
        kinds_(halves),
        sources_(halves, &kinds_, false),
        targets_(halves, &kinds_, true) {}

  absl::StatusOr<Match> Run() {
    Match match;
    SLUICE_ASSIGN_OR_RETURN(match.spec.priority_class, PriorityClassOf(halves_));
    SLUICE_RETURN_IF_ERROR(renames_.Read(halves_));
    for (const Offers* offers : {&sources_, &targets_}) {
      SLUICE_RETURN_IF_ERROR(offers->CheckAgreed());
    }
    for (const Offers* offers : {&sources_, &targets_}) {
      SLUICE_RETURN_IF_ERROR(offers->CheckComplete());
    }
    for (Offers* offers : {&sources_, &targets_}) {
      SLUICE_RETURN_IF_ERROR(offers->Merge(&layouts_));
    }
    SLUICE_RETURN_IF_ERROR(FindPairs());
    SLUICE_RETURN_IF_ERROR(CheckPairs());
    SLUICE_RETURN_IF_ERROR(CheckCoverage());
    for (const Pair& pair : pairs_) Append(pair, &match);
    return match;
  }

 private:
  absl::Status FindPairs() {
    std::vector<bool> used(sources_.all().size(), false);
    FaultList lacking;
    for (const Offer& target : targets_.all()) {
      const absl::string_view name = renames_.SourceOf(target.name);
      const absl::Span<const size_t> found = sources_.Find(name);
      if (!found.empty()) {
        used[found.front()] = true;
        pairs_.push_back({&sources_.all()[found.front()], &target});
      } else if (lacking.wants_words()) {
        lacking.Add(ErrorText(targets_.InWords(target),
                              name == target.name
                                  ? ErrorText()
                                  : ErrorText(" (renamed from ", QuotedName(name), ")")));
      } else {
        lacking.Count();
      }
    }
    FaultList unused;
    for (size_t i = 0; i < used.size(); ++i) {
      if (used[i]) continue;
      if (unused.wants_words()) {
        unused.Add(sources_.InWords(sources_.all()[i]));
      } else {
        unused.Count();
      }
    }
    const ErrorText nobody_asks =
        unused.empty() ? ErrorText() : ErrorText("no target asks for source ", unused.Text(", "));
    if (!lacking.empty()) {
      return MakeError(absl::StatusCode::kNotFound, "no rank has a source for target ",
                       lacking.Text(", "), unused.empty() ? "" : "; ", nobody_asks);
    }
    if (unused.empty() || IgnoresUnused()) return absl::OkStatus();
    return MakeError(absl::StatusCode::kInvalidArgument, nobody_asks,
                     "; ignore_unused_sources would allow it");
  }

  bool IgnoresUnused() const {
    for (const RankedHalf& ranked : halves_) {
      if (ranked.half.ignore_unused_sources) return true;
    }
    return false;
  }

  absl::Status CheckPairs() const {
    FaultList shapes, casts;
    for (const Pair& pair : pairs_) {
      const TensorKind& src = kinds_.kind(pair.source->kind);
      const TensorKind& dst = kinds_.kind(pair.target->kind);
      if (src.shape != dst.shape) {
        shapes.Add(ErrorText(sources_.InWords(*pair.source), " has shape ", ShapeInWords(src.shape),
                             ", target ", targets_.InWords(*pair.target), " ",
                             ShapeInWords(dst.shape)));
      }
      if (!CastExists(src.dtype, dst.dtype)) {
        casts.Add(ErrorText(sources_.InWords(*pair.source), " is ", DTypeName(src.dtype),
                            ", target ", targets_.InWords(*pair.target), " ",
                            DTypeName(dst.dtype)));
      }
    }
    if (!shapes.empty()) {
      return MakeError(absl::StatusCode::kInvalidArgument, "shapes differ: source ", shapes.Text());
    }
    if (casts.empty()) return absl::OkStatus();
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "no cast exists, as casts are between floating dtypes: source ", casts.Text());
  }

  // Boxes hold what they hold, and nobody has looked yet whether that is enough.
  absl::Status CheckCoverage() const {
    FaultList faults;
    // A thousand pairs have a dozen pairs of layouts. A target with placements needs everything.
    using Key = std::tuple<const void*, const void*, std::vector<int64_t>>;
    std::map<Key, absl::optional<CoverageHole>> known;
    for (const Pair& pair : pairs_) {
      const Layout& src = *pair.source->merged;
      const Layout& dst = *pair.target->merged;
      if (src.boxes.empty()) continue;
      const std::vector<int64_t>& shape = kinds_.kind(pair.target->kind).shape;
      const void* const needs = dst.boxes.empty() ? nullptr : dst.boxes.identity();
      const auto [at, is_new] = known.try_emplace(Key(src.boxes.identity(), needs, shape));
      if (is_new) {
        absl::StatusOr<absl::optional<CoverageHole>> hole = FindHole(src.boxes, dst, shape);
        if (!hole.ok()) {
          return Annotate(hole.status(), "source ", sources_.InWords(*pair.source), ", target ",
                          targets_.InWords(*pair.target));
        }
        at->second = *std::move(hole);
      }
      if (!at->second) continue;
      if (faults.wants_words()) {
        faults.Add(HoleInWords(pair, *at->second));
      } else {
        faults.Count();
      }
    }
    if (faults.empty()) return absl::OkStatus();
    return MakeError(absl::StatusCode::kInvalidArgument,
                     "no box holds an element that a target needs: ", faults.Text());
  }

  ErrorText HoleInWords(const Pair& pair, const CoverageHole& hole) const {
    const std::vector<int> ranks = hole.ranks.empty() ? targets_.RanksOf(*pair.target) : hole.ranks;
    return ErrorText("element ", ShapeInWords(hole.element), " of source ",
                     sources_.InWords(*pair.source), ", for target ", QuotedName(pair.target->name),
                     " of ", NamedRanks(ranks, kFewRuns));
  }

  void Append(const Pair& pair, Match* match) const {
    const TensorKind& src = kinds_.kind(pair.source->kind);
    const TensorKind& dst = kinds_.kind(pair.target->kind);
    TensorTransfer tensor;
    tensor.name = std::string(pair.target->name);
    tensor.shape = dst.shape;
    tensor.src_dtype = src.dtype;
    tensor.dst_dtype = dst.dtype;
    tensor.src = *pair.source->merged;
    tensor.dst = *pair.target->merged;
    tensor.window = pair.target->window.value_or(pair.source->window.value_or(0));
    match->spec.tensors.push_back(std::move(tensor));
    match->source_names.emplace_back(pair.source->name);
  }

  const absl::Span<const RankedHalf> halves_;
  const JoinedKinds kinds_;
  MergedLayouts layouts_;
  Offers sources_;
  Offers targets_;
  Renames renames_;
  std::vector<Pair> pairs_;
};

}  // namespace

absl::StatusOr<Match> MatchHalves(absl::Span<const RankedHalf> halves) {
  return Matcher(halves).Run();
}

}  // namespace sluice
