// memcpy_peer: the same redistribution by threads of one process, row by row with memcpy: what the
// cores could do without any exchange between processes. Arguments: threads=, ranks=.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

#include "peers/rounds.h"

namespace sluice::peers {
namespace {

// Rows of one block that one thread copies, or a stretch of one long row.
struct Piece {
  int64_t rows;
  int64_t row_bytes;
  const std::byte* from;
  int64_t from_stride;
  std::byte* to;
  int64_t to_stride;
};

constexpr int64_t kPieceBytes = int64_t{256} * 1024;

class MemcpyPeer final : public Peer {
 public:
  MemcpyPeer(const Redistribution& what, int threads, const std::vector<Memory*>& memories)
      : threads_(threads), start_(threads), end_(threads) {
    for (int dst = 0; dst < what.ranks; ++dst) {
      for (int src = 0; src < what.ranks; ++src) {
        const Block block = BlockOf(what, src, dst);
        if (block.rows == 0) continue;
        const std::byte* from = memories[static_cast<size_t>(src)]->src() + block.src_offset;
        std::byte* to = memories[static_cast<size_t>(dst)]->dst() + block.dst_offset;
        block.rows == 1 ? CutRow(block, from, to) : CutRows(block, from, to);
      }
    }
    for (int i = 1; i < threads; ++i) helpers_.emplace_back([this] { Help(); });
  }

  ~MemcpyPeer() override {
    stop_ = true;
    start_.arrive_and_wait();
    for (std::thread& helper : helpers_) helper.join();
  }

  void Run() override {
    next_ = 0;
    start_.arrive_and_wait();
    Copy();
    end_.arrive_and_wait();
  }

 private:
  // One memcpy for each thread: a long one may go past the caches.
  void CutRow(const Block& block, const std::byte* from, std::byte* to) {
    const int64_t share = (block.row_bytes + threads_ - 1) / threads_;
    for (int64_t begin = 0; begin < block.row_bytes; begin += share) {
      const int64_t bytes = std::min(share, block.row_bytes - begin);
      pieces_.push_back({1, bytes, from + begin, bytes, to + begin, bytes});
    }
  }

  void CutRows(const Block& block, const std::byte* from, std::byte* to) {
    const int64_t most = std::max<int64_t>(kPieceBytes / block.row_bytes, 1);
    for (int64_t row = 0; row < block.rows; row += most) {
      pieces_.push_back({std::min(most, block.rows - row), block.row_bytes,
                         from + row * block.src_stride, block.src_stride,
                         to + row * block.dst_stride, block.dst_stride});
    }
  }

  void Copy() {
    for (size_t i = next_++; i < pieces_.size(); i = next_++) {
      const Piece& piece = pieces_[i];
      CopyRows(piece.rows, piece.row_bytes, piece.from, piece.from_stride, piece.to,
               piece.to_stride);
    }
  }

  void Help() {
    while (true) {
      start_.arrive_and_wait();
      if (stop_) return;
      Copy();
      end_.arrive_and_wait();
    }
  }

  int threads_;
  std::vector<Piece> pieces_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  std::barrier<> start_;
  std::barrier<> end_;
  std::vector<std::thread> helpers_;
};

int Run(const Arguments& arguments) {
  const auto ranks = static_cast<int>(arguments.Number("ranks"));
  const auto threads = static_cast<int>(arguments.Number("threads"));
  if (threads < 1) Fail("threads= takes a number from 1 on");
  const Redistribution what = arguments.What(ranks);
  std::vector<std::unique_ptr<Memory>> owned(static_cast<size_t>(ranks));
  std::vector<Memory*> memories(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const auto i = static_cast<size_t>(rank);
    owned[i] = std::make_unique<Memory>(what, rank);
    memories[i] = owned[i].get();
  }
  MemcpyPeer peer(what, threads, memories);
  return Measure(arguments, memories, true, &peer);
}

}  // namespace
}  // namespace sluice::peers

int main(int argc, char** argv) { return sluice::peers::Run(sluice::peers::Arguments(argc, argv)); }
