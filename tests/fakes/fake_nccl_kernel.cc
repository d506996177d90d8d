// How a kernel of the fake NCCL moves its bytes, and notices that it never will.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_nccl.h"
#include "fakes/fake_nccl_block.h"
#include "fakes/fake_nccl_comm.h"

namespace sluice::fake_nccl {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<int> waiting_kernels = 0;

class Progress {
 public:
  ~Progress() { SetWaiting(false); }
  explicit Progress(Kernel& kernel)
      : comm_(*kernel.comm),
        mine_(comm_.slot(comm_.rank)),
        to_fail_(CountKernel(comm_.rank)),
        number_(kernel.number) {
    MoveWithin(kernel.transfers);
    for (Transfer& transfer : kernel.transfers) {
      total_ += transfer.bytes;
      if (transfer.peer == comm_.rank) continue;
      queues_[{transfer.peer, transfer.is_send}].push_back(&transfer);
    }
  }

  void Run() {
    mine_.kernel = number_;
    Clock::time_point last_progress = Clock::now();
    int64_t pauses = 0;
    while (!queues_.empty() && !HasEnded()) {
      if (Step()) {
        SetWaiting(false);
        last_progress = Clock::now();
        pauses = 0;
        continue;
      }
      Publish();
      SetWaiting(true);
      const int64_t waited = MsSince(last_progress);
      if (waited > TimeoutMs() && !IsExcused()) return Report(waited);
      Pause(pauses);
    }
    mine_.doing = Doing::kNothing;
  }

 private:
  using Queue = std::deque<Transfer*>;  // with one peer, in one direction

  static int64_t MsSince(Clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - time).count();
  }

  // What the rank sends to itself: sends and receives were counted to be equal.
  void MoveWithin(std::vector<Transfer>& transfers) {
    std::deque<Transfer*> sends;
    for (Transfer& transfer : transfers) {
      if (transfer.peer == comm_.rank && transfer.is_send) sends.push_back(&transfer);
    }
    for (Transfer& transfer : transfers) {
      if (transfer.peer != comm_.rank || transfer.is_send) continue;
      std::copy_n(sends.front()->data, transfer.bytes, transfer.data);
      sends.pop_front();
      moved_ += 2 * transfer.bytes;
    }
  }

  bool HasEnded() {
    const auto failure = static_cast<ncclResult_t>(mine_.failure.load());
    if (failure != ncclSuccess) comm_.error = failure;
    return comm_.is_aborted || comm_.error != ncclSuccess;
  }

  // One chunk for each peer and direction, as far as possible; whether any moved.
  bool Step() {
    if (to_fail_ != ncclSuccess && 2 * moved_ >= total_) return Stick();
    bool has_moved = false;
    for (auto entry = queues_.begin(); entry != queues_.end();) {
      Queue& queue = entry->second;
      has_moved |= entry->first.second ? Send(queue) : Receive(queue);
      entry = queue.empty() ? queues_.erase(entry) : std::next(entry);
    }
    return has_moved;
  }

  // The kernel that is to fail: it waits until somebody aborts.
  bool Stick() {
    mine_.state = RankState::kStuck;
    comm_.error = to_fail_;
    for (int64_t pauses = 0; !comm_.is_aborted;) Pause(pauses);
    return true;
  }

  Channel& ChannelOf(int from, int to) const {
    return comm_.block->channels[static_cast<size_t>(from)][static_cast<size_t>(to)];
  }

  bool Send(Queue& queue) {
    Transfer& transfer = *queue.front();
    Channel& channel = ChannelOf(comm_.rank, transfer.peer);
    const uint64_t written = channel.written.load();
    const bool is_begun = begun_.contains(&transfer);
    if (is_begun && transfer.moved == transfer.bytes) {
      // Done only when it was taken: nobody may count on what lies in between.
      if (channel.taken.load() != written) return false;
      queue.pop_front();
      return true;
    }
    if (written - channel.taken.load() == kChunks) return false;
    begun_.insert(&transfer);
    Chunk& chunk = channel.chunks[written % kChunks];
    const size_t bytes = std::min(kChunkBytes, transfer.bytes - transfer.moved);
    chunk.header = {.message = transfer.message,
                    .bytes = transfer.bytes,
                    .count = transfer.count,
                    .type = static_cast<int32_t>(transfer.type),
                    .is_registered = transfer.is_registered ? 1 : 0,
                    .chunk_bytes = bytes};
    std::copy_n(transfer.data + transfer.moved, bytes, chunk.bytes.data());
    transfer.moved += bytes;
    moved_ += bytes;
    channel.written.store(written + 1);
    return true;
  }

  bool Receive(Queue& queue) {
    Transfer& transfer = *queue.front();
    Channel& channel = ChannelOf(transfer.peer, comm_.rank);
    const uint64_t taken = channel.taken.load();
    if (channel.written.load() == taken) return false;
    const Chunk& chunk = channel.chunks[taken % kChunks];
    if (!Agrees(transfer, chunk.header)) return false;
    const size_t bytes = chunk.header.chunk_bytes;
    std::copy_n(chunk.bytes.data(), bytes, transfer.data + transfer.moved);
    transfer.moved += bytes;
    moved_ += bytes;
    channel.taken.store(taken + 1);
    if (transfer.moved == transfer.bytes) queue.pop_front();
    return true;
  }

  bool Agrees(const Transfer& transfer, const ChunkHeader& sent) {
    const std::string message = "message " + std::to_string(transfer.message) + " from rank " +
                                std::to_string(transfer.peer) + " to rank " +
                                std::to_string(comm_.rank);
    if (transfer.is_registered != (sent.is_registered != 0) && transfer.moved == 0) {
      Misuse(ncclInvalidUsage, message + ": only one of both sides has its buffer registered");
    }
    if (sent.bytes == transfer.bytes && sent.count == transfer.count &&
        sent.type == static_cast<int32_t>(transfer.type)) {
      return true;
    }
    const auto describe = [](uint64_t count, int type, uint64_t bytes) {
      return std::to_string(count) + " of type " + std::to_string(type) + " (" +
             std::to_string(bytes) + " bytes)";
    };
    comm_.error = Misuse(
        ncclInvalidUsage,
        message + ": sent as " + describe(sent.count, sent.type, sent.bytes) + ", received as " +
            describe(transfer.count, static_cast<int>(transfer.type), transfer.bytes) +
            ", in kernel " + std::to_string(number_) + " of the receiver");
    FailAll(ncclInvalidUsage);
    return false;
  }

  // After misuse no rank need wait for another.
  void FailAll(ncclResult_t failure) {
    for (int rank = 0; rank < comm_.ranks; ++rank) comm_.slot(rank).failure = failure;
  }

  // Tells others what this waits for.
  void Publish() {
    if (queues_.empty()) return;
    const auto& [key, queue] = *queues_.begin();
    mine_.peer = key.first;
    mine_.message = queue.front()->message;
    mine_.bytes = queue.front()->bytes;
    mine_.doing = key.second ? Doing::kSending : Doing::kReceiving;
  }

  void SetWaiting(bool is_waiting) {
    if (is_waiting_ != is_waiting) waiting_kernels += is_waiting ? 1 : -1;
    is_waiting_ = is_waiting;
  }

  // A rank that failed or died is no mistake of this one's; it waits on until it is aborted.
  bool IsExcused() const {
    return std::any_of(comm_.block->slots.begin(), comm_.block->slots.begin() + comm_.ranks,
                       IsGone);
  }

  void Report(int64_t waited) {
    std::string text = "a kernel that nobody matches, for " + std::to_string(waited) +
                       " ms: " + DescribePosition(*comm_.block, comm_.rank);
    std::set<int> peers;
    for (const auto& [key, queue] : queues_) peers.insert(key.first);
    for (const int peer : peers) text += "; " + DescribePosition(*comm_.block, peer);
    comm_.error = Misuse(ncclInternalError, text);
    FailAll(ncclInternalError);
  }

  Comm& comm_;
  RankSlot& mine_;
  const ncclResult_t to_fail_;
  const uint64_t number_;
  std::map<std::pair<int, bool>, Queue> queues_;  // by peer and whether it sends
  std::set<const Transfer*> begun_;
  size_t total_ = 0;
  size_t moved_ = 0;
  bool is_waiting_ = false;  // counted as one
};

}  // namespace

void Run(Kernel& kernel) {
  Comm& comm = *kernel.comm;
  if (comm.is_aborted || comm.error != ncclSuccess) return;
  Progress(kernel).Run();
}

}  // namespace sluice::fake_nccl

int sluice::FakeNcclWaitingKernels() { return fake_nccl::waiting_kernels; }
