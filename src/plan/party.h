// The party of a route: its ranks, the tree that the bytes pass down, and the size of its pieces.
#ifndef SLUICE_SRC_PLAN_PARTY_H_
#define SLUICE_SRC_PLAN_PARTY_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "mesh/partition.h"
#include "plan/fanout.h"
#include "plan/gathering.h"
#include "plan/plan.h"
#include "plan/serve.h"
#include "sluice/transfer.h"

namespace sluice {

// Equal (first, last, number) means equal members, in an equal tree, within one transfer. Steps may
// differ if the same ranks reduce little and much: then the steps of the first tensor serve for
// all.
struct Party {
  int src = -1;  // has the bytes, or reduces them: the owner
  // The others that need them, in the order of the tree; may be empty.
  absl::InlinedVector<FanoutPlace, 1> dsts;
  bool src_needs = false;              // it needs them itself
  absl::Span<const int> contributors;  // in the order of addition; or none
  absl::Span<const Level> levels;      // of the reduction
  GatherSteps steps;                   // of it
  uint64_t number = 0;                 // 0: two ranks, or one that has what it needs
  int64_t piece_bytes = 0;             // most bytes of one bucket; not the same in equal parties

  // The first destination.
  int dst() const { return dsts.empty() ? src : dsts[0].rank; }
  // The ranks that name its buckets: the source and the first destination. An owner that is only a
  // destination may add up several parts of a tensor: then they are the first contributor and the
  // owner.
  int first() const { return OwnerContributes() ? src : contributors[0]; }
  int last() const { return OwnerContributes() ? dst() : src; }
  // True also where nothing is reduced.
  bool OwnerContributes() const;
};

// The role of a contributor to a party.
Role RoleInReduction(const Party& party, int rank);

// Parties of two ranks, or of one that has what it needs, of one rank's plan.
class PairParties {
 public:
  explicit PairParties(int64_t bucket_bytes) : bucket_bytes_(bucket_bytes) {}

  // `dst` may be `src`, which then copies what it has and needs. Lives as long as this object.
  const Party& Of(int src, int dst);

 private:
  int64_t bucket_bytes_;
  std::deque<Party> parties_;
  absl::flat_hash_map<std::pair<int, int>, const Party*> by_ranks_;
};

// The larger parties of one class of tensors: made on first use, and kept.
class Parties {
 public:
  // `tensor` is any of the class, `src` its source layout's partition; with `options` they must
  // outlive this object. `layout_pair` numbers the class's layouts, equally on all ranks: classes
  // with other layouts have other numbers, but for slices.
  Parties(const TensorTransfer& tensor, const Partition& src, const PlanOptions& options,
          int layout_pair);

  // As elements of the class fill buckets: in a reduction, of a contribution.
  int64_t element_bytes() const { return element_bytes_; }

  // The contributions of one replica: those that `owner` of a share of `need` adds up. None unless
  // the class is reduced.
  absl::Span<const int> ContributorsTo(const Need& need, absl::Span<const int> holders,
                                       int owner) const;

  // The party that passes `share` of what the ranks of `need` need together from `src`. `src` is
  // one of `holders`, or the owner of a reduction. These lists must stay until Clear; `need` is
  // known by its address. Lives until Clear.
  const Party& Of(int src, absl::Span<const int> holders, const Need& need, const Share& share);

  void Clear();
  // About how much memory Clear would give back.
  int64_t bytes() const { return bytes_; }

 private:
  struct Key {
    const Need* need;
    int src;
    int32_t stripe;
    int64_t elements;

    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.need, key.src, key.stripe, key.elements);
    }
  };
  Party Make(int src, absl::Span<const int> holders, const Need& need, const Share& share) const;
  std::vector<FanoutPlace> TreeOf(int src, const RanksByNode& nodes, int32_t stripe,
                                  FanoutShape shape, bool coincides) const;
  size_t FirstDst(int src) const;
  bool reduces() const { return src_.contributions() > 1; }

  const Mesh& src_mesh_;
  const Mesh& dst_mesh_;
  const Partition& src_;
  const PlanOptions& options_;
  const int layout_pair_;
  const int64_t element_bytes_;
  absl::flat_hash_map<Key, std::unique_ptr<const Party>> parties_;
  int64_t bytes_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_PARTY_H_
