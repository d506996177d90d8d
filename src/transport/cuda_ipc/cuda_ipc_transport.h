// Buckets in device memory between ranks of one node: the receiver copies out of the sender's
// memory, in stream order at both ends.
#ifndef SLUICE_SRC_TRANSPORT_CUDA_IPC_CUDA_IPC_TRANSPORT_H_
#define SLUICE_SRC_TRANSPORT_CUDA_IPC_CUDA_IPC_TRANSPORT_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "device/cuda/cuda_queue.h"
#include "sluice/cuda.h"
#include "sluice/fabric.h"
#include "sluice/transport.h"
#include "transport/cuda_ipc/cuda_ipc_handles.h"
#include "transport/wire_status.h"

namespace sluice {

// Rows of a copy between strided stretches of device memory (cuda_ipc_pull.cc), of which each side
// may have its own. As in TransportOp: 0 rows are one stretch.
struct PullRows {
  size_t row_bytes = 0;
  size_t stride_bytes = 0;
};

// From the first byte of `bytes` bytes to behind the last one.
size_t ExtentOf(size_t bytes, const PullRows& rows);

// Puts the copy of `bytes` bytes, whole rows of both sides, in the queue. The device must be
// current, and have `multiprocessors` of them.
absl::Status EnqueuePull(const CudaQueue& queue, int multiprocessors, const std::byte* src,
                         const PullRows& src_rows, std::byte* dst, const PullRows& dst_rows,
                         size_t bytes);

// A send records an event in its stream, and tells the receiver by a message where the bytes are.
// The receiver's stream waits for this event, copies, and records an event of the receiver's. A
// message back names the receiver's event, and the sender's stream waits for it. Only messages pass
// through the host, by two transports of the fabric: offers from senders to receivers, answers
// back.
//
// There are kCudaIpcEventsMax events at most, made when they are first needed, as systems have no
// more. So events are reused. A wait that is enqueued late may therefore wait for a newer record
// than it needs. This only delays the wait. It cannot form a cycle, because a stream only waits for
// work that was put in some stream before.
//
// Parting goes step by step. A sender cannot tell an offer that was dropped from one whose answer
// is still to come. The receiver of the latter may be copying out of the sender's memory. So first
// the offers part. A rank that has none under way any more says goodbye to all others, behind its
// last answer to each. A rank has never met an offer that it has not answered before its goodbye.
class CudaIpcTransport final : public Transport {
 public:
  // Collective over the fabric, with the same error on all ranks: FailedPrecondition unless all are
  // on one node and every rank has opened memory of every other. A rank that has no queue says why.
  static absl::StatusOr<std::unique_ptr<CudaIpcTransport>> Connect(
      Fabric* fabric, const absl::StatusOr<CudaQueue>& queue, const CudaIpcOptions& options,
      absl::Duration timeout);
  ~CudaIpcTransport() override;

  absl::Status Reserve(int capacity) override;
  bool CanSendFrom(const std::byte* data) override;
  absl::Status UseStaging(absl::Span<std::byte> staging) override;
  void CloseImports() override;
  absl::Status Start(absl::Span<const TransportOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) override;
  void Withdraw() override;
  bool Part() override;
  int outstanding() const override { return outstanding_; }

 private:
  using ShortStatus = WireStatus<240>;
  // From a sender: where the bytes are.
  struct Offer {
    CudaIpcMemory memory;
    uint64_t bytes = 0;
    uint64_t row_bytes = 0;
    uint64_t stride_bytes = 0;
    uint32_t slot = 0;          // of the sender
    uint32_t event_number = 0;  // of the sender
    cudaIpcEventHandle_t event = {};
    ShortStatus status;
  };
  // From a receiver: that they are copied, once the stream has got past the event.
  struct Answer {
    uint32_t offer_slot = 0;
    uint32_t has_event = 0;     // or nothing was copied
    uint32_t event_number = 0;  // of the receiver
    cudaIpcEventHandle_t event = {};
    ShortStatus status;
  };
  // A goodbye has these in place of an answer's offer, and of its cookie.
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  static constexpr uint64_t kGoodbye = UINT64_MAX;
  // Answers find their offers by what is in them.
  static constexpr int kAnswerTag = 0;
  template <class T>
  static TransportOp Message(TransportOp::Kind kind, int peer, int tag, T* record,
                             uint64_t cookie) {
    return {kind, peer, tag, reinterpret_cast<std::byte*>(record), sizeof(T), cookie};
  }
  // The state of an outstanding operation.
  struct Slot {
    TransportOp op;
    absl::Status status;
    int waits = 0;  // for this many things the operation waits
    bool awaits_answer = false;
    Offer offer;    // that leaves or comes
    Answer answer;  // of a receive
  };
  // Operations whose slots have the same remainder share an event.
  struct SharedEvent {
    cudaEvent_t event = nullptr;  // null: not made yet
    cudaIpcEventHandle_t handle = {};
  };
  // Memory for any answer of a peer. One is under way for each send without an answer.
  struct Inbox {
    int peer = -1;
    Answer answer;
  };
  // Memory that messages are written into and read from.
  struct Messages {
    std::vector<Slot> slots;
    std::vector<Inbox> inboxes;
    Answer goodbye;
  };

  CudaIpcTransport(int rank, const CudaQueue& queue, int multiprocessors, CudaIpcExporter exporter,
                   int peers)
      : Transport({.name = "cuda_ipc",
                   .in_stream_order = true,
                   .takes_host_memory = false,
                   .takes_device_memory = true}),
        rank_(rank),
        size_(peers),
        queue_(queue),
        multiprocessors_(multiprocessors),
        exporter_(std::move(exporter)),
        imports_(queue, peers) {}

  static absl::StatusOr<std::unique_ptr<CudaIpcTransport>> Prepare(const Fabric& fabric,
                                                                   const CudaQueue& queue,
                                                                   const CudaIpcOptions& options);
  absl::Status OpenMessages(Fabric* fabric);
  // Records the event of the slot, and says which it is.
  absl::Status Record(uint32_t number, uint32_t* event, cudaIpcEventHandle_t* handle);
  absl::Status MakeEvent(SharedEvent* event) const;

  // Gives an operation a slot, and fills in the messages it starts with.
  void Prepare(const TransportOp& op);
  absl::Status FillOffer(uint32_t number);
  // Before anything is put in the stream.
  absl::Status BeginWork();

  absl::Status PollMessages();
  absl::Status MessageEnded(bool offer, const TransportEvent& event);
  // A slot's offer has left or come.
  void OfferEnded(uint32_t number, const absl::Status& outcome);
  absl::Status Pull(uint32_t number);
  // The queue's GPU is current.
  absl::Status EnqueuePullOf(const Slot& slot);
  // The answer of a receive has left, or one has come into an inbox.
  void AnswerLeft(uint32_t number, const absl::Status& outcome);
  absl::Status TakeAnswer(uint32_t inbox, const absl::Status& outcome);
  absl::Status WaitForPull(int peer, const Answer& answer);
  absl::Status SayGoodbye();
  // Ends what those who have said goodbye have never met; true if nothing awaits an answer then.
  bool EndUnmet();
  // One of the things that the operation waited for has come.
  void Advance(uint32_t number);
  Slot& At(uint32_t number) { return messages_->slots[number]; }

  const int rank_;
  const int size_;
  const CudaQueue queue_;
  const int multiprocessors_;
  CudaIpcExporter exporter_;
  CudaIpcImports imports_;
  std::unique_ptr<Transport> offers_;
  std::unique_ptr<Transport> answers_;

  // Outlive the transport where messages are still under way.
  std::unique_ptr<Messages> messages_ = std::make_unique<Messages>();
  std::vector<SharedEvent> events_ = std::vector<SharedEvent>(kCudaIpcEventsMax);
  std::vector<uint32_t> unused_;
  std::vector<uint32_t> unused_inboxes_;
  std::vector<uint32_t> ended_;  // a ring: ended_count_ numbers from first_ended_ on
  size_t first_ended_ = 0;
  size_t ended_count_ = 0;
  int outstanding_ = 0;
  enum class Parting { kNot, kOffers, kGoodbyes, kAnswers };
  Parting parting_ = Parting::kNot;
  // By rank: has said goodbye, or cannot.
  std::vector<bool> has_left_ = std::vector<bool>(static_cast<size_t>(size_));
  std::vector<TransportOp> offer_ops_;  // of one Start
  std::vector<TransportOp> answer_ops_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_CUDA_IPC_CUDA_IPC_TRANSPORT_H_
