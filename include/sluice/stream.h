// Data shards from storage in device memory, in order and ahead of who consumes them.
//
//   absl::StatusOr<std::unique_ptr<Stream>> stream = OpenStream(session, options);
//   while (true) {
//     absl::StatusOr<Lease> lease = (*stream)->Next();  // waits for the first one only, if storage
//     if (!lease.ok() || lease->end()) break;           // keeps up
//     Train(lease->view());
//   }                                                   // dropping the lease frees its memory
//
// Reads run ahead as far as the budget reaches, and by nothing else are they bounded. Ranks that
// need the same items read each byte once between them and exchange it.
#ifndef SLUICE_STREAM_H_
#define SLUICE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "sluice/accelerator.h"
#include "sluice/s3.h"
#include "sluice/tensor.h"

struct DLManagedTensor;  // https://dmlc.github.io/dlpack/latest/c_api.html

namespace sluice {

class Session;

// Makes items that do not lie on storage: a simulator, a search, an environment. Writes item number
// `item` into `into`, all of it. Runs on threads of the stream (`generator_threads`). An exception
// that it throws ends the stream.
using Generator = std::function<absl::Status(int64_t item, absl::Span<std::byte> into)>;

// The same, for items whose lengths vary: returns how many bytes of `into` the item has. The rest
// of `into` is not handed out.
using SizedGenerator =
    std::function<absl::StatusOr<int64_t>(int64_t item, absl::Span<std::byte> into)>;

// Which updates of a trainer a generated item sees. Batch N is what the N-th call of Next returns,
// and update N is the trainer's update with batch N. Both count from 0, on each rank by itself.
enum class GenerateOrder : uint8_t {
  // Whatever there is. Batches are begun up to `generate_ahead` beyond the one that was taken last.
  kFree,
  // Batch N + 1 sees update N. Nothing is made while the trainer updates:
  //   lease = Next(); train and publish what the generator reads; EndUpdate();
  kAfterUpdate,
  // Batch N + 1 sees update N - 1 and never update N. It is made while the trainer computes update
  // N. The trainer publishes update N once batch N + 1 is there:
  //   lease = Next();                       // batch 0
  //   while (!lease.end()) {
  //     compute update N from the lease;    // in memory that the generator does not read
  //     next = Next();                      // batch N + 1, made meanwhile
  //     publish update N to the generator;  // nothing is being made now
  //     EndUpdate();                        // batch N + 2 may begin
  //     lease = std::move(next);
  //   }
  kOneAhead,
};

enum class ItemFormat : uint8_t {
  kIndex,        // as the index.json beside the objects says
  kRaw,          // records of equal size, one after the other
  kNpy,          // an item is an index of the first dimension
  kSafetensors,  // an item is a tensor, in the order of offsets
};

struct StreamSource {
  // "file:DIR" (asynchronous reads past the page cache), "buffered:DIR" (through it), "mmap:DIR",
  // "http://HOST/BASE/", "https://HOST/BASE/" or "s3://BUCKET/PREFIX"; empty: `generator`. Files
  // and objects must stay as they are: of files that are replaced or written meanwhile, items may
  // have either bytes. Items of "mmap:" may lie in the mapped file. They may only be read, and the
  // process gets a handler for SIGBUS: see docs/streaming.md.
  std::string uri = {};
  // Anything but kIndex is for directories, and prefixes of S3, without an index.json: all files of
  // the directory, in the order of their names.
  ItemFormat format = ItemFormat::kIndex;
  // With kIndex: the text of an index.json in place of the one beside the objects, which need not
  // be there. Rank 0's counts for all where ranks exchange, and the others may leave it empty.
  std::string index = {};
  int64_t item_bytes = 0;  // of kRaw, and of what a generator makes

  // One of the two makes items of a stream without a uri. An item has `item_bytes`, or at most
  // `item_bytes` from a `sized_generator`.
  Generator generator = nullptr;
  SizedGenerator sized_generator = nullptr;
  int64_t generator_items = 0;
  GenerateOrder generate_order = GenerateOrder::kFree;
  // Batches that may be begun beyond the one that Next returned last, at least 1; the budget bounds
  // them, too. Under kFree alone: the other orders say by themselves how far a generator runs.
  int64_t generate_ahead = 1;
  // How many threads of a rank make items at once: 1 .. 256. More than one call the generator
  // concurrently. Ranks that share items each make an equal share of them.
  int generator_threads = 1;

  // At most, to one HTTP server: 1 .. 4096. May differ between ranks, as their networks may.
  int connections = 64;
  // Certificates to trust, instead of the system's. May differ between ranks: a path of this host.
  std::string ca_file = {};
  S3Options s3 = {};  // of "s3:". May differ between ranks.
};

// Which items a rank gets: positions first, first + step, ... below `end` in each epoch's order.
// Ranks with equal selections get equal items. The usual sampler of a data-parallel job:
// first = its index among `step` replicas.
struct Selection {
  int64_t first = 0;
  int64_t step = 1;
  absl::optional<int64_t> end = absl::nullopt;  // without it: all

  friend bool operator==(const Selection&, const Selection&) = default;
};

// A part of an image: rows [top, top + height) and columns [left, left + width).
struct ItemCrop {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
};

// value * scale + bias, in f32, rounded to `dst`. From u8, i16, f16, bf16, f32 to f16, bf16, f32.
// Normalizing with a mean and a standard deviation is scale = 1 / std, bias = -mean / std.
struct ItemTransform {
  DType src = DType::kU8;
  DType dst = DType::kF32;
  float scale = 1;
  float bias = 0;
  // One for each channel, the last dimension of an item, instead of `scale` and `bias`. Both are
  // empty, or both have as many as there are channels: at most 64.
  std::vector<float> channel_scale = {};
  std::vector<float> channel_bias = {};
  // {height, width, channels} of an item whose format does not say it; empty: as the format says.
  std::vector<int64_t> shape = {};
  // Items of shape {height, width, channels} become {channels, height, width}.
  bool planar = false;
  // The part that is kept of items of shape {height, width, channels}, before they become planar.
  absl::optional<ItemCrop> crop = absl::nullopt;
};

struct HedgeOptions {
  bool enabled = false;
  // A read that takes longer than 1.5 times this quantile of recent ones is started once more.
  double quantile = 0.95;
  // Extra requests, as a share of all.
  double extra_share_max = 0.03;
};

struct RetryOptions {
  int attempts_max = 4;                             // per piece
  absl::Duration backoff = absl::Milliseconds(50);  // doubles with each attempt
  // Without a byte of one request, from when it was begun; then it counts as a transient failure,
  // and fewer requests are made at once. A request whose bytes still come is never late. But over
  // HTTP, less than 1 KiB a second counts as none.
  // Also, how long in all a server may have one request wait that it asks for later.
  absl::Duration request_timeout = absl::Seconds(20);
};

// Which items come when.
struct StreamOrder {
  bool shuffle = false;  // the order follows from (seed, epoch), whatever the number of ranks
  uint64_t seed = 0;
  // With it, blocks of so many items, neighbours in the source, are shuffled, and the items within
  // each block. Items of a block that one rank alone takes are read together, with long reads, as
  // far as the budget holds two blocks. Without it: items singly.
  absl::optional<int64_t> shuffle_block_items = absl::nullopt;
  int64_t epochs = 1;
  // The place to go on from, which Stream::Cursor or MergeCursors returned; empty: the beginning.
  // The ranks may pass each its own, of as many ranks as there are now, or all the same merged one.
  std::string cursor = {};
  // True: in the order of the epoch. False: as they come. May differ between ranks.
  bool in_order = true;
};

// How items are read from storage.
struct StreamReads {
  // Host memory for what is read ahead, hedges included. May differ between ranks.
  int64_t budget_bytes = int64_t{256} << 20;
  // Most pieces at once. Without it: as many as the budget holds. May differ between ranks: what
  // they exchange follows from pieces, which are equal, and not from how many are under way.
  absl::optional<int64_t> slots = absl::nullopt;
  // Most bytes of one read. Larger items are cut into pieces of this size. Without it: 8 MiB, or
  // less where the budget would hold fewer than 8 of them.
  absl::optional<int64_t> piece_bytes = absl::nullopt;
  // Ranks that need the same item read it once between them. False: each reads its own.
  bool exchange = true;
  HedgeOptions hedge = {};  // of this rank's reads; may differ between ranks
  // This rank's own; may differ between ranks. Rank 0's is also that of an exchanged index.
  RetryOptions retry = {};
};

// The buffers that items are put into for the consumer, and their form. All but the transform may
// differ between ranks.
struct StreamBuffers {
  int count = 2;            // beside the budget of the reads
  int64_t batch_items = 1;  // in each
  // Which memory they are: the host's, or that of the session's accelerator.
  DeviceKind device = DeviceKind::kCpu;
  // Next gives items out once their last copy has been given to the device; the copy need not have
  // ended. Work that reads them goes to a stream that has been through Lease::Await. With a device.
  bool await_in_stream = false;
  absl::optional<ItemTransform> transform = absl::nullopt;
};

// Equal on all ranks, unless it says otherwise; OpenStream checks it.
struct StreamOptions {
  StreamSource source = {};
  Selection selection = {};  // may differ between ranks
  StreamOrder order = {};
  StreamReads reads = {};
  StreamBuffers buffers = {};
  // How long Next may wait. May differ between ranks: each counts for itself.
  absl::Duration timeout = absl::Seconds(60);
  // Spans of the first n epochs are recorded, where the session keeps a trace. Without it: of 5.
  // StreamStats counts the others. May differ between ranks, as traces may.
  absl::optional<int64_t> trace_epochs = absl::nullopt;
};

// Describes a read that failed for good. In the status that ended the stream.
struct ReadFailure {
  std::string object;
  int64_t offset = 0;
  int64_t bytes = 0;
  int attempts = 0;
  std::string cause;
};
absl::optional<ReadFailure> ReadFailureOf(const absl::Status& status);

// Since the stream was opened, on this rank.
struct StreamStats {
  int64_t items = 0;     // delivered
  int64_t bytes = 0;     // of these, as they lie on storage
  int64_t requests = 0;  // to storage, hedges and retries among them
  int64_t bytes_read = 0;
  int64_t read_runs = 0;  // reads that do not begin where the one begun before them ends
  int64_t opens = 0;
  int64_t connections = 0;
  int64_t hedges = 0;
  int64_t hedges_won = 0;
  int64_t retries = 0;
  int64_t slots_max = 0;     // the limit
  int64_t slots_peak = 0;    // held at once, hedges among them
  int64_t budget_bytes = 0;  // the limit
  int64_t budget_bytes_peak = 0;
  int64_t slot_bytes = 0;
  int64_t device_bytes = 0;  // of device buffers
  int64_t bytes_copied = 0;  // into device buffers; 0 where leases point to what was read or mapped
  int64_t staleness_max = 0;   // of generated batch N: N less the updates before its begin
  int64_t trace_left_out = 0;  // spans of epochs from StreamOptions::trace_epochs on
  absl::Duration first_item;   // from OpenStream to the first delivery
  absl::Duration reading;      // sums over pieces: from request to answer,
  absl::Duration exchanging;   // while bytes cross between ranks,
  absl::Duration copying;      // into device memory
  absl::Duration busy;         // while at least one of these three went on
  absl::Duration waiting;      // the consumer's, in Next
  absl::Duration consuming;    // the consumer's, from Next to Next
};

// Device memory that holds one batch of items, until this is dropped. Movable only. Must be dropped
// by the thread that calls Next; may outlive its stream.
class Lease {
 public:
  Lease() = default;  // end()
  Lease(Lease&& other) noexcept { *this = std::move(other); }
  Lease& operator=(Lease&& other) noexcept;
  ~Lease() { Release(); }

  // True if there is nothing more to come: all items of this rank have been delivered.
  bool end() const { return buffers_ == nullptr; }

  int64_t items() const;
  int64_t item(int64_t i = 0) const;  // its number in the source
  int64_t epoch(int64_t i = 0) const;
  // The i-th item: the shape of the format, or one dimension of bytes; after the transform. A
  // single number has the shape {1}. A batch that was read or copied begins at a multiple of 64
  // bytes, and its items of one size lie one behind the other. An item that lies in a mapped file
  // begins where its dtype allows.
  TensorView view(int64_t i = 0) const;
  // True if the items are of one type and shape, and lie one behind the other.
  bool is_batch() const;
  // All items one behind the other, where is_batch(): {items, shape of an item}. Items that are
  // single numbers, as those of a .npy of one dimension: {items}.
  TensorView batch() const;

  // All work that `stream` gets from now on comes after the items are in their memory. Waits for
  // nothing. FailedPrecondition for items in host memory; the device's error otherwise.
  absl::Status Await(StreamHandle stream) const;

  // Gives the memory back now. Work of the device's streams that reads the memory must have ended.
  void Release();
  // Gives the memory back when `stream` has got past what it holds now: nobody waits for that here.
  // FailedPrecondition for items in host memory; the device's error otherwise, and then the lease
  // is still held.
  absl::Status Release(StreamHandle stream);

 private:
  friend class Delivery;
  friend class StreamImpl;
  Lease(std::shared_ptr<class Delivery> buffers, int buffer);

  std::shared_ptr<class Delivery> buffers_;
  int buffer_ = -1;
};

// One rank's end of a stream. Owned by who opened it; to be destroyed before its session.
//
// Thread: Next, Ready, EndUpdate, Cursor, stats, and the release of leases belong to one thread.
// With a progress thread in the session, the stream's thread may be another one than the session's.
// Then a release takes no lock, and neither does Next while items are ready.
class Stream {
 public:
  virtual ~Stream() = default;

  // The next batch. Waits if it is not ready. Errors end the stream, also for the other ranks where
  // the stream is exchanged. They are: a read that failed (see ReadFailureOf), a stream that ended
  // short (DataLoss), DeadlineExceeded. FailedPrecondition, and nothing ends: all device buffers
  // are leased.
  virtual absl::StatusOr<Lease> Next() = 0;

  // True if Next would not wait.
  virtual bool Ready() const = 0;

  // The trainer's update has ended, and the generator may see it: see GenerateOrder.
  virtual void EndUpdate() = 0;

  // Items this rank will get from its beginning to its end.
  virtual int64_t items() const = 0;

  // The items that have been released so far, mostly in a few hundred bytes: see
  // StreamOrder::cursor. Items that are read ahead, or leased, come again. At most 256 KiB: see
  // docs/streaming.md.
  virtual std::string Cursor() const = 0;

  virtual StreamStats stats() const = 0;
};

// Collective; blocks until all ranks have compared their options and know the items. No run may be
// in flight. A stream has a budget of its own, and its failure is its own: the session goes on. On
// bad input every rank gets an error, and nothing is kept. InvalidArgument, NotFound and the like
// say what is wrong with the source, options or cursor, and on which ranks. FailedPrecondition:
// ranks disagree. Streams advance in all calls that make progress, and must be destroyed before the
// session. Thread: the session's.
absl::StatusOr<std::unique_ptr<Stream>> OpenStream(Session* session, const StreamOptions& options);

// One cursor out of those of all ranks, for any number of ranks. InvalidArgument if one is none, or
// they are of different streams, or of different data sets.
absl::StatusOr<std::string> MergeCursors(absl::Span<const std::string> cursors);

// A lease as a DLPack tensor, for torch.from_dlpack and jax.dlpack. Takes over the lease, which
// must not be the end: the tensor's deleter, to be called once by the thread that calls Next, drops
// it. `item`: the tensor of that item, or of the whole batch where it is -1. InvalidArgument if
// there is no such item, or the batch's items are of several sizes; the lease is kept then.
//
// The consumer's streams must have ended their work when the deleter is called, as DLPack has it;
// with StreamBuffers::await_in_stream they come after Lease::Await first.
absl::StatusOr<DLManagedTensor*> ToDLPack(Lease* lease, int64_t item = -1);

// A tensor of the view's memory, which is dense. It refers to `owner` until its deleter is called,
// once, on any thread.
DLManagedTensor* ToDLPack(const TensorView& view, std::shared_ptr<void> owner);

}  // namespace sluice

#endif  // SLUICE_STREAM_H_
