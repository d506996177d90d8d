// Sorting chunks into departures and arrivals, and giving them memory.
#include "reshard/baselines/rank_chunks.h"

#include "reshard/baselines/wire.h"
#include "tensor/round.h"

namespace sluice::bench {
namespace {

// Buffers of different messages share no cache line.
constexpr size_t kChunkAlignment = 64;

// `size` bytes in `buffer`, aligned.
std::byte* AlignedBytes(size_t size, std::vector<std::byte>* buffer) {
  buffer->resize(size + kChunkAlignment);
  const auto address = reinterpret_cast<uintptr_t>(buffer->data());
  return buffer->data() + (kChunkAlignment - address % kChunkAlignment) % kChunkAlignment;
}

std::byte* At(const TensorView& view, const Block& block) {
  return static_cast<std::byte*>(view.data) + block.first() * DTypeBytes(view.dtype);
}

}  // namespace

RankChunks::RankChunks(const BaselineJob& job, Joining joining) : job_(job) {
  ForEachChunk(*job_.spec, [this](const Chunk& chunk) { AddTurn(chunk); });
  if (joining == Joining::kByPeer) {
    JoinMessages();
    PlaceJoined();
  }
  PlaceBuffers();
  ShareOwnChunks();
  for (PeerMessage& message : sends_) message.data = DataOf(message.chunks[0], false);
  for (PeerMessage& message : receives_) message.data = DataOf(message.chunks[0], true);
}

void RankChunks::AddTurn(const Chunk& chunk) {
  Turn turn{chunk.src, chunk.dst, -1, -1, chunk.contribution, false};
  turn.completes = chunk.contribution + 1 == chunk.groups->contributions();
  if (chunk.src == job_.rank) turn.departure = AddDeparture(chunk);
  if (chunk.dst == job_.rank) turn.arrival = AddArrival(chunk);
  turns_.push_back(turn);
}

int64_t RankChunks::AddDeparture(const Chunk& chunk) {
  const DType wire = WireDType(TensorOf(chunk.tensor));
  const Block& block = chunk.block->src;
  const TensorView& view = job_.src[chunk.tensor];
  const bool straight = view.dtype == wire && block.contiguous();
  departures_.push_back({chunk.tensor, chunk.dst, block, straight,
                         straight ? At(view, block) : nullptr,
                         block.elements() * DTypeBytes(wire)});
  return static_cast<int64_t>(departures_.size()) - 1;
}

int64_t RankChunks::AddArrival(const Chunk& chunk) {
  if (chunk.contribution == 0) {
    const DType wire = WireDType(TensorOf(chunk.tensor));
    const Block& block = chunk.block->dst;
    const bool straight = job_.dst[chunk.tensor].dtype == wire && block.contiguous() &&
                          chunk.groups->contributions() == 1;
    arrivals_.push_back({chunk.tensor,
                         block,
                         straight,
                         {},
                         {},
                         block.elements() * DTypeBytes(wire),
                         chunk.groups->steps()});
  }
  Arrival& arrival = arrivals_.back();
  arrival.src.push_back(chunk.src);
  arrival.data.push_back(arrival.straight ? At(job_.dst[arrival.tensor], arrival.block) : nullptr);
  return static_cast<int64_t>(arrivals_.size()) - 1;
}

void RankChunks::JoinMessages() {
  std::vector<PeerChunk> leaving;
  std::vector<PeerChunk> arriving;
  for (const Turn& turn : turns_) {
    if (turn.src == turn.dst) continue;
    if (turn.departure >= 0) {
      const auto index = static_cast<size_t>(turn.departure);
      leaving.push_back({turn.dst, index, 0, departures_[index].bytes});
    }
    if (turn.arrival >= 0) {
      const auto index = static_cast<size_t>(turn.arrival);
      arriving.push_back({turn.src, index, turn.contribution, arrivals_[index].bytes});
    }
  }
  int ranks = 0;
  MPI_Comm_size(job_.wire->comm(), &ranks);
  sends_ = JoinByPeer(leaving, job_.rank, ranks, 1);
  receives_ = JoinByPeer(arriving, job_.rank, ranks, -1);
}

std::byte*& RankChunks::DataOf(const PeerChunk& chunk, bool arrives) {
  return arrives ? arrivals_[chunk.index].data[chunk.contribution] : departures_[chunk.index].data;
}

void RankChunks::PlaceJoined() {
  size_t size = 0;
  for (const auto* messages : {&sends_, &receives_}) {
    for (const PeerMessage& message : *messages) {
      if (message.chunks.size() > 1)
        size += RoundUp(static_cast<size_t>(message.bytes), kChunkAlignment);
    }
  }
  std::byte* next = AlignedBytes(size, &joined_);
  for (const auto* messages : {&sends_, &receives_}) {
    const bool arrives = messages == &receives_;
    for (const PeerMessage& message : *messages) {
      if (message.chunks.size() == 1) continue;
      std::byte* data = next;
      next += RoundUp(static_cast<size_t>(message.bytes), kChunkAlignment);
      for (const PeerChunk& chunk : message.chunks) {
        (arrives ? arrivals_[chunk.index].straight : departures_[chunk.index].straight) = false;
        DataOf(chunk, arrives) = data;
        data += PaddedBytes(chunk.bytes);
      }
    }
  }
}

void RankChunks::PlaceBuffers() {
  std::vector<std::pair<std::byte**, size_t>> places;
  size_t size = 0;
  const auto place = [&](std::byte** data, int64_t bytes) {
    if (*data != nullptr) return;
    places.emplace_back(data, size);
    size += RoundUp(static_cast<size_t>(bytes), kChunkAlignment);
  };
  for (Departure& departure : departures_) {
    if (departure.dst != job_.rank) place(&departure.data, departure.bytes);
  }
  for (Arrival& arrival : arrivals_) {
    for (std::byte*& data : arrival.data) place(&data, arrival.bytes);
  }
  std::byte* const start = AlignedBytes(size, &buffer_);
  for (const auto& [data, offset] : places) *data = start + offset;
}

// A chunk that stays here needs one copy where either of its sides is one stretch. A reduction
// overwrites its contributions, so it must not be given the source itself.
void RankChunks::ShareOwnChunks() {
  for (const Turn& turn : turns_) {
    if (turn.departure < 0 || turn.arrival < 0) continue;
    Departure& departure = departures_[static_cast<size_t>(turn.departure)];
    Arrival& arrival = arrivals_[static_cast<size_t>(turn.arrival)];
    if (departure.straight && !arrival.straight && arrival.data.size() == 1) {
      arrival.data[0] = departure.data;
    } else {
      departure.straight = false;
      departure.data = arrival.data[turn.contribution];
    }
  }
}

void RankChunks::Fill(const Departure& departure) const {
  if (departure.straight) return;
  const TensorView& view = job_.src[departure.tensor];
  Pack(departure.block, view.dtype, static_cast<const std::byte*>(view.data),
       WireDType(TensorOf(departure.tensor)), departure.data);
}

void RankChunks::Drain(const Arrival& arrival) const {
  if (arrival.straight) return;
  const DType wire = WireDType(TensorOf(arrival.tensor));
  if (arrival.data.size() > 1) {
    ReduceInPlace(arrival.steps, wire, arrival.block.elements(), arrival.data);
  }
  const TensorView& view = job_.dst[arrival.tensor];
  Unpack(arrival.block, view.dtype, static_cast<std::byte*>(view.data), wire, arrival.data[0]);
}

}  // namespace sluice::bench
