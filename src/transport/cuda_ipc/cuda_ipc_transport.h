// Buckets in device memory between ranks of one node: the receiver copies out of the sender's
// memory, in stream order at both ends.
#ifndef SLUICE_SRC_TRANSPORT_CUDA_IPC_TRANSPORT_H_
#define SLUICE_SRC_TRANSPORT_CUDA_IPC_TRANSPORT_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "sluice/fabric.h"
#include "transport/cuda_ipc_handles.h"
#include "transport/cuda_queue.h"
#include "transport/transport.h"
#include "transport/wire_status.h"

namespace sluice {

// A send records an event in its stream, and tells the receiver by a message where the bytes are.
// The receiver's stream waits for that event, copies, and records an event of the receiver's; a
// message back names it, and the sender's stream waits for it. Only messages pass through the host,
// by two transports of the fabric: offers from senders to receivers, answers back.
//
// An event is recorded anew for a later operation while a wait for it may not have been put in a
// stream yet. That wait is then for more than it need be, but never for what waits for it: streams
// wait only for what was put in some stream before.
//
// Parting takes back receives, and ends no send (Transport::Part as it is). A sender cannot tell an
// offer that was dropped from one whose answer is still to come. The receiver of the latter may be
// copying out of the sender's memory. So memory of such a send stays in use.
class CudaIpcTransport final : public Transport {
 public:
  // Collective over the fabric, with the same error on all ranks: FailedPrecondition unless all are
  // on one node and every GPU reaches every other's memory. A rank that has no queue says why.
  static absl::StatusOr<std::unique_ptr<CudaIpcTransport>> Connect(
      Fabric* fabric, const absl::StatusOr<CudaQueue>& queue, absl::Duration timeout);
  ~CudaIpcTransport() override;

  absl::Status Reserve(int capacity) override;
  absl::Status UseStaging(absl::Span<std::byte> staging) override;
  absl::Status Start(absl::Span<const TransportOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<TransportEvent> events) override;
  void Withdraw() override;
  int outstanding() const override { return outstanding_; }

 private:
  using ShortStatus = WireStatus<240>;
  // From a sender: where the bytes are.
  struct Offer {
    CudaIpcMemory memory;
    uint64_t bytes = 0;
    uint64_t row_bytes = 0;
    uint64_t stride_bytes = 0;
    uint32_t slot = 0;  // of the sender
    cudaIpcEventHandle_t event = {};
    ShortStatus status;
  };
  // From a receiver: that they are copied, once the stream has got past the event.
  struct Answer {
    uint32_t offer_slot = 0;
    uint32_t slot = 0;       // of the receiver
    uint32_t has_event = 0;  // or nothing was copied
    cudaIpcEventHandle_t handle = {};
    ShortStatus status;
  };
  // What an operation needs while it is outstanding.
  struct Slot {
    TransportOp op;
    absl::Status status;
    int waits = 0;  // for this many things the operation waits
    Offer offer;    // that leaves or comes
    Answer answer;  // of a receive
    cudaEvent_t event = nullptr;
    cudaIpcEventHandle_t handle = {};
  };
  // Where any answer of a peer may come in. There are as many under way as sends without answer.
  struct Inbox {
    int peer = -1;
    Answer answer;
  };
  // What messages are written into and read from.
  struct Messages {
    std::vector<Slot> slots;
    std::vector<Inbox> inboxes;
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
        exporter_(exporter),
        imports_(queue, peers) {}

  static absl::StatusOr<std::unique_ptr<CudaIpcTransport>> Prepare(const Fabric& fabric,
                                                                   const CudaQueue& queue);
  absl::Status OpenMessages(Fabric* fabric);
  absl::Status MakeEvent(Slot* slot) const;

  // Gives an operation a slot, and fills in the messages it starts with.
  void Prepare(const TransportOp& op);
  absl::Status FillOffer(uint32_t number);

  absl::Status PollMessages();
  absl::Status MessageEnded(bool offer, const TransportEvent& event);
  // A slot's offer has left or come.
  void OfferEnded(uint32_t number, const absl::Status& outcome);
  absl::Status Pull(Slot* slot);
  absl::Status EnqueuePullOf(const Slot& slot);
  // The answer of a receive has left, or one has come into an inbox.
  void AnswerLeft(uint32_t number, const absl::Status& outcome);
  absl::Status TakeAnswer(uint32_t inbox, const absl::Status& outcome);
  absl::Status WaitForPull(int peer, const Answer& answer);
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
  std::vector<uint32_t> unused_;
  std::vector<uint32_t> unused_inboxes_;
  std::vector<uint32_t> ended_;  // a ring: ended_count_ numbers from first_ended_ on
  size_t first_ended_ = 0;
  size_t ended_count_ = 0;
  int outstanding_ = 0;
  std::vector<TransportOp> offer_ops_;  // of one Start
  std::vector<TransportOp> answer_ops_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_CUDA_IPC_TRANSPORT_H_
