// The memory that all ranks of a communicator share in the fake NCCL.
#ifndef SLUICE_TESTS_FAKES_FAKE_NCCL_BLOCK_H_
#define SLUICE_TESTS_FAKES_FAKE_NCCL_BLOCK_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice::fake_nccl {

constexpr int kMaxRanks = 32;
constexpr size_t kChunkBytes = size_t{32} << 10;
constexpr uint64_t kChunks = 8;  // that may lie between a sender and a receiver

enum class RankState : int32_t { kAbsent, kPresent, kFinalized, kLeaving, kLeft, kStuck, kAborted };
enum class Doing : int32_t { kNothing, kSending, kReceiving };

// What one rank tells the others. All of it, zero at first, is good.
struct RankSlot {
  std::atomic<RankState> state;
  std::atomic<int32_t> process;
  std::atomic<int32_t> bus_id;  // of its device
  std::atomic<int32_t> has_arrived;
  std::atomic<int32_t> failure;  // an ncclResult_t that another rank found
  // Where its running kernel is.
  std::atomic<uint64_t> kernel;
  std::atomic<Doing> doing;
  std::atomic<int32_t> peer;
  std::atomic<uint64_t> message;
  std::atomic<uint64_t> bytes;
};

struct ChunkHeader {
  uint64_t message;  // the how-manieth from this sender to this receiver
  uint64_t bytes;    // of the whole message
  uint64_t count;
  int32_t type;
  int32_t is_registered;
  uint64_t chunk_bytes;
};

struct Chunk {
  ChunkHeader header;
  std::array<std::byte, kChunkBytes> bytes;
};

// Chunks from one rank to another, in order.
struct Channel {
  std::atomic<uint64_t> written;
  std::atomic<uint64_t> taken;
  std::array<Chunk, kChunks> chunks;
};

struct Block {
  std::atomic<int32_t> ranks;  // how many, as the first to come says
  std::array<RankSlot, kMaxRanks> slots;
  std::array<std::array<Channel, kMaxRanks>, kMaxRanks> channels;  // by sender, by receiver
};

// "rank 1, in its kernel 3, waits to send message 2 (64 bytes) to rank 0".
std::string DescribePosition(const Block& block, int rank);

// Whether the rank has begun to destroy its communicator.
bool HasLeft(const RankSlot& slot);

// Whether anything went from one of two ranks to the other.
bool HaveMet(const Block& block, int a, int b);

// Whether the rank can never do its part any more, and this is known for a reason of its own.
bool IsGone(const RankSlot& slot);

}  // namespace sluice::fake_nccl

#endif  // SLUICE_TESTS_FAKES_FAKE_NCCL_BLOCK_H_
