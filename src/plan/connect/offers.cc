// Collects what ranks say of a tensor, and checks that all ranks of its mesh say it.
#include "plan/connect/offers.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plan/connect/byte_code.h"
#include "plan/connect/half_code.h"
#include "plan/connect/texts.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

std::vector<int> SortedRanks(const Mesh& mesh) {
  std::vector<int> ranks(mesh.ranks().begin(), mesh.ranks().end());
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::vector<int> Without(const std::vector<int>& ranks, const std::vector<int>& others) {
  std::vector<int> left;
  std::set_difference(ranks.begin(), ranks.end(), others.begin(), others.end(),
                      std::back_inserter(left));
  return left;
}

// `kind` is valid.
bool HasElements(const TensorKind& kind, const Layout& layout, int rank) {
  const absl::StatusOr<std::vector<int64_t>> local = LocalShape(layout, kind.shape, rank);
  return local.ok() && std::find(local->begin(), local->end(), 0) == local->end();
}

std::string WindowInWords(const absl::optional<int>& window) {
  return window ? absl::StrCat("window ", *window) : "no window";
}

}  // namespace

JoinedKinds::JoinedKinds(absl::Span<const RankedHalf> halves) {
  absl::flat_hash_map<std::string, int> layouts, kinds;
  for (const RankedHalf& ranked : halves) {
    const Half& half = ranked.half;
    std::vector<int> layout_numbers;
    for (const Layout& layout : half.layouts) {
      const auto next = static_cast<int>(layouts_.size());
      const auto [at, is_new] = layouts.try_emplace(EncodeLayout(layout), next);
      if (is_new) layouts_.push_back(&layout);
      layout_numbers.push_back(at->second);
    }
    std::vector<Numbers>& numbers = numbers_.emplace_back();
    for (const TensorKind& kind : half.kinds) {
      const int layout_number = layout_numbers[static_cast<size_t>(kind.layout)];
      const Layout& layout = half.LayoutOf(kind);
      const bool has_boxes = !layout.boxes.empty();
      ByteWriter key;
      for (const int64_t size : kind.shape) key.AddSigned(size);
      key.Add(static_cast<uint64_t>(kind.dtype));
      key.AddSigned(has_boxes ? -1 : layout_number);
      const auto next = static_cast<int>(kinds_.size());
      const auto [at, is_new] = kinds.try_emplace(key.Take(), next);
      if (is_new) kinds_.push_back({&kind, has_boxes ? nullptr : &layout});
      numbers.push_back({at->second, layout_number});
    }
  }
}

Offers::Offers(absl::Span<const RankedHalf> halves, const JoinedKinds* kinds, bool are_targets)
    : halves_(halves), kinds_(kinds), are_targets_(are_targets) {
  for (size_t h = 0; h < halves.size(); ++h) {
    const Half& half = halves[h].half;
    for (const HalfTensor& tensor : are_targets ? half.targets : half.sources) Add(h, tensor);
  }
}

void Offers::Add(size_t half, const HalfTensor& tensor) {
  const int kind = kinds_->NumberOf(half, tensor.kind);
  const auto [at, is_new] =
      known_.try_emplace({tensor.name, kind, tensor.window.value_or(-1)}, offers_.size());
  if (is_new) {
    by_name_[tensor.name].push_back(offers_.size());
    offers_.push_back({tensor.name, kind, tensor.window});
  }
  offers_[at->second].halves.push_back(half);
  offers_[at->second].layouts.push_back(kinds_->LayoutNumberOf(half, tensor.kind));
}

absl::Span<const size_t> Offers::Find(absl::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? absl::Span<const size_t>() : absl::MakeConstSpan(at->second);
}

std::vector<int> Offers::RanksOf(const Offer& offer) const {
  std::vector<int> ranks;
  for (const size_t half : offer.halves) {
    ranks.insert(ranks.end(), halves_[half].ranks.begin(), halves_[half].ranks.end());
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

ErrorText Offers::InWords(const Offer& offer) const {
  return ErrorText(QuotedName(offer.name), " of ", NamedRanks(RanksOf(offer), kFewRuns));
}

bool Offers::AreCopies(const Offer& a, const Offer& b) const {
  const TensorKind& kind_a = kinds_->kind(a.kind);
  const TensorKind& kind_b = kinds_->kind(b.kind);
  return kind_a.shape == kind_b.shape && kind_a.dtype == kind_b.dtype && a.window == b.window &&
         !kinds_->has_boxes(a.kind) && !kinds_->has_boxes(b.kind) &&
         MergedLayouts::AreCopies(kinds_->layout(a.kind), kinds_->layout(b.kind));
}

// None of the offers has boxes.
absl::optional<std::pair<size_t, size_t>> Offers::FindSharedRank(
    const std::vector<size_t>& alike) const {
  absl::flat_hash_map<int, size_t> offer_of_rank;
  for (const size_t i : alike) {
    for (const int rank : kinds_->layout(offers_[i].kind).mesh.ranks()) {
      const auto [at, is_new] = offer_of_rank.try_emplace(rank, i);
      if (!is_new) return std::make_pair(at->second, i);
    }
  }
  return absl::nullopt;
}

// Sources of one name are on one mesh, or copies on several ones. Targets may have several meshes,
// in which no rank comes twice. Ranks with boxes are one offer.
absl::optional<std::pair<size_t, size_t>> Offers::FindConflict(
    const std::vector<size_t>& alike) const {
  for (const size_t i : alike) {
    if (i == alike[0]) continue;
    const Offer& first = offers_[alike[0]];
    const bool boxes = kinds_->has_boxes(first.kind) || kinds_->has_boxes(offers_[i].kind);
    if (boxes || (!are_targets_ && !AreCopies(first, offers_[i]))) {
      return std::make_pair(alike[0], i);
    }
  }
  return alike.size() < 2 ? absl::nullopt : FindSharedRank(alike);
}

std::string Offers::LayoutText(const Offer& offer) const {
  return kinds_->has_boxes(offer.kind) ? "boxes" : LayoutInWords(kinds_->layout(offer.kind));
}

ErrorText Offers::Difference(const Offer& a, const Offer& b) const {
  const TensorKind& kind_a = kinds_->kind(a.kind);
  const TensorKind& kind_b = kinds_->kind(b.kind);
  const auto text = [&](absl::string_view of_a, absl::string_view of_b) {
    return ErrorText(QuotedName(a.name), ": ", of_a, " on ", NamedRanks(RanksOf(a), kFewRuns), ", ",
                     of_b, " on ", NamedRanks(RanksOf(b), kFewRuns));
  };
  if (kind_a.shape != kind_b.shape) {
    return text(absl::StrCat("shape ", ShapeInWords(kind_a.shape)), ShapeInWords(kind_b.shape));
  }
  if (kind_a.dtype != kind_b.dtype) return text(DTypeName(kind_a.dtype), DTypeName(kind_b.dtype));
  if (a.kind != b.kind) return text(LayoutText(a), LayoutText(b));
  return text(WindowInWords(a.window), WindowInWords(b.window));
}

absl::Status Offers::CheckAgreed() const {
  FaultList faults;
  for (size_t i = 0; i < offers_.size(); ++i) {
    const std::vector<size_t>& alike = by_name_.at(offers_[i].name);
    if (alike.front() != i) continue;
    const absl::optional<std::pair<size_t, size_t>> conflict = FindConflict(alike);
    if (!conflict) continue;
    if (faults.wants_words()) {
      faults.Add(Difference(offers_[conflict->first], offers_[conflict->second]));
    } else {
      faults.Count();
    }
  }
  if (faults.empty()) return absl::OkStatus();
  return DisagreementError("ranks disagree on ", side(), " ", faults.Text());
}

ErrorText Offers::Incompleteness(const Offer& offer) const {
  if (kinds_->has_boxes(offer.kind)) return {};
  const TensorKind& kind = kinds_->kind(offer.kind);
  const Layout& layout = kinds_->layout(offer.kind);
  const std::vector<int> mesh = SortedRanks(layout.mesh);
  const std::vector<int> givers = RanksOf(offer);
  const std::vector<int> strangers = Without(givers, mesh);
  if (!strangers.empty()) {
    return ErrorText(QuotedName(offer.name), " is given by ", NamedRanks(strangers, kFewRuns),
                     ", outside of its mesh of ", NamedRanks(mesh, kFewRuns));
  }
  std::vector<int> silent = Without(mesh, givers);
  silent.erase(std::remove_if(silent.begin(), silent.end(),
                              [&](int rank) { return !HasElements(kind, layout, rank); }),
               silent.end());
  if (silent.empty()) return {};
  return ErrorText(QuotedName(offer.name), " of ", NamedRanks(givers, kFewRuns), " lies on ",
                   NamedRanks(silent, kFewRuns), ", too, which ",
                   silent.size() == 1 ? "does" : "do", " not give it");
}

absl::Status Offers::CheckComplete() const {
  FaultList faults;
  // Most tensors have the ranks of the one before. Empty parts depend on the kind.
  std::map<std::pair<int, std::vector<size_t>>, bool> complete;
  for (const Offer& offer : offers_) {
    const auto [at, is_new] = complete.try_emplace({offer.kind, offer.halves}, true);
    if (!is_new && at->second) continue;
    if (!is_new && !faults.wants_words()) {
      faults.Count();
      continue;
    }
    ErrorText fault = Incompleteness(offer);
    at->second = fault.empty();
    if (!fault.empty()) faults.Add(std::move(fault));
  }
  if (faults.empty()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument, side(), " ", faults.Text());
}

absl::StatusOr<Layout> Offers::MergeBoxes(const Offer& offer, MergedLayouts* merged) const {
  std::vector<MergedLayouts::Holders> holders;
  holders.reserve(offer.halves.size());
  for (size_t i = 0; i < offer.halves.size(); ++i) {
    const size_t half = offer.halves[i];
    holders.push_back({halves_[half].ranks, &kinds_->layout_at(offer.layouts[i]).boxes,
                       offer.layouts[i], static_cast<int>(half)});
  }
  absl::StatusOr<Layout> layout = merged->OfBoxes(holders);
  if (layout.ok()) return layout;
  return Annotate(layout.status(), side(), " ", InWords(offer));
}

absl::Status Offers::Merge(MergedLayouts* merged) {
  std::vector<Offer> before = std::exchange(offers_, {});
  absl::flat_hash_map<absl::string_view, std::vector<size_t>> alike = std::exchange(by_name_, {});
  known_.clear();
  for (size_t i = 0; i < before.size(); ++i) {
    Offer& offer = before[i];
    const std::vector<size_t>& of_name = alike.at(offer.name);
    const bool are_copies = !are_targets_ && of_name.size() > 1;
    if (are_copies && of_name.front() != i) continue;
    if (kinds_->has_boxes(offer.kind)) {
      SLUICE_ASSIGN_OR_RETURN(offer.merged, MergeBoxes(offer, merged));
    } else if (are_copies) {
      std::vector<const Layout*> layouts;
      std::vector<int> numbers;
      for (const size_t other : of_name) {
        layouts.push_back(&kinds_->layout(before[other].kind));
        numbers.push_back(before[other].layouts[0]);
        if (other == i) continue;
        offer.halves.insert(offer.halves.end(), before[other].halves.begin(),
                            before[other].halves.end());
      }
      offer.merged = merged->OfCopies(layouts, numbers);
    } else {
      offer.merged = kinds_->layout(offer.kind);
    }
    by_name_[offer.name].push_back(offers_.size());
    offers_.push_back(std::move(offer));
  }
  return absl::OkStatus();
}

}  // namespace sluice
