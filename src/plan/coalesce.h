// Cuts the routes of one party into buckets.
//
// A pure function of the sequence of routes and of sizes, which all members share. Small chunks
// join, large ones are split evenly, those in between travel alone. Small chunks join across large
// ones, as a model alternates between them. Without joining each chunk is a bucket of its own.
#ifndef SLUICE_SRC_PLAN_COALESCE_H_
#define SLUICE_SRC_PLAN_COALESCE_H_

#include <cstdint>
#include <vector>

#include "plan/plan.h"
#include "plan/routes.h"

namespace sluice {

// The buckets of one party after the other, each party's in order.
class PartyBuckets {
 public:
  struct Draft {
    int64_t bytes = 0;
    int64_t contribution_bytes = 0;  // 0 if nothing is reduced
    size_t first_chunk = 0;          // into chunks()
    size_t chunk_count = 0;
  };

  // `coalesce`: small chunks join.
  explicit PartyBuckets(bool coalesce) : coalesce_(coalesce) {}

  // Begins with a party. `bucket_bytes`: most bytes of a bucket; in a reduction, of a contribution.
  void Start(int64_t bucket_bytes, bool reduced);

  // The most buckets of a party: a BucketId can number no more.
  static constexpr int64_t kBucketsMax = (int64_t{1} << kRoundBits) - 1;

  // Adds `tensor`'s route; tensors come in ascending order. An element takes `wire_bytes` on its
  // way to a destination. As a contribution it takes `src_bytes`, which are no fewer.
  void Add(int32_t tensor, const Route& route, int64_t wire_bytes, int64_t src_bytes);
  // No more routes. Buckets and chunks are complete only then.
  void Finish();

  // How many buckets the routes ask for; if above kBucketsMax, drafts() is incomplete.
  int64_t wanted() const { return wanted_; }

  const std::vector<Chunk>& chunks() const { return chunks_; }
  const std::vector<Draft>& drafts() const { return drafts_; }

 private:
  void Join(Chunk chunk, int64_t wire_bytes, int64_t src_bytes);
  void AppendAlone(const Chunk& chunk, int64_t wire_bytes, int64_t src_bytes);

  const bool coalesce_;
  int64_t bucket_bytes_ = 0;
  bool reduced_ = false;
  int64_t wanted_ = 0;
  std::vector<Chunk> joined_;  // small chunks that make up the next bucket
  Draft joining_;              // their bytes
  std::vector<Chunk> chunks_;
  std::vector<Draft> drafts_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_PLAN_COALESCE_H_
