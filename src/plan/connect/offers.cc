// Which ranks say what of a tensor, and whether that is all that its mesh asks for.
#include "plan/connect/offers.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "plan/connect/byte_code.h"
#include "plan/connect/half_code.h"
#include "plan/connect/texts.h"

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

// Of a valid kind.
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
      const auto next = static_cast<int>(layouts.size());
      layout_numbers.push_back(layouts.try_emplace(EncodeLayout(layout), next).first->second);
    }
    std::vector<int>& numbers = numbers_.emplace_back();
    for (const TensorKind& kind : half.kinds) {
      const int layout_number = layout_numbers[static_cast<size_t>(kind.layout)];
      ByteWriter key;
      for (const int64_t size : kind.shape) key.AddSigned(size);
      key.Add(static_cast<uint64_t>(kind.dtype));
      key.Add(static_cast<uint64_t>(layout_number));
      const auto next = static_cast<int>(kinds_.size());
      const auto [at, is_new] = kinds.try_emplace(key.Take(), next);
      if (is_new) kinds_.push_back({&kind, &half.LayoutOf(kind), layout_number});
      numbers.push_back(at->second);
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
  if (!is_new) {
    offers_[at->second].halves.push_back(half);
    return;
  }
  by_name_[tensor.name].push_back(offers_.size());
  offers_.push_back({tensor.name, kind, tensor.window, {half}});
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

std::string Offers::InWords(const Offer& offer) const {
  return absl::StrCat(QuotedName(offer.name), " of ", RanksInWords(RanksOf(offer)));
}

// Sources of one name have one mesh. Targets may have several, in which no rank comes twice.
absl::optional<std::pair<size_t, size_t>> Offers::FindConflict(
    const std::vector<size_t>& alike) const {
  if (alike.size() < 2) return absl::nullopt;
  if (!are_targets_) return std::make_pair(alike[0], alike[1]);
  absl::flat_hash_map<int, size_t> offer_of_rank;
  for (const size_t i : alike) {
    for (const int rank : kinds_->layout(offers_[i].kind).mesh.ranks()) {
      const auto [at, is_new] = offer_of_rank.try_emplace(rank, i);
      if (!is_new) return std::make_pair(at->second, i);
    }
  }
  return absl::nullopt;
}

std::string Offers::Difference(const Offer& a, const Offer& b) const {
  const TensorKind& kind_a = kinds_->kind(a.kind);
  const TensorKind& kind_b = kinds_->kind(b.kind);
  const auto text = [&](absl::string_view of_a, absl::string_view of_b) {
    return absl::StrCat(QuotedName(a.name), ": ", of_a, " on ", RanksInWords(RanksOf(a)), ", ",
                        of_b, " on ", RanksInWords(RanksOf(b)));
  };
  if (kind_a.shape != kind_b.shape) {
    return text(absl::StrCat("shape ", ShapeInWords(kind_a.shape)), ShapeInWords(kind_b.shape));
  }
  if (kind_a.dtype != kind_b.dtype) return text(DTypeName(kind_a.dtype), DTypeName(kind_b.dtype));
  if (kinds_->layout_number(a.kind) != kinds_->layout_number(b.kind)) {
    return text(LayoutInWords(kinds_->layout(a.kind)), LayoutInWords(kinds_->layout(b.kind)));
  }
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
  return absl::FailedPreconditionError(
      absl::StrCat("ranks disagree on ", side(), " ", faults.Text()));
}

std::string Offers::Incompleteness(const Offer& offer) const {
  const TensorKind& kind = kinds_->kind(offer.kind);
  const Layout& layout = kinds_->layout(offer.kind);
  const std::vector<int> mesh = SortedRanks(layout.mesh);
  const std::vector<int> givers = RanksOf(offer);
  const std::vector<int> strangers = Without(givers, mesh);
  if (!strangers.empty()) {
    return absl::StrCat(QuotedName(offer.name), " is given by ", RanksInWords(strangers),
                        ", outside of its mesh of ", RanksInWords(mesh));
  }
  std::vector<int> silent = Without(mesh, givers);
  silent.erase(std::remove_if(silent.begin(), silent.end(),
                              [&](int rank) { return !HasElements(kind, layout, rank); }),
               silent.end());
  if (silent.empty()) return "";
  return absl::StrCat(QuotedName(offer.name), " of ", RanksInWords(givers), " lies on ",
                      RanksInWords(silent), ", too, which ", silent.size() == 1 ? "does" : "do",
                      " not give it");
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
    std::string fault = Incompleteness(offer);
    at->second = fault.empty();
    if (!fault.empty()) faults.Add(std::move(fault));
  }
  if (faults.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(side(), " ", faults.Text()));
}

}  // namespace sluice
