// Carries out all ranks' plans element by element.
#include "plan/delivery.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "oracle/brute_layout.h"
#include "plan/region_map.h"

namespace sluice::oracle {
namespace {

constexpr int64_t kUnwritten = -1;
constexpr int64_t kMaxPaddingBytes = 7;  // before each chunk but the first

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InternalError(absl::StrCat(parts...));
}

// One rank's dense local tensor; each element holds its global flat index.
struct LocalTensor {
  std::vector<int64_t> shape;
  std::vector<int64_t> elements;
};

LocalTensor MakeLocal(const Layout& layout, const std::vector<int64_t>& shape, int rank) {
  LocalTensor local;
  const auto lists = OwnedLists(layout, shape, rank);
  if (!lists.has_value()) {
    local.shape.assign(shape.size(), 0);
    return local;
  }
  for (const IndexList& list : *lists) local.shape.push_back(static_cast<int64_t>(list.size()));
  local.elements = FlatIndices(*lists, shape);
  return local;
}

class Courier {
 public:
  Courier(const Job& job, const std::vector<Plan>& plans) : job_(job), plans_(plans) {
    const size_t ranks = plans.size();
    maps_.resize(ranks);
    moved_.resize(ranks);
    for (size_t rank = 0; rank < ranks; ++rank) {
      for (size_t i = 0; i < plans[rank].regions.size(); ++i) {
        maps_[rank].push_back(MapRegion(plans[rank], static_cast<int32_t>(i)));
      }
    }
    for (const TensorTransfer& tensor : job.spec.tensors) AddTensor(tensor);
  }

  absl::Status Run();
  const std::vector<Moved>& moved() const { return moved_; }

 private:
  struct Tensor {
    std::vector<LocalTensor> src;       // by rank
    std::vector<LocalTensor> expected;  // by rank
    std::vector<LocalTensor> dst;       // by rank
    std::vector<uint64_t> owners;       // by element, a bit per source rank
    int64_t element_bytes = 0;
  };
  // A bucket as its members see it.
  struct Ends {
    std::optional<std::pair<int, const Bucket*>> src, dst, local;
  };
  using Wire = std::vector<int64_t>;  // a label per byte

  void AddTensor(const TensorTransfer& transfer);
  absl::Status Collect(std::map<BucketId, Ends>* buckets) const;
  absl::Status CheckChunk(int rank, const Bucket& bucket, const Chunk& chunk) const;
  absl::Status Pack(int rank, const Bucket& bucket, Wire* wire);
  absl::Status Unpack(int src_rank, int rank, const Bucket& bucket, const Wire& wire);
  absl::Status CopyLocal(int rank, const Bucket& bucket);
  absl::Status Arrive(size_t tensor, int src_rank, int rank, int64_t offset, int64_t element);
  absl::Status CheckAllArrived() const;

  static int64_t Label(size_t tensor, int64_t element, int64_t byte) {
    return (static_cast<int64_t>(tensor) << 40) + element * 8 + byte;
  }

  const Job& job_;
  const std::vector<Plan>& plans_;
  std::vector<std::vector<RegionMap>> maps_;  // by rank, by region
  std::vector<Tensor> tensors_;
  std::vector<Moved> moved_;
};

void Courier::AddTensor(const TensorTransfer& transfer) {
  Tensor tensor;
  tensor.element_bytes = DTypeBytes(transfer.src_dtype);
  int64_t elements = 1;
  for (const int64_t size : transfer.shape) elements *= size;
  tensor.owners.resize(static_cast<size_t>(elements));
  for (int rank = 0; rank < job_.ranks(); ++rank) {
    tensor.src.push_back(MakeLocal(transfer.src, transfer.shape, rank));
    for (const int64_t element : tensor.src.back().elements) {
      tensor.owners[static_cast<size_t>(element)] |= uint64_t{1} << rank;
    }
    tensor.expected.push_back(MakeLocal(transfer.dst, transfer.shape, rank));
    tensor.dst.push_back(tensor.expected.back());
    tensor.dst.back().elements.assign(tensor.dst.back().elements.size(), kUnwritten);
  }
  tensors_.push_back(std::move(tensor));
}

absl::Status Courier::Collect(std::map<BucketId, Ends>* buckets) const {
  for (int rank = 0; rank < job_.ranks(); ++rank) {
    for (const Bucket& bucket : plans_[static_cast<size_t>(rank)].buckets) {
      Ends& ends = (*buckets)[bucket.id];
      auto& end = bucket.role == Role::kSource        ? ends.src
                  : bucket.role == Role::kDestination ? ends.dst
                                                      : ends.local;
      if (end.has_value()) {
        return Wrong(bucket.id.ToString(), " has one role at ranks ", end->first, " and ", rank);
      }
      end.emplace(rank, &bucket);
    }
  }
  return absl::OkStatus();
}

absl::Status Courier::Run() {
  std::map<BucketId, Ends> buckets;
  if (absl::Status status = Collect(&buckets); !status.ok()) return status;
  for (const auto& [id, ends] : buckets) {
    absl::Status status;
    if (ends.local.has_value()) {
      if (ends.src.has_value() || ends.dst.has_value()) {
        return Wrong(id.ToString(), " is local and not");
      }
      status = CopyLocal(ends.local->first, *ends.local->second);
    } else {
      if (!ends.src.has_value()) return Wrong(id.ToString(), " has no source");
      if (!ends.dst.has_value()) return Wrong(id.ToString(), " has no destination");
      Wire wire(static_cast<size_t>(ends.src->second->bytes), kUnwritten);
      status = Pack(ends.src->first, *ends.src->second, &wire);
      if (status.ok()) {
        status = Unpack(ends.src->first, ends.dst->first, *ends.dst->second, wire);
      }
    }
    if (!status.ok()) return Wrong(id.ToString(), ": ", status.message());
  }
  return CheckAllArrived();
}

absl::Status Courier::CheckChunk(int rank, const Bucket& bucket, const Chunk& chunk) const {
  const Plan& plan = plans_[static_cast<size_t>(rank)];
  if (chunk.tensor < 0 || chunk.tensor >= static_cast<int32_t>(tensors_.size())) {
    return Wrong("rank ", rank, ": no tensor ", chunk.tensor);
  }
  if (chunk.region < 0 || chunk.region >= static_cast<int32_t>(plan.regions.size())) {
    return Wrong("rank ", rank, ": no region ", chunk.region);
  }
  const RegionMap& map = maps_[static_cast<size_t>(rank)][static_cast<size_t>(chunk.region)];
  const size_t dims = job_.spec.tensors[static_cast<size_t>(chunk.tensor)].shape.size();
  if (map.extent.size() != dims) return Wrong("rank ", rank, ": wrong dims of a region");
  for (size_t d = 0; d < dims; ++d) {
    const auto extent = static_cast<size_t>(map.extent[d]);
    if (map.src[d].size() != extent) return Wrong("rank ", rank, ": runs do not fill the extent");
    // A wire side counts through the region.
    const auto& wire = bucket.role == Role::kSource ? map.dst[d] : map.src[d];
    for (size_t q = 0; q < extent && bucket.role != Role::kLocal; ++q) {
      if (wire[q] != static_cast<int64_t>(q)) return Wrong("rank ", rank, ": wire order");
    }
  }
  if (chunk.begin < 0 || chunk.begin >= chunk.end || chunk.end > map.elements()) {
    return Wrong("rank ", rank, ": elements [", chunk.begin, ",", chunk.end, ") of ",
                 map.elements());
  }
  const int64_t bytes =
      (chunk.end - chunk.begin) * tensors_[static_cast<size_t>(chunk.tensor)].element_bytes;
  if (chunk.bucket_offset < 0 || chunk.bucket_offset + bytes > bucket.bytes) {
    return Wrong("rank ", rank, ": a chunk lies outside its bucket");
  }
  return absl::OkStatus();
}

absl::Status Courier::Pack(int rank, const Bucket& bucket, Wire* wire) {
  const Plan& plan = plans_[static_cast<size_t>(rank)];
  for (int32_t c = 0; c < bucket.chunk_count; ++c) {
    const Chunk& chunk = plan.chunks.at(static_cast<size_t>(bucket.first_chunk + c));
    if (absl::Status status = CheckChunk(rank, bucket, chunk); !status.ok()) return status;
    const auto t = static_cast<size_t>(chunk.tensor);
    const RegionMap& map = maps_[static_cast<size_t>(rank)][static_cast<size_t>(chunk.region)];
    const LocalTensor& local = tensors_[t].src[static_cast<size_t>(rank)];
    auto at = static_cast<size_t>(chunk.bucket_offset);
    for (int64_t e = chunk.begin; e < chunk.end; ++e) {
      const int64_t offset = OffsetOf(e, map.extent, map.src, local.shape);
      if (offset < 0) return Wrong("rank ", rank, " reads out of bounds");
      for (int64_t byte = 0; byte < tensors_[t].element_bytes; ++byte) {
        if ((*wire)[at] != kUnwritten) return Wrong("byte ", at, " is written twice");
        (*wire)[at++] = Label(t, local.elements[static_cast<size_t>(offset)], byte);
      }
    }
    moved_[static_cast<size_t>(rank)].sent += (chunk.end - chunk.begin) * tensors_[t].element_bytes;
  }
  // Only the alignment of later chunks may leave bytes out.
  int64_t unwritten = 0;
  for (const int64_t label : *wire) unwritten += label == kUnwritten ? 1 : 0;
  if (wire->back() == kUnwritten || unwritten > kMaxPaddingBytes * (bucket.chunk_count - 1)) {
    return Wrong(unwritten, " bytes are never written");
  }
  return absl::OkStatus();
}

absl::Status Courier::Unpack(int src_rank, int rank, const Bucket& bucket, const Wire& wire) {
  const Plan& plan = plans_[static_cast<size_t>(rank)];
  if (bucket.bytes != static_cast<int64_t>(wire.size())) return Wrong("ends differ in bytes");
  for (int32_t c = 0; c < bucket.chunk_count; ++c) {
    const Chunk& chunk = plan.chunks.at(static_cast<size_t>(bucket.first_chunk + c));
    if (absl::Status status = CheckChunk(rank, bucket, chunk); !status.ok()) return status;
    const auto t = static_cast<size_t>(chunk.tensor);
    const RegionMap& map = maps_[static_cast<size_t>(rank)][static_cast<size_t>(chunk.region)];
    const LocalTensor& local = tensors_[t].dst[static_cast<size_t>(rank)];
    auto at = static_cast<size_t>(chunk.bucket_offset);
    for (int64_t e = chunk.begin; e < chunk.end; ++e) {
      const int64_t element = (wire[at] & ((int64_t{1} << 40) - 1)) / 8;
      for (int64_t byte = 0; byte < tensors_[t].element_bytes; ++byte) {
        if (wire[at++] != Label(t, element, byte)) return Wrong("bytes of an element are mixed up");
      }
      const int64_t offset = OffsetOf(e, map.extent, map.dst, local.shape);
      if (absl::Status s = Arrive(t, src_rank, rank, offset, element); !s.ok()) return s;
    }
    moved_[static_cast<size_t>(rank)].received +=
        (chunk.end - chunk.begin) * tensors_[t].element_bytes;
  }
  return absl::OkStatus();
}

absl::Status Courier::CopyLocal(int rank, const Bucket& bucket) {
  const Plan& plan = plans_[static_cast<size_t>(rank)];
  int64_t bytes = 0;
  for (int32_t c = 0; c < bucket.chunk_count; ++c) {
    const Chunk& chunk = plan.chunks.at(static_cast<size_t>(bucket.first_chunk + c));
    if (absl::Status status = CheckChunk(rank, bucket, chunk); !status.ok()) return status;
    const auto t = static_cast<size_t>(chunk.tensor);
    const RegionMap& map = maps_[static_cast<size_t>(rank)][static_cast<size_t>(chunk.region)];
    const LocalTensor& src = tensors_[t].src[static_cast<size_t>(rank)];
    const LocalTensor& dst = tensors_[t].dst[static_cast<size_t>(rank)];
    for (int64_t e = chunk.begin; e < chunk.end; ++e) {
      const int64_t from = OffsetOf(e, map.extent, map.src, src.shape);
      if (from < 0) return Wrong("rank ", rank, " reads out of bounds");
      const int64_t to = OffsetOf(e, map.extent, map.dst, dst.shape);
      absl::Status status = Arrive(t, rank, rank, to, src.elements[static_cast<size_t>(from)]);
      if (!status.ok()) return status;
    }
    bytes += (chunk.end - chunk.begin) * tensors_[t].element_bytes;
  }
  if (bytes > bucket.bytes || bucket.bytes - bytes > kMaxPaddingBytes * (bucket.chunk_count - 1)) {
    return Wrong(bytes, " bytes in a local bucket of ", bucket.bytes);
  }
  moved_[static_cast<size_t>(rank)].local += bytes;
  return absl::OkStatus();
}

absl::Status Courier::Arrive(size_t tensor, int src_rank, int rank, int64_t offset,
                             int64_t element) {
  Tensor& t = tensors_[tensor];
  const auto r = static_cast<size_t>(rank);
  if (offset < 0) return Wrong("rank ", rank, " writes out of bounds");
  int64_t& place = t.dst[r].elements[static_cast<size_t>(offset)];
  if (place != kUnwritten) return Wrong("rank ", rank, " gets element ", place, " twice");
  place = element;
  const int64_t expected = t.expected[r].elements[static_cast<size_t>(offset)];
  if (element != expected) {
    return Wrong("rank ", rank, " gets element ", element, " in place of ", expected);
  }
  const uint64_t owners = t.owners[static_cast<size_t>(element)];
  if ((owners >> rank & 1) != 0) {
    if (src_rank != rank) return Wrong("rank ", rank, " has element ", element, " itself");
    return absl::OkStatus();
  }
  uint64_t node = 0;
  for (size_t other = 0; other < job_.node_of_rank.size(); ++other) {
    if (job_.node_of_rank[other] == job_.node_of_rank[r]) node |= uint64_t{1} << other;
  }
  if ((owners & node) != 0 && (node >> src_rank & 1) == 0) {
    return Wrong("rank ", rank, " has element ", element, " on its node, gets it from ", src_rank);
  }
  return absl::OkStatus();
}

absl::Status Courier::CheckAllArrived() const {
  for (size_t t = 0; t < tensors_.size(); ++t) {
    for (size_t rank = 0; rank < plans_.size(); ++rank) {
      if (tensors_[t].dst[rank].elements != tensors_[t].expected[rank].elements) {
        return Wrong("rank ", rank, " does not get all of tensor ", t);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Deliver(const Job& job, const std::vector<Plan>& plans, std::vector<Moved>* moved) {
  Courier courier(job, plans);
  absl::Status status = courier.Run();
  *moved = courier.moved();
  return status;
}

}  // namespace sluice::oracle
