// Requests of UCX, and packing of rows.
#include "transport/ucx/ucx_flights.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sluice {
namespace {

// Calls `copy(where the bytes lie, how many)` for the stretches of `bytes` from `offset` on.
template <typename Copy>
void ForStretches(const UcxFlight& flight, size_t offset, size_t bytes, const Copy& copy) {
  while (bytes > 0) {
    const size_t in_row = offset % flight.row_bytes;
    const size_t count = std::min(bytes, flight.row_bytes - in_row);
    copy(flight.data + offset / flight.row_bytes * flight.stride_bytes + in_row, count);
    offset += count;
    bytes -= count;
  }
}

// The state of packing is the flight itself, so nothing is allocated for it.
void* StartPack(void* /*context*/, const void* buffer, size_t /*count*/) {
  return const_cast<void*>(buffer);
}
void* StartUnpack(void* /*context*/, void* buffer, size_t /*count*/) { return buffer; }
size_t PackedSize(void* state) { return static_cast<UcxFlight*>(state)->bytes; }
size_t Pack(void* state, size_t offset, void* dest, size_t max_length) {
  const UcxFlight& flight = *static_cast<UcxFlight*>(state);
  const size_t bytes = std::min(max_length, flight.bytes - std::min(offset, flight.bytes));
  auto* to = static_cast<std::byte*>(dest);
  ForStretches(flight, offset, bytes, [&to](const std::byte* at, size_t count) {
    std::memcpy(to, at, count);
    to += count;
  });
  return bytes;
}
ucs_status_t Unpack(void* state, size_t offset, const void* src, size_t length) {
  const UcxFlight& flight = *static_cast<UcxFlight*>(state);
  if (offset > flight.bytes || length > flight.bytes - offset) return UCS_ERR_MESSAGE_TRUNCATED;
  auto* from = static_cast<const std::byte*>(src);
  ForStretches(flight, offset, length, [&from](std::byte* at, size_t count) {
    std::memcpy(at, from, count);
    from += count;
  });
  return UCS_OK;
}
void FinishPacking(void* /*state*/) {}

constexpr ucp_generic_dt_ops_t kRowsOps = {StartPack, StartUnpack, PackedSize,
                                           Pack,      Unpack,      FinishPacking};

}  // namespace

UcxFlights::UcxFlights(const UcxLibrary& library, ucp_worker_h worker)
    : library_(library), worker_(worker) {
  if (library_.ucp_dt_create_generic(&kRowsOps, nullptr, &rows_) != UCS_OK) rows_ = 0;
}

UcxFlights::~UcxFlights() {
  if (rows_ != 0) library_.ucp_dt_destroy(rows_);
}

UcxFlight* UcxFlights::Begin(UcxTransport* owner, int slot, const TransportOp& op) {
  if (unused_.empty()) unused_.push_back(&all_.emplace_back());
  UcxFlight* const flight = unused_.back();
  unused_.pop_back();
  *flight = {};
  flight->owner = owner;
  flight->slot = slot;
  flight->data = op.data;
  flight->bytes = op.bytes;
  flight->row_bytes = op.row_bytes;
  flight->stride_bytes = op.stride_bytes;
  flight->all = this;
  return flight;
}

ucp_request_param_t UcxFlights::ParamsOf(UcxFlight* flight) const {
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  params.datatype = flight->row_bytes != 0 ? rows_ : ucp_dt_make_contig(1);
  params.user_data = flight;
  params.memory_type = UCS_MEMORY_TYPE_HOST;
  return params;
}

UcxFlight* UcxFlights::Send(UcxTransport* owner, int slot, const TransportOp& op, ucp_ep_h endpoint,
                            uint64_t tag) {
  UcxFlight* const flight = Begin(owner, slot, op);
  ucp_request_param_t params = ParamsOf(flight);
  params.cb.send = OnSent;
  const bool rows = flight->row_bytes != 0;
  const void* const data = rows ? static_cast<const void*>(flight) : flight->data;
  Take(flight, library_.ucp_tag_send_nbx(endpoint, data, rows ? 1 : flight->bytes, tag, &params));
  return flight;
}

UcxFlight* UcxFlights::Receive(UcxTransport* owner, int slot, const TransportOp& op, uint64_t tag) {
  UcxFlight* const flight = Begin(owner, slot, op);
  ucp_tag_recv_info_t info = {};
  ucp_request_param_t params = ParamsOf(flight);
  params.op_attr_mask |= UCP_OP_ATTR_FIELD_RECV_INFO;
  params.cb.recv = OnReceived;
  params.recv_info.tag_info = &info;
  const bool rows = flight->row_bytes != 0;
  void* const data = rows ? static_cast<void*>(flight) : flight->data;
  const ucs_status_ptr_t answer = library_.ucp_tag_recv_nbx(worker_, data, rows ? 1 : flight->bytes,
                                                            tag, ~ucp_tag_t{0}, &params);
  if (answer == nullptr) flight->came_bytes = info.length;
  Take(flight, answer);
  return flight;
}

void UcxFlights::Take(UcxFlight* flight, ucs_status_ptr_t answer) {
  if (UCS_PTR_IS_PTR(answer)) {
    flight->request = answer;
  } else {
    Land(flight, UCS_PTR_STATUS(answer));
  }
}

void UcxFlights::Land(UcxFlight* flight, ucs_status_t status) {
  flight->request = nullptr;
  flight->status = status;
  landed_.push_back(flight);
}

void UcxFlights::OnSent(void* request, ucs_status_t status, void* flight) {
  auto* const landed = static_cast<UcxFlight*>(flight);
  landed->all->Land(landed, status);
  landed->all->library_.ucp_request_free(request);
}

void UcxFlights::OnReceived(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info,
                            void* flight) {
  auto* const landed = static_cast<UcxFlight*>(flight);
  if (status == UCS_OK) landed->came_bytes = info->length;
  landed->all->Land(landed, status);
  landed->all->library_.ucp_request_free(request);
}

void UcxFlights::Cancel(UcxFlight* flight) {
  if (flight->request != nullptr) library_.ucp_request_cancel(worker_, flight->request);
}

void UcxFlights::Abandon(UcxFlight* flight, std::shared_ptr<const void> kept) {
  flight->owner = nullptr;
  flight->kept = std::move(kept);
}

UcxFlight* UcxFlights::TakeLanded() {
  if (next_landed_ == landed_.size()) {
    landed_.clear();
    next_landed_ = 0;
    return nullptr;
  }
  return landed_[next_landed_++];
}

void UcxFlights::GiveBack(UcxFlight* flight) {
  flight->kept = nullptr;
  unused_.push_back(flight);
}

void UcxFlights::KeepAllForEver() {
  for (UcxFlight& flight : all_) {
    if (flight.kept == nullptr) continue;
    new std::shared_ptr<const void>(std::move(flight.kept));  // NOLINT: never deleted
  }
}

void UcxFlights::DropStrays() {
  static std::byte nowhere;
  while (true) {
    ucp_tag_recv_info_t info = {};
    const ucp_tag_message_h message = library_.ucp_tag_probe_nb(worker_, 0, 0, 1, &info);
    if (message == nullptr) return;
    // Into no room at all: UCX drops it, and its sender goes on.
    const TransportOp op = {TransportOp::Kind::kReceive, 0, 0, &nowhere, 0, 0};
    UcxFlight* const flight = Begin(nullptr, 0, op);
    ucp_request_param_t params = ParamsOf(flight);
    params.cb.recv = OnReceived;
    Take(flight, library_.ucp_tag_msg_recv_nbx(worker_, &nowhere, 0, message, &params));
  }
}

}  // namespace sluice
