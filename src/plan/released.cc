// Looks positions up, and skips those that are released.
#include "plan/released.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

// Released positions that are looked at one by one before a skip is worth its search.
constexpr int kSteps = 64;
constexpr int64_t kResiduesMax = int64_t{1} << 16;
// With more parts than these, pairs of parts are not compared.
constexpr size_t kPairsMax = 1024;
constexpr int64_t kWalkMax = int64_t{1} << 30;

std::vector<PlaceSet> SetsOf(const ReleasedLayer& layer) {
  std::vector<PlaceSet> sets;
  for (const ReleasedPart& part : layer) sets.push_back(part.places);
  return sets;
}

// All have one step, of few residues.
bool HaveOneStep(const std::vector<PlaceSet>& sets) {
  return !sets.empty() && sets[0].step <= kResiduesMax &&
         std::all_of(sets.begin(), sets.end(),
                     [&](const PlaceSet& set) { return set.step == sets[0].step; });
}

bool AreDisjoint(std::vector<PlaceSet> sets) {
  if (HaveOneStep(sets)) {
    // Neighbours of one residue, by where they begin.
    const int64_t step = sets[0].step;
    std::sort(sets.begin(), sets.end(), [step](const PlaceSet& a, const PlaceSet& b) {
      return std::pair(a.first % step, a.first) < std::pair(b.first % step, b.first);
    });
    for (size_t i = 1; i < sets.size(); ++i) {
      if (sets[i - 1].And(sets[i]).count() > 0) return false;
    }
    return true;
  }
  if (sets.size() > kPairsMax) return false;
  for (size_t i = 0; i < sets.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (sets[i].And(sets[j]).count() > 0) return false;
    }
  }
  return true;
}

int64_t EndOf(const ReleasedPart& part, int64_t items) {
  const int64_t end = part.end_index();
  return end == 0 ? 0 : part.places.PositionOf(end - 1, items) + 1;
}

}  // namespace

bool ReleasedPart::Has(int64_t index) const {
  if (index < count) return true;
  const auto after =
      std::upper_bound(done.begin(), done.end(), index,
                       [](int64_t value, const MemberRange& range) { return value < range.begin; });
  return after != done.begin() && index < std::prev(after)->end;
}

Released::Released(int64_t items, const PlaceSet& places, const std::vector<ReleasedLayer>& layers)
    : items_(items), places_(places) {
  for (const ReleasedLayer& from : layers) {
    Layer layer;
    layer.disjoint = AreDisjoint(SetsOf(from));
    if (HaveOneStep(SetsOf(from))) {
      layer.step = from[0].places.step;
      layer.by_residue.resize(static_cast<size_t>(layer.step));
    }
    bool covered = false;
    int64_t below = kPositionsMax;
    for (const ReleasedPart& part : from) {
      KnownPart own = {part, part.places.And(places), {}};
      if (part.count > 0)
        own.spans.push_back({0, part.places.PositionOf(part.count - 1, items) + 1});
      for (const MemberRange& range : part.done) {
        own.spans.push_back({part.places.PositionOf(range.begin, items),
                             part.places.PositionOf(range.end - 1, items) + 1});
      }
      covered = covered || own.common.count() == places.count();
      if (own.common.count() > 0) {
        below = std::min(below, part.places.PositionOf(part.count, items));
      }
      end_ = std::max(end_, EndOf(part, items));
      if (layer.step > 0) {
        layer.by_residue[static_cast<size_t>(part.places.first % layer.step)].push_back(
            static_cast<int>(layer.parts.size()));
      }
      layer.parts.push_back(std::move(own));
    }
    if (covered) layer.all_below = below;
    layers_.push_back(std::move(layer));
  }
}

bool Released::LayerHas(const Layer& layer, int64_t position) const {
  const int64_t place = position % items_;
  bool counted = false;
  const auto allows = [&](const KnownPart& part) {
    if (!part.part.places.Has(place)) return true;
    counted = true;
    return part.part.Has(part.part.places.IndexAt(position, items_));
  };
  if (layer.step > 0) {
    for (const int i : layer.by_residue[static_cast<size_t>(place % layer.step)]) {
      if (!allows(layer.parts[static_cast<size_t>(i)])) return false;
    }
    return counted;
  }
  return std::all_of(layer.parts.begin(), layer.parts.end(), allows) && counted;
}

bool Released::Has(int64_t position) const {
  if (position >= end_) return false;
  return std::any_of(layers_.begin(), layers_.end(),
                     [&](const Layer& layer) { return LayerHas(layer, position); });
}

int64_t Released::Align(int64_t position) const {
  return places_.PositionOf(places_.IndexAt(position, items_), items_);
}

// Counts the layer's positions below this one among this rank's places. The layer is disjoint.
int64_t Released::CountIn(const Layer& layer, int64_t position) const {
  int64_t count = 0;
  for (const KnownPart& part : layer.parts) {
    if (part.common.count() == 0) continue;
    for (const Span& span : part.spans) {
      if (span.begin >= position) break;
      count += part.common.IndexAt(std::min(span.end, position), items_) -
               part.common.IndexAt(span.begin, items_);
    }
  }
  return count;
}

// The first position of this rank, after one that the layer has, that it has not.
int64_t Released::Skip(const Layer& layer, int64_t position) const {
  if (!layer.disjoint) return Align(std::max(layer.all_below, position + 1));
  const auto missing = [&](int64_t at) { return places_.IndexAt(at, items_) - CountIn(layer, at); };
  const int64_t before = missing(position);
  int64_t low = position;  // as many are missing below as before
  int64_t high = end_;
  if (missing(high) == before) return Align(high);
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (missing(middle) == before ? low : high) = middle;
  }
  return low;
}

int64_t Released::Next(int64_t position) const {
  if (places_.count() == 0) return kPositionsMax;
  int steps = 0;
  position = Align(position);
  while (position < end_) {
    const auto layer = std::find_if(layers_.begin(), layers_.end(),
                                    [&](const Layer& one) { return LayerHas(one, position); });
    if (layer == layers_.end()) return position;
    const bool skips = ++steps % kSteps == 0 || position < layer->all_below;
    position = skips ? Skip(*layer, position) : Align(position + 1);
  }
  return position;
}

int64_t Released::CountBelow(int64_t position) const {
  if (places_.count() == 0) return 0;
  const int64_t walked = std::min(position, end_);
  int64_t count = places_.IndexAt(position, items_) - places_.IndexAt(walked, items_);
  if (layers_.size() == 1 && layers_[0].disjoint) {
    return count + places_.IndexAt(walked, items_) - CountIn(layers_[0], walked);
  }
  for (int64_t at = Next(0); at < walked; at = Next(at + 1)) ++count;
  return count;
}

absl::Status CheckReleased(int64_t items, const std::vector<ReleasedLayer>& layers) {
  int64_t begin = kPositionsMax;
  int64_t end = 0;
  bool simple = layers.size() <= 1;
  for (const ReleasedLayer& layer : layers) {
    simple = simple && AreDisjoint(SetsOf(layer));
    for (const ReleasedPart& part : layer) {
      begin = std::min(begin, part.places.PositionOf(part.count, items));
      end = std::max(end, EndOf(part, items));
    }
  }
  if (simple || end - begin <= kWalkMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cursors of ranks that share items, or of several jobs, that are ", end - begin,
                   " positions apart; at most ", kWalkMax, " can be"));
}

bool CoverReleased(int64_t items, const std::vector<PlaceSet>& sets,
                   const std::vector<ReleasedLayer>& layers) {
  if (layers.empty()) return true;
  int64_t sum = 0;
  for (const PlaceSet& set : sets) sum += set.count();
  if (sum == items && AreDisjoint(sets)) return true;
  const auto is_covered = [&](const ReleasedPart& part) {
    const int64_t count = part.places.count();
    return std::any_of(sets.begin(), sets.end(),
                       [&](const PlaceSet& set) { return set.And(part.places).count() == count; });
  };
  return std::all_of(layers.begin(), layers.end(), [&](const ReleasedLayer& layer) {
    return std::all_of(layer.begin(), layer.end(), is_covered);
  });
}

}  // namespace sluice
