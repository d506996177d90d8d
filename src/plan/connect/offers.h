// The tensors of all halves by name: what is said of each, and by which ranks.
#ifndef SLUICE_SRC_PLAN_CONNECT_OFFERS_H_
#define SLUICE_SRC_PLAN_CONNECT_OFFERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "plan/connect/match.h"

namespace sluice {

// Kinds and layouts of several halves, each numbered once.
class JoinedKinds {
 public:
  // `halves` must outlive this object.
  explicit JoinedKinds(absl::Span<const RankedHalf> halves);

  int NumberOf(size_t half, int kind) const { return numbers_[half][static_cast<size_t>(kind)]; }
  const TensorKind& kind(int number) const { return *kinds_[static_cast<size_t>(number)].kind; }
  const Layout& layout(int number) const { return *kinds_[static_cast<size_t>(number)].layout; }
  // Equal for kinds with equal layouts.
  int layout_number(int number) const { return kinds_[static_cast<size_t>(number)].layout_number; }

 private:
  struct Known {
    const TensorKind* kind;
    const Layout* layout;
    int layout_number;
  };
  std::vector<Known> kinds_;
  std::vector<std::vector<int>> numbers_;  // by half and its kind
};

// One tensor as the ranks that give it describe it.
struct Offer {
  absl::string_view name;
  int kind = 0;  // of JoinedKinds
  absl::optional<int> window = absl::nullopt;
  std::vector<size_t> halves = {};  // that give it so
};

// The sources of all halves, or the targets. Meshes of one name that have no rank in common are
// several offers: two engines may each take their own copy.
class Offers {
 public:
  Offers(absl::Span<const RankedHalf> halves, const JoinedKinds* kinds, bool are_targets);

  // In the order in which they were first named.
  absl::Span<const Offer> all() const { return offers_; }
  // Those of a name: indices into all().
  absl::Span<const size_t> Find(absl::string_view name) const;

  // FailedPrecondition: ranks describe one tensor in several ways. Sources of one name have one
  // mesh.
  absl::Status CheckAgreed() const;
  // InvalidArgument: a mesh's ranks and those that give the tensor are not the same.
  absl::Status CheckComplete() const;

  std::vector<int> RanksOf(const Offer& offer) const;
  // "'w' of ranks 0-3"
  std::string InWords(const Offer& offer) const;

 private:
  void Add(size_t half, const HalfTensor& tensor);
  // Two of the offers of one name that cannot both hold.
  absl::optional<std::pair<size_t, size_t>> FindConflict(const std::vector<size_t>& alike) const;
  std::string Difference(const Offer& a, const Offer& b) const;
  // Empty: all is well.
  std::string Incompleteness(const Offer& offer) const;
  absl::string_view side() const { return are_targets_ ? "target" : "source"; }

  const absl::Span<const RankedHalf> halves_;
  const JoinedKinds* const kinds_;
  const bool are_targets_;
  std::vector<Offer> offers_;
  // By name, kind and window (-1: none). A name may have as many offers as there are ranks.
  absl::flat_hash_map<std::tuple<absl::string_view, int, int>, size_t> known_;
  absl::flat_hash_map<absl::string_view, std::vector<size_t>> by_name_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_CONNECT_OFFERS_H_
