// mpi_peer: a redistribution by hand over any MPI, in the way that way= says.
//
//   `isend`             Pack, non-blocking sends and receives of a block each, unpack. Dense blocks
//                       are sent from and received into their own memory.
//   `window`            The same in messages of message=BYTES, window=N of them posted at a time.
//                       For dense blocks.
//   `alltoallw`         One MPI_Alltoallw of vector types.
//   `gather-broadcast`  Gather the matrix on rank 0, broadcast it, and cut it.
//
// Where ranks outnumber cores whoever waits yields: not every MPI does so by itself.
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <memory>
#include <vector>

#include "peers/rounds.h"

namespace sluice::peers {
namespace {

int Count(int64_t elements) {
  if (elements > INT_MAX) Fail("a message is longer than MPI can count");
  return static_cast<int>(elements);
}

bool RanksOutnumberCores() {
  static const bool outnumber = [] {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks > static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  }();
  return outnumber;
}

void Wait(std::vector<MPI_Request>* requests) {
  const int count = Count(static_cast<int64_t>(requests->size()));
  int done = 0;
  while (RanksOutnumberCores() && done == 0) {
    MPI_Testall(count, requests->data(), &done, MPI_STATUSES_IGNORE);
    if (done == 0) sched_yield();
  }
  MPI_Waitall(count, requests->data(), MPI_STATUSES_IGNORE);
  requests->clear();
}

class MpiPeer : public Peer {
 public:
  MpiPeer(const Redistribution& what, int rank, Memory* memory)
      : what_(what), rank_(rank), memory_(memory) {}

  void Barrier() override {
    MPI_Ibarrier(MPI_COMM_WORLD, &requests_.emplace_back());
    Wait(&requests_);
  }
  int64_t Least(int64_t value) override { return Over(value, MPI_MIN); }
  int64_t Most(int64_t value) override { return Over(value, MPI_MAX); }

 protected:
  void CopyOwn() {
    const Block own = BlockOf(what_, rank_, rank_);
    CopyRows(own.rows, own.row_bytes, memory_->src() + own.src_offset, own.src_stride,
             memory_->dst() + own.dst_offset, own.dst_stride);
  }
  // Both ends count elements, as bytes would not fit an int.
  MPI_Datatype element() const { return what_.element_bytes == 2 ? MPI_UINT16_T : MPI_UINT32_T; }
  int Elements(int64_t bytes) const { return Count(bytes / what_.element_bytes); }

  Redistribution what_;
  int rank_;
  Memory* memory_;
  std::vector<MPI_Request> requests_;

 private:
  int64_t Over(int64_t value, MPI_Op op) {
    int64_t result = 0;
    MPI_Iallreduce(&value, &result, 1, MPI_INT64_T, op, MPI_COMM_WORLD, &requests_.emplace_back());
    Wait(&requests_);
    return result;
  }
};

// A block to or from another rank, and where it is packed if it is not dense.
struct Side {
  int peer;
  Block block;
  std::vector<std::byte> packed;
};

class Isend final : public MpiPeer {
 public:
  Isend(const Redistribution& what, int rank, Memory* memory) : MpiPeer(what, rank, memory) {
    // Every rank begins with the next one, so that not all send to rank 0 first.
    for (int i = 1; i < what.ranks; ++i) {
      Add((rank + i) % what.ranks, true);
      Add((rank + what.ranks - i) % what.ranks, false);
    }
  }

  void Run() override {
    for (Side& side : arrivals_) {
      std::byte* data =
          side.packed.empty() ? memory_->dst() + side.block.dst_offset : side.packed.data();
      MPI_Irecv(data, Elements(side.block.bytes()), element(), side.peer, 0, MPI_COMM_WORLD,
                &requests_.emplace_back());
    }
    for (Side& side : departures_) Send(&side);
    CopyOwn();
    Wait(&requests_);
    for (const Side& side : arrivals_) {
      const Block& block = side.block;
      if (side.packed.empty()) continue;
      CopyRows(block.rows, block.row_bytes, side.packed.data(), block.row_bytes,
               memory_->dst() + block.dst_offset, block.dst_stride);
    }
  }

 private:
  void Add(int peer, bool send) {
    const Block block = send ? BlockOf(what_, rank_, peer) : BlockOf(what_, peer, rank_);
    if (block.rows == 0) return;
    Side& side = (send ? departures_ : arrivals_).emplace_back(Side{peer, block, {}});
    const bool dense = send ? block.src_is_dense() : block.dst_is_dense();
    if (!dense) side.packed.resize(static_cast<size_t>(block.bytes()));
  }

  void Send(Side* side) {
    const Block& block = side->block;
    const std::byte* data = memory_->src() + block.src_offset;
    if (!side->packed.empty()) {
      CopyRows(block.rows, block.row_bytes, data, block.src_stride, side->packed.data(),
               block.row_bytes);
      data = side->packed.data();
    }
    MPI_Isend(data, Elements(block.bytes()), element(), side->peer, 0, MPI_COMM_WORLD,
              &requests_.emplace_back());
  }

  std::vector<Side> departures_;
  std::vector<Side> arrivals_;
};

// From rank 0 to rank 1, which have nothing else to do.
class Window final : public MpiPeer {
 public:
  Window(const Redistribution& what, int rank, Memory* memory, int64_t message, int64_t window)
      : MpiPeer(what, rank, memory), message_(message), posted_(static_cast<size_t>(window)) {
    if (what.kind != "contiguous" || message < 1 || window < 1) Fail("window= is for contiguous");
  }

  void Run() override {
    std::fill(posted_.begin(), posted_.end(), MPI_REQUEST_NULL);
    size_t turn = 0;
    for (int64_t begin = 0; begin < what_.bytes(); begin += message_, ++turn) {
      MPI_Request* request = &posted_[turn % posted_.size()];
      MPI_Wait(request, MPI_STATUS_IGNORE);
      Post(begin, std::min(message_, what_.bytes() - begin), request);
    }
    requests_ = posted_;
    Wait(&requests_);
  }

 private:
  void Post(int64_t begin, int64_t bytes, MPI_Request* request) {
    if (rank_ == 0) {
      MPI_Isend(memory_->src() + begin, Elements(bytes), element(), 1, 0, MPI_COMM_WORLD, request);
    } else {
      MPI_Irecv(memory_->dst() + begin, Elements(bytes), element(), 0, 0, MPI_COMM_WORLD, request);
    }
  }

  int64_t message_;
  std::vector<MPI_Request> posted_;
};

class Alltoallw final : public MpiPeer {
 public:
  Alltoallw(const Redistribution& what, int rank, Memory* memory) : MpiPeer(what, rank, memory) {
    for (int peer = 0; peer < what.ranks; ++peer) {
      const Block to = BlockOf(what, rank, peer);
      const Block from = BlockOf(what, peer, rank);
      Add(to, to.src_offset, to.src_stride, &sends_);
      Add(from, from.dst_offset, from.dst_stride, &receives_);
    }
  }

  ~Alltoallw() override {
    for (Parts* parts : {&sends_, &receives_}) {
      for (MPI_Datatype& type : parts->made) MPI_Type_free(&type);
    }
  }

  void Run() override {
    if (!RanksOutnumberCores()) {
      MPI_Alltoallw(memory_->src(), sends_.counts.data(), sends_.offsets.data(),
                    sends_.types.data(), memory_->dst(), receives_.counts.data(),
                    receives_.offsets.data(), receives_.types.data(), MPI_COMM_WORLD);
      return;
    }
    MPI_Ialltoallw(memory_->src(), sends_.counts.data(), sends_.offsets.data(), sends_.types.data(),
                   memory_->dst(), receives_.counts.data(), receives_.offsets.data(),
                   receives_.types.data(), MPI_COMM_WORLD, &requests_.emplace_back());
    Wait(&requests_);
  }

 private:
  struct Parts {
    std::vector<int> counts;
    std::vector<int> offsets;
    std::vector<MPI_Datatype> types;
    std::vector<MPI_Datatype> made;
  };

  void Add(const Block& block, int64_t offset, int64_t stride, Parts* parts) {
    parts->counts.push_back(block.rows > 0 ? 1 : 0);
    parts->offsets.push_back(Count(offset));
    MPI_Datatype type = element();
    if (block.rows > 0) {
      MPI_Type_create_hvector(Count(block.rows), Elements(block.row_bytes), stride, element(),
                              &type);
      MPI_Type_commit(&type);
      parts->made.push_back(type);
    }
    parts->types.push_back(type);
  }

  Parts sends_;
  Parts receives_;
};

class GatherBroadcast final : public MpiPeer {
 public:
  GatherBroadcast(const Redistribution& what, int rank, Memory* memory)
      : MpiPeer(what, rank, memory), whole_(static_cast<size_t>(what.bytes())) {
    int64_t offset = 0;
    for (int src = 0; src < what.ranks; ++src) {
      counts_.push_back(Elements(what.src_bytes(src)));
      offsets_.push_back(Elements(offset));
      offset += what.src_bytes(src);
    }
  }

  void Run() override {
    MPI_Gatherv(memory_->src(), counts_[static_cast<size_t>(rank_)], element(), whole_.data(),
                counts_.data(), offsets_.data(), element(), 0, MPI_COMM_WORLD);
    MPI_Bcast(whole_.data(), Elements(what_.bytes()), element(), 0, MPI_COMM_WORLD);
    for (int src = 0; src < what_.ranks; ++src) {
      const Block block = BlockOf(what_, src, rank_);
      const std::byte* from =
          whole_.data() + offsets_[static_cast<size_t>(src)] * what_.element_bytes;
      CopyRows(block.rows, block.row_bytes, from + block.src_offset, block.src_stride,
               memory_->dst() + block.dst_offset, block.dst_stride);
    }
  }

 private:
  std::vector<std::byte> whole_;  // the sources' parts, one after the other
  std::vector<int> counts_;
  std::vector<int> offsets_;
};

std::unique_ptr<Peer> MakePeer(const Arguments& arguments, const Redistribution& what, int rank,
                               Memory* memory) {
  const std::string way = arguments.Text("way");
  if (way == "isend") return std::make_unique<Isend>(what, rank, memory);
  if (way == "alltoallw") return std::make_unique<Alltoallw>(what, rank, memory);
  if (way == "gather-broadcast") return std::make_unique<GatherBroadcast>(what, rank, memory);
  if (way != "window") Fail("there is no way " + way);
  return std::make_unique<Window>(what, rank, memory, arguments.Number("message"),
                                  arguments.Number("window"));
}

int Run(const Arguments& arguments) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const Redistribution what = arguments.What(ranks);
  Memory memory(what, rank);
  const auto peer = MakePeer(arguments, what, rank, &memory);
  return Measure(arguments, {&memory}, rank == 0, peer.get());
}

}  // namespace
}  // namespace sluice::peers

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int code = sluice::peers::Run(sluice::peers::Arguments(argc, argv));
  MPI_Finalize();
  return code;
}
