// Packs, reduces and unpacks chunks element by element.
#include "plan/job_tensors.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "oracle/brute_layout.h"
#include "plan/channel_content.h"
#include "plan/wrong.h"

namespace sluice::oracle {
namespace {

constexpr Value kUnwritten = 0;
constexpr Value kInside = 1;             // a byte of an element, but its first
constexpr int64_t kMaxPaddingBytes = 7;  // before each chunk but the first

bool Put(Value value, int64_t bytes, int64_t at, Wire* wire) {
  for (int64_t byte = 0; byte < bytes; ++byte) {
    Value& place = (*wire)[static_cast<size_t>(at + byte)];
    if (place != kUnwritten) return false;
    place = byte == 0 ? value : kInside;
  }
  return true;
}

// kUnwritten if there is no element of `bytes` at `at`.
Value Take(const Wire& wire, int64_t bytes, int64_t at) {
  const Value value = wire[static_cast<size_t>(at)];
  if (value == kInside) return kUnwritten;
  for (int64_t byte = 1; byte < bytes; ++byte) {
    if (wire[static_cast<size_t>(at + byte)] != kInside) return kUnwritten;
  }
  const size_t end = static_cast<size_t>(at + bytes);
  return end < wire.size() && wire[end] == kInside ? kUnwritten : value;
}

// Only the alignment of later chunks may leave bytes out.
absl::Status CheckFilled(const Wire& wire, int32_t chunks) {
  int64_t unwritten = 0;
  for (const Value value : wire) unwritten += value == kUnwritten ? 1 : 0;
  if (wire.back() == kUnwritten || unwritten > kMaxPaddingBytes * (chunks - 1)) {
    return Wrong(unwritten, " bytes are never written");
  }
  return absl::OkStatus();
}

bool CountsUp(const std::vector<int64_t>& positions) {
  for (size_t q = 0; q < positions.size(); ++q) {
    if (positions[q] != static_cast<int64_t>(q)) return false;
  }
  return true;
}

bool IsSourceSide(const Plan& plan, const Bucket& bucket) {
  const ChannelContent content =
      ContentOf(plan, plan.channels[static_cast<size_t>(bucket.channel)]);
  const int32_t self = plan.channels[static_cast<size_t>(bucket.channel)].self;
  return Has(bucket.role, Role::kSource) ||
         std::find(content.contributions.begin(), content.contributions.end(), self) !=
             content.contributions.end();
}

}  // namespace

JobTensors::JobTensors(const Job& job, const std::vector<Plan>& plans) : job_(job), plans_(plans) {
  maps_.resize(plans.size());
  for (size_t rank = 0; rank < plans.size(); ++rank) {
    for (size_t i = 0; i < plans[rank].regions.size(); ++i) {
      maps_[rank].push_back(MapRegion(plans[rank], static_cast<int32_t>(i)));
    }
    uint64_t mates = 0;
    for (size_t other = 0; other < plans.size(); ++other) {
      if (job.node_of_rank[other] == job.node_of_rank[rank]) mates |= uint64_t{1} << other;
    }
    node_mates_.push_back(mates);
  }
  for (size_t t = 0; t < job.spec.tensors.size(); ++t) AddTensor(static_cast<int>(t));
}

void JobTensors::AddTensor(int index) {
  const TensorTransfer& transfer = job_.spec.tensors[static_cast<size_t>(index)];
  Tensor tensor;
  tensor.src_bytes = DTypeBytes(transfer.src_dtype);
  tensor.wire_bytes = DTypeBytes(WireDType(transfer));
  tensor.reduced = IsReduced(transfer);
  tensor.gathers = job_.relay && PartialLevels(transfer) == 1;
  int64_t elements = 1;
  for (const int64_t size : transfer.shape) elements *= size;
  tensor.holders.resize(static_cast<size_t>(elements));
  tensor.needers.resize(static_cast<size_t>(elements));
  for (int64_t e = 0; e < elements; ++e) {
    tensor.expected.push_back(ExpectedValue(transfer, index, e));
  }
  const auto make = [&transfer](const Layout& layout, int rank) {
    LocalTensor local;
    local.shape.assign(transfer.shape.size(), 0);
    const auto lists = OwnedLists(layout, transfer.shape, rank);
    if (!lists.has_value()) return local;
    for (size_t d = 0; d < lists->size(); ++d) {
      local.shape[d] = static_cast<int64_t>((*lists)[d].size());
    }
    local.elements = FlatIndices(*lists, transfer.shape);
    local.values.assign(local.elements.size(), kUnwritten);
    return local;
  };
  for (int rank = 0; rank < job_.ranks(); ++rank) {
    LocalTensor src = make(transfer.src, rank);
    for (size_t i = 0; i < src.elements.size(); ++i) {
      src.values[i] = HeldValue(transfer, index, src.elements[i], rank);
      tensor.holders[static_cast<size_t>(src.elements[i])] |= uint64_t{1} << rank;
    }
    tensor.src.push_back(std::move(src));
    tensor.dst.push_back(make(transfer.dst, rank));
    for (const int64_t element : tensor.dst.back().elements) {
      tensor.needers[static_cast<size_t>(element)] |= uint64_t{1} << rank;
    }
  }
  tensors_.push_back(std::move(tensor));
}

const Chunk& JobTensors::ChunkOf(int rank, const Bucket& bucket, int32_t c) const {
  return plans_[static_cast<size_t>(rank)].chunks.at(static_cast<size_t>(bucket.first_chunk + c));
}

const RegionMap& JobTensors::MapOf(int rank, int32_t region) const {
  return maps_[static_cast<size_t>(rank)].at(static_cast<size_t>(region));
}

const JobTensors::Tensor& JobTensors::TensorOf(const Chunk& chunk) const {
  return tensors_.at(static_cast<size_t>(chunk.tensor));
}

absl::Status JobTensors::CheckRegion(int rank, const Chunk& chunk, int32_t region, bool src_is_wire,
                                     bool dst_is_wire) const {
  const RegionMap& map = MapOf(rank, region);
  const size_t dims = job_.spec.tensors[static_cast<size_t>(chunk.tensor)].shape.size();
  if (map.extent.size() != dims) return Wrong("rank ", rank, ": wrong dims of a region");
  for (size_t d = 0; d < dims; ++d) {
    if (map.src[d].size() != static_cast<size_t>(map.extent[d])) {
      return Wrong("rank ", rank, ": runs do not fill the extent");
    }
    if ((src_is_wire && !CountsUp(map.src[d])) || (dst_is_wire && !CountsUp(map.dst[d]))) {
      return Wrong("rank ", rank, ": wire order");
    }
  }
  if (chunk.begin < 0 || chunk.begin >= chunk.end || chunk.end > map.elements()) {
    return Wrong("rank ", rank, ": elements [", chunk.begin, ",", chunk.end, ") of ",
                 map.elements());
  }
  return absl::OkStatus();
}

absl::Status JobTensors::CheckChunk(int rank, const Bucket& bucket, const Chunk& chunk) const {
  const bool from_src = IsSourceSide(plans_[static_cast<size_t>(rank)], bucket);
  const bool local = bucket.role == Role::kLocal;
  absl::Status status =
      CheckRegion(rank, chunk, chunk.region, !from_src && !local, from_src && !local);
  if (!status.ok()) return status;
  const bool both = !local && from_src && Has(bucket.role, Role::kDestination);
  if (both != (chunk.dst_region >= 0)) return Wrong("rank ", rank, ": region as a destination");
  if (both) {
    status = CheckRegion(rank, chunk, chunk.dst_region, true, false);
    if (!status.ok()) return status;
    if (MapOf(rank, chunk.dst_region).extent != MapOf(rank, chunk.region).extent) {
      return Wrong("rank ", rank, ": its two regions differ");
    }
  }
  const Tensor& tensor = TensorOf(chunk);
  const int64_t elements = chunk.end - chunk.begin;
  const bool reduced = bucket.contribution_bytes > 0;
  if (reduced != tensor.reduced) return Wrong("rank ", rank, ": reduced or not");
  if (chunk.bucket_offset % 8 != 0 || chunk.contribution_offset % 8 != 0 ||
      chunk.bucket_offset < 0 || chunk.contribution_offset < 0 ||
      chunk.bucket_offset + elements * tensor.wire_bytes > bucket.bytes ||
      (reduced &&
       chunk.contribution_offset + elements * tensor.src_bytes > bucket.contribution_bytes)) {
    return Wrong("rank ", rank, ": a chunk lies outside its bucket, or askew");
  }
  return absl::OkStatus();
}

absl::Status JobTensors::PackAs(As as, int rank, const Bucket& bucket, Wire* wire) const {
  const bool contribution = as == As::kSrc;
  wire->assign(static_cast<size_t>(contribution ? bucket.contribution_bytes : bucket.bytes),
               kUnwritten);
  for (int32_t c = 0; c < bucket.chunk_count; ++c) {
    const Chunk& chunk = ChunkOf(rank, bucket, c);
    if (absl::Status status = CheckChunk(rank, bucket, chunk); !status.ok()) return status;
    const Tensor& tensor = TensorOf(chunk);
    const RegionMap& map = MapOf(rank, chunk.region);
    const LocalTensor& local = tensor.src[static_cast<size_t>(rank)];
    const int64_t bytes = contribution ? tensor.src_bytes : tensor.wire_bytes;
    int64_t at = contribution ? chunk.contribution_offset : chunk.bucket_offset;
    for (int64_t e = chunk.begin; e < chunk.end; ++e, at += bytes) {
      const int64_t offset = OffsetOf(e, map.extent, map.src, local.shape);
      if (offset < 0) return Wrong("rank ", rank, " reads out of bounds");
      if (!Put(local.values[static_cast<size_t>(offset)], bytes, at, wire)) {
        return Wrong("byte ", at, " is written twice");
      }
    }
  }
  return CheckFilled(*wire, bucket.chunk_count);
}

absl::Status JobTensors::Pack(int rank, const Bucket& bucket, Wire* wire) const {
  return PackAs(As::kWire, rank, bucket, wire);
}

absl::Status JobTensors::PackContribution(int rank, const Bucket& bucket,
                                          Wire* contribution) const {
  return PackAs(As::kSrc, rank, bucket, contribution);
}

absl::Status JobTensors::Reduce(int owner, const Bucket& bucket, absl::Span<const Level> levels,
                                const std::vector<Wire>& contributions, Wire* wire) const {
  wire->assign(static_cast<size_t>(bucket.bytes), kUnwritten);
  for (int32_t c = 0; c < bucket.chunk_count; ++c) {
    const Chunk& chunk = ChunkOf(owner, bucket, c);
    const Tensor& tensor = TensorOf(chunk);
    for (int64_t i = 0; i < chunk.end - chunk.begin; ++i) {
      std::vector<Value> values;
      values.reserve(contributions.size());
      for (const Wire& contribution : contributions) {
        values.push_back(
            Take(contribution, tensor.src_bytes, chunk.contribution_offset + i * tensor.src_bytes));
      }
      for (const Level& level : levels) {
        const size_t size = static_cast<size_t>(level.size);
        std::vector<Value> next;
        for (size_t v = 0; v + size <= values.size(); v += size) {
          next.push_back(ReducedValue(level.op, absl::MakeConstSpan(values).subspan(v, size)));
        }
        values = std::move(next);
      }
      if (values.size() != 1) return Wrong("the levels leave ", values.size(), " values");
      if (!Put(values[0], tensor.wire_bytes, chunk.bucket_offset + i * tensor.wire_bytes, wire)) {
        return Wrong("a byte of a result is written twice");
      }
    }
  }
  return CheckFilled(*wire, bucket.chunk_count);
}

absl::Status JobTensors::Unpack(int rank, int src, const Bucket& bucket, const Wire& wire) {
  if (bucket.bytes != static_cast<int64_t>(wire.size())) return Wrong("ends differ in bytes");
  for (int32_t c = 0; c < bucket.chunk_count; ++c) {
    const Chunk& chunk = ChunkOf(rank, bucket, c);
    if (absl::Status status = CheckChunk(rank, bucket, chunk); !status.ok()) return status;
    Tensor& tensor = tensors_.at(static_cast<size_t>(chunk.tensor));
    const RegionMap& map = MapOf(rank, chunk.dst_region >= 0 ? chunk.dst_region : chunk.region);
    const LocalTensor& local = tensor.dst[static_cast<size_t>(rank)];
    int64_t at = chunk.bucket_offset;
    for (int64_t e = chunk.begin; e < chunk.end; ++e, at += tensor.wire_bytes) {
      const Value value = Take(wire, tensor.wire_bytes, at);
      if (value == kUnwritten) return Wrong("bytes of an element are mixed up");
      const int64_t offset = OffsetOf(e, map.extent, map.dst, local.shape);
      if (absl::Status s = Arrive(&tensor, src, rank, offset, value); !s.ok()) return s;
    }
  }
  return absl::OkStatus();
}

absl::Status JobTensors::CopyLocal(int rank, const Bucket& bucket) {
  for (int32_t c = 0; c < bucket.chunk_count; ++c) {
    const Chunk& chunk = ChunkOf(rank, bucket, c);
    if (absl::Status status = CheckChunk(rank, bucket, chunk); !status.ok()) return status;
    Tensor& tensor = tensors_.at(static_cast<size_t>(chunk.tensor));
    const RegionMap& map = MapOf(rank, chunk.region);
    const LocalTensor& src = tensor.src[static_cast<size_t>(rank)];
    const LocalTensor& dst = tensor.dst[static_cast<size_t>(rank)];
    for (int64_t e = chunk.begin; e < chunk.end; ++e) {
      const int64_t from = OffsetOf(e, map.extent, map.src, src.shape);
      if (from < 0) return Wrong("rank ", rank, " reads out of bounds");
      const int64_t to = OffsetOf(e, map.extent, map.dst, dst.shape);
      absl::Status status = Arrive(&tensor, rank, rank, to, src.values[static_cast<size_t>(from)]);
      if (!status.ok()) return status;
    }
  }
  const int64_t bytes = PayloadBytes(rank, bucket, As::kWire);
  if (bytes > bucket.bytes || bucket.bytes - bytes > kMaxPaddingBytes * (bucket.chunk_count - 1)) {
    return Wrong(bytes, " bytes in a local bucket of ", bucket.bytes);
  }
  return absl::OkStatus();
}

absl::Status JobTensors::Arrive(Tensor* tensor, int src, int rank, int64_t offset, Value value) {
  if (offset < 0) return Wrong("rank ", rank, " writes out of bounds");
  LocalTensor& local = tensor->dst[static_cast<size_t>(rank)];
  const int64_t element = local.elements[static_cast<size_t>(offset)];
  Value& place = local.values[static_cast<size_t>(offset)];
  if (place != kUnwritten) return Wrong("rank ", rank, " gets element ", element, " twice");
  place = value;
  if (value != tensor->expected[static_cast<size_t>(element)]) {
    return Wrong("rank ", rank, " gets something else in place of element ", element);
  }
  return CheckServer(*tensor, src, rank, element);
}

absl::Status JobTensors::CheckServer(const Tensor& tensor, int src, int rank,
                                     int64_t element) const {
  const uint64_t holders = tensor.holders[static_cast<size_t>(element)];
  const uint64_t mates = node_mates_[static_cast<size_t>(src)];
  if (tensor.reduced && (holders >> src & 1) == 0) {
    const bool needs = (tensor.needers[static_cast<size_t>(element)] >> src & 1) != 0;
    if (needs && (mates >> rank & 1) != 0) return absl::OkStatus();
  }
  if ((holders >> src & 1) == 0) return Wrong("rank ", src, " does not hold element ", element);
  const bool holds = (holders >> rank & 1) != 0;
  if (tensor.reduced) {
    const uint64_t needers = tensor.needers[static_cast<size_t>(element)];
    if (holds && (needers >> src & 1) == 0 && !tensor.gathers) {
      return Wrong("rank ", rank, " could reduce element ", element, " itself, not ", src);
    }
    return absl::OkStatus();
  }
  if (holds && src != rank) return Wrong("rank ", rank, " has element ", element, " itself");
  if ((holders & mates) != 0 && (mates >> src & 1) == 0) {
    return Wrong("rank ", rank, " has element ", element, " on its node, gets it from ", src);
  }
  return absl::OkStatus();
}

absl::Status JobTensors::CheckAllArrived() const {
  for (size_t t = 0; t < tensors_.size(); ++t) {
    for (size_t rank = 0; rank < plans_.size(); ++rank) {
      const LocalTensor& local = tensors_[t].dst[rank];
      for (size_t i = 0; i < local.values.size(); ++i) {
        if (local.values[i] == kUnwritten) {
          return Wrong("rank ", rank, " does not get element ", local.elements[i], " of tensor ",
                       t);
        }
      }
    }
  }
  return absl::OkStatus();
}

int64_t JobTensors::PayloadBytes(int rank, const Bucket& bucket, As as) const {
  int64_t bytes = 0;
  for (int32_t c = 0; c < bucket.chunk_count; ++c) {
    const Chunk& chunk = ChunkOf(rank, bucket, c);
    const Tensor& tensor = TensorOf(chunk);
    const int64_t element_bytes = as == As::kSrc    ? tensor.src_bytes
                                  : as == As::kWire ? tensor.wire_bytes
                                                    : tensor.wire_bytes;
    bytes += (chunk.end - chunk.begin) * element_bytes;
  }
  return bytes;
}

}  // namespace sluice::oracle
