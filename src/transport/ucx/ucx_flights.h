// Payload that UCX moves: one flight for each request, and what its rows look like.
#ifndef SLUICE_SRC_TRANSPORT_UCX_UCX_FLIGHTS_H_
#define SLUICE_SRC_TRANSPORT_UCX_UCX_FLIGHTS_H_

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "sluice/transport.h"
#include "transport/ucx/ucx_library.h"

namespace sluice {

class UcxTransport;

// Stays where it is until it has landed, whatever becomes of who began it: UCX holds its address.
struct UcxFlight {
  UcxTransport* owner = nullptr;  // null: nobody asks how it ends
  int slot = 0;                   // of the owner's
  void* request = nullptr;        // null: it has landed
  ucs_status_t status = UCS_OK;
  size_t came_bytes = 0;  // of a receive
  // The place of the bytes.
  std::byte* data = nullptr;
  size_t bytes = 0;
  size_t row_bytes = 0;
  size_t stride_bytes = 0;
  std::shared_ptr<const void> kept;  // that UCX may read or write
  class UcxFlights* all = nullptr;
};

// The flights of a worker. Thread: one at a time.
class UcxFlights {
 public:
  // Both outlive this.
  UcxFlights(const UcxLibrary& library, ucp_worker_h worker);
  ~UcxFlights();
  UcxFlights(const UcxFlights&) = delete;
  UcxFlights& operator=(const UcxFlights&) = delete;

  // Each begins a flight for `op`, which lands some time later, also after an error.
  UcxFlight* Send(UcxTransport* owner, int slot, const TransportOp& op, ucp_ep_h endpoint,
                  uint64_t tag);
  UcxFlight* Receive(UcxTransport* owner, int slot, const TransportOp& op, uint64_t tag);

  // Asks UCX to take back a receive; it lands either way, unless its sender has ended in the
  // middle.
  void Cancel(UcxFlight* flight);

  // Nobody asks for it any more. `kept` stays until it has landed.
  static void Abandon(UcxFlight* flight, std::shared_ptr<const void> kept);

  // The next flight that has landed; null: none. To be given back.
  UcxFlight* TakeLanded();
  void GiveBack(UcxFlight* flight);

  // UCX may have them read or written when it can be asked no more.
  void KeepAllForEver();

  // Receives and forgets messages that no receive of UCX is there for: those whose receive has been
  // cancelled. So they do not pile up.
  void DropStrays();

 private:
  UcxFlight* Begin(UcxTransport* owner, int slot, const TransportOp& op);
  ucp_request_param_t ParamsOf(UcxFlight* flight) const;
  void Land(UcxFlight* flight, ucs_status_t status);
  // Takes UCX's answer.
  void Take(UcxFlight* flight, ucs_status_ptr_t answer);

  static void OnSent(void* request, ucs_status_t status, void* flight);
  static void OnReceived(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                         void* flight);

  const UcxLibrary& library_;
  const ucp_worker_h worker_;
  ucp_datatype_t rows_ = 0;  // of a flight whose bytes are rows; 0: UCX refuses
  std::deque<UcxFlight> all_;
  std::vector<UcxFlight*> unused_;
  std::vector<UcxFlight*> landed_;
  size_t next_landed_ = 0;  // of `landed_`
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_UCX_UCX_FLIGHTS_H_
