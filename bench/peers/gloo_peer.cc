// gloo_peer: the same redistribution by hand over Gloo's TCP transport on the loopback interface:
// pack, post all sends and receives, unpack. One process per rank= of ranks=, which meet in the
// folder store=.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <memory>
#include <vector>

#include "peers/rounds.h"

namespace sluice::peers {
namespace {

using Buffer = gloo::transport::UnboundBuffer;

// A block to or from another rank, where it is packed if it is not dense, and what Gloo sends.
struct Side {
  int peer;
  Block block;
  std::vector<std::byte> packed;
  std::unique_ptr<Buffer> buffer;
};

class GlooPeer final : public Peer {
 public:
  GlooPeer(const Redistribution& what, int rank, const std::string& store, Memory* memory)
      : what_(what), rank_(rank), memory_(memory) {
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, what.ranks);
    std::shared_ptr<gloo::transport::Device> device =
        gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
    gloo::rendezvous::FileStore files(store);
    context->connectFullMesh(files, device);
    context_ = context;
    for (int i = 1; i < what.ranks; ++i) {
      Add((rank + i) % what.ranks, true);
      Add((rank + what.ranks - i) % what.ranks, false);
    }
  }

  void Barrier() override {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }
  int64_t Least(int64_t value) override {
    return Over(value, [](void* out, const void* a, const void* b, size_t n) {
      gloo::min<int64_t>(out, a, b, n);
    });
  }
  int64_t Most(int64_t value) override {
    return Over(value, [](void* out, const void* a, const void* b, size_t n) {
      gloo::max<int64_t>(out, a, b, n);
    });
  }

  void Run() override {
    for (Side& side : arrivals_) side.buffer->recv(side.peer, kSlot);
    for (Side& side : departures_) {
      const Block& block = side.block;
      if (!side.packed.empty()) {
        CopyRows(block.rows, block.row_bytes, memory_->src() + block.src_offset, block.src_stride,
                 side.packed.data(), block.row_bytes);
      }
      side.buffer->send(side.peer, kSlot);
    }
    const Block own = BlockOf(what_, rank_, rank_);
    CopyRows(own.rows, own.row_bytes, memory_->src() + own.src_offset, own.src_stride,
             memory_->dst() + own.dst_offset, own.dst_stride);
    for (Side& side : arrivals_) {
      const Block& block = side.block;
      side.buffer->waitRecv();
      if (side.packed.empty()) continue;
      CopyRows(block.rows, block.row_bytes, side.packed.data(), block.row_bytes,
               memory_->dst() + block.dst_offset, block.dst_stride);
    }
    for (Side& side : departures_) side.buffer->waitSend();
  }

 private:
  static constexpr uint64_t kSlot = 1;

  void Add(int peer, bool send) {
    const Block block = send ? BlockOf(what_, rank_, peer) : BlockOf(what_, peer, rank_);
    if (block.rows == 0) return;
    Side side = {peer, block, {}, nullptr};
    const bool dense = send ? block.src_is_dense() : block.dst_is_dense();
    if (!dense) side.packed.resize(static_cast<size_t>(block.bytes()));
    // Gloo's interface has no constant buffers; a departure is only read.
    std::byte* data = !dense ? side.packed.data()
                      : send ? const_cast<std::byte*>(memory_->src()) + block.src_offset
                             : memory_->dst() + block.dst_offset;
    side.buffer = context_->createUnboundBuffer(data, static_cast<size_t>(block.bytes()));
    (send ? departures_ : arrivals_).push_back(std::move(side));
  }

  int64_t Over(int64_t value, gloo::AllreduceOptions::Func reduce) {
    gloo::AllreduceOptions options(context_);
    options.setOutput(&value, 1);
    options.setReduceFunction(std::move(reduce));
    gloo::allreduce(options);
    return value;
  }

  Redistribution what_;
  int rank_;
  Memory* memory_;
  std::shared_ptr<gloo::Context> context_;
  std::vector<Side> departures_;
  std::vector<Side> arrivals_;
};

int Run(const Arguments& arguments) {
  const auto rank = static_cast<int>(arguments.Number("rank"));
  const Redistribution what = arguments.What(static_cast<int>(arguments.Number("ranks")));
  Memory memory(what, rank);
  GlooPeer peer(what, rank, arguments.Text("store"), &memory);
  return Measure(arguments, {&memory}, rank == 0, &peer);
}

}  // namespace
}  // namespace sluice::peers

int main(int argc, char** argv) { return sluice::peers::Run(sluice::peers::Arguments(argc, argv)); }
