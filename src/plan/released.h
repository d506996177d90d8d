// The positions of a stream that have been released, by any number of ranks, wherever each stopped.
#ifndef SLUICE_SRC_PLAN_RELEASED_H_
#define SLUICE_SRC_PLAN_RELEASED_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "plan/place_set.h"

namespace sluice {

// Members [begin, end) of a set of places, numbered through the epochs.
struct MemberRange {
  int64_t begin = 0;
  int64_t end = 0;
  friend bool operator==(const MemberRange&, const MemberRange&) = default;
};

// Released places of a rank: the first `count` members of `places`, and those of `done`.
struct ReleasedPart {
  PlaceSet places;
  int64_t count = 0;
  std::vector<MemberRange> done;  // ascending, beyond `count`; between any two is a member

  bool Has(int64_t index) const;
  // No member from here on is released.
  int64_t end_index() const { return done.empty() ? count : done.back().end; }
  friend bool operator==(const ReleasedPart&, const ReleasedPart&) = default;
};

// The releases of one job's ranks. A position is released if a part has it among its places, and
// all the parts that have it have released it.
using ReleasedLayer = std::vector<ReleasedPart>;

// The union of several layers, as members of one set of places see it. A position costs at most the
// parts of all layers. A long stretch of released positions is skipped at once in a layer whose
// parts have no place in common.
class Released {
 public:
  Released() = default;
  // An epoch has `items` positions. `places` are this rank's.
  Released(int64_t items, const PlaceSet& places, const std::vector<ReleasedLayer>& layers);

  bool Has(int64_t position) const;
  // No position from here on is released.
  int64_t end() const { return end_; }
  // The first position of `places`, at or after this one, that is not released; kPositionsMax if
  // there are no places.
  int64_t Next(int64_t position) const;
  // How many of the first positions, those below `position`, of `places` are not released.
  int64_t CountBelow(int64_t position) const;

 private:
  struct Span {  // positions
    int64_t begin = 0;
    int64_t end = 0;
  };
  struct KnownPart {
    ReleasedPart part;
    PlaceSet common;  // of its places and this rank's
    std::vector<Span> spans;
  };
  struct Layer {
    std::vector<KnownPart> parts;
    bool disjoint = true;
    // The parts' numbers by residue, if all parts have one step; otherwise empty.
    std::vector<std::vector<int>> by_residue;
    int64_t step = 0;
    // All of this rank's places below it are released; 0 if that is not known.
    int64_t all_below = 0;
  };

  bool LayerHas(const Layer& layer, int64_t position) const;
  int64_t Align(int64_t position) const;
  int64_t CountIn(const Layer& layer, int64_t position) const;
  int64_t Skip(const Layer& layer, int64_t position) const;

  int64_t items_ = 1;
  PlaceSet places_;
  std::vector<Layer> layers_;
  int64_t end_ = 0;
};

// InvalidArgument for layers of which Released would have to look at too many positions one by one.
// These are several layers, or one layer whose parts have places in common, with positions that are
// billions of items apart.
absl::Status CheckReleased(int64_t items, const std::vector<ReleasedLayer>& layers);

// True if all places of the layers are known to be among `sets`. False says nothing.
bool CoverReleased(int64_t items, const std::vector<PlaceSet>& sets,
                   const std::vector<ReleasedLayer>& layers);

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_RELEASED_H_
